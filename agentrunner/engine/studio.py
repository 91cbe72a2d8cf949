"""The graph for `langgraph dev` and LangGraph Studio, with dependencies of its own.

A run starts with `{"task_file": "path/to/task.yaml"}`. Its folder is like that of a run from the
command line but lies elsewhere, as its state is in the one database of all served runs. Every node
opens its dependencies and closes them again, because the server does not report when a waiting run
is dropped: between two nodes nothing is held.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypedDict

from langgraph.config import get_stream_writer
from langgraph.errors import GraphInterrupt
from pydantic import ValidationError

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempts import first_state, stop_workers
from agentrunner.engine.policies import capped, capped_again
from agentrunner.engine.resolve import resolve
from agentrunner.engine.resources import open_workshop
from agentrunner.environment import state_dir
from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.execution.deps import Clock, Deps, Update
from agentrunner.execution.questions import record_answer
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.graph.builder import build_served_graph
from agentrunner.graph.checkpoints import BoundedSaver, open_saver
from agentrunner.nodes.note import leave_note
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.locks import FileLock, me, repository_lock
from agentrunner.storage.run_folder import (
    RunFolder,
    load_spec,
    make_private,
    new_run_id,
    refuse_inside,
    save_spec,
)


def studio_dir() -> Path:
    """Return where served runs are kept: apart, so that no command line resumes one."""
    return state_dir() / "studio"


class NotRun(RuntimeError):
    """Why a served run stops. The server shows the text of a RuntimeError, and hides our errors."""


class Start(TypedDict):
    """What a run is started with."""

    task_file: str
    """The task file's path, absolute or relative to where the server was started."""


@asynccontextmanager
async def open_deps(state: TaskContext) -> AsyncIterator[tuple[Deps, Update]]:
    """Yield the dependencies of one node of a served run; for the first node also the starting
    state.

    Raises NotRun for a task that cannot be read and a machine that cannot run it. The server shows
    the run as failed, and it can continue on the same thread.
    """
    try:
        async with _opened(state) as opened:
            yield opened
    except AgentRunnerError as error:
        raise NotRun(error.in_one_text) from error
    except ValidationError as error:  # of what an interrupt was answered with
        raise NotRun(_why_no_answer(error)) from error


def _why_no_answer(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"])) or "it"
    return (
        f"This is no answer to the question: {place}: {first['msg'].rstrip('.')}. It still waits."
    )


@asynccontextmanager
async def _opened(state: TaskContext) -> AsyncIterator[tuple[Deps, Update]]:
    writer = get_stream_writer()
    with contextlib.ExitStack() as stack:
        resolved, folder, repository = await asyncio.to_thread(_enter, state, stack)
        opened: Update = {}
        if "run" not in state:
            opened = first_state(resolved.spec, folder.run_id, Clock())
        async with open_workshop(resolved, folder, state_dir(), [writer], repository) as (deps, _):
            _record_answer(state, deps)
            try:
                yield deps, opened
            except GraphInterrupt:
                await asyncio.to_thread(_record_question, state, deps)
                raise
            except asyncio.CancelledError:
                deps.stop.set()  # a thread that is still running must start nothing
                stop_workers(folder)
                raise


def _record_question(state: TaskContext, deps: Deps) -> None:
    """Record the question of a run that now waits in log and events, and write the note.

    Blocks.
    """
    asked = state["question"]
    assert asked is not None
    deps.emit("question", id=asked.id, kind=asked.kind, text=asked.text, options=asked.options)
    deps.record(state, "question", asked.id, asked)
    leave_note(state, deps, waiting=asked)


def _record_answer(state: TaskContext, deps: Deps) -> None:
    """Record the answer at the next node: the server does not report when it is given."""
    answer = state.get("answer")
    if answer and answer.id not in [record.key for record in deps.log.records("answer")]:
        record_answer(state, deps, answer)


def _enter(
    state: TaskContext, stack: contextlib.ExitStack
) -> tuple[ResolvedRun, RunFolder, FileLock]:
    """Lock the run's repository and open the run's folder; a new run gets its folder last."""
    run = state.get("run")
    folder = RunFolder.open(studio_dir(), run.run_id) if run else None
    if folder:
        spec = capped_again(load_spec(folder), folder, os.environ)
    else:
        spec = capped(_task(state), os.environ, state_dir())
    repo = Path(spec.repo)
    resolved = resolve(spec, os.environ).ready()
    refuse_inside(state_dir(), repo)
    run_id = folder.run_id if folder else new_run_id(spec.task_id, secrets.token_bytes(4))
    repository = stack.enter_context(contextlib.closing(repository_lock(state_dir(), repo)))
    repository.acquire_or_leave(me(run_id, Clock().stamp()))
    if folder is None:
        folder = RunFolder.create(studio_dir(), run_id, repo)
        save_spec(folder, spec)
    return resolved, folder, repository


def _task(state: TaskContext) -> TaskSpec:
    path = state.get("task_file")
    if not isinstance(path, str) or not path:
        raise UsageError(
            'Give the run an input: {"task_file": "path/to/task.yaml"}.',
            path="task_file",
        )
    # Not the folder the server was started in: that is a checkout of AgentRunner.
    file = Path.cwd() / Path(path).expanduser()
    if file.is_dir():
        raise UsageError(f"{path} is a folder. Name the task file or PRD.", path="task_file")
    return load_task(TaskSource("file", str(file)), environ=os.environ, cwd=file.parent)


@asynccontextmanager
async def open_checkpointer() -> AsyncIterator[BoundedSaver]:
    """Yield the checkpointer of the server's runs, which reads as strictly as that of any other
    run.

    The server's own checkpointer would be a pickle in the current folder, and return our models as
    plain dictionaries. Raises CheckpointCorrupt for a file that cannot be trusted.
    """
    await asyncio.to_thread(make_private, studio_dir())
    path = studio_dir() / "checkpoints.sqlite"
    async with open_saver(path, new=not path.exists(), history=True) as saver:
        yield saver


graph = build_served_graph(open_deps, Start).compile(name="AgentRunner")
