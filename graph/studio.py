"""The graph for `langgraph dev` and LangGraph Studio: no checkpointer, dependencies of its own.

The server brings the checkpointer. A run starts with `{"task_file": "path/to/task.yaml"}`; its
folder is the same as that of a run from the command line. For repositories you trust: the server
itself loads code from where it is started.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any, cast

from agentrunner.errors import UsageError
from agentrunner.graph.builder import build_graph
from agentrunner.graph.runner import first_state
from agentrunner.graph.workshop import assemble, open_workshop
from agentrunner.nodes.deps import Clock, Deps
from agentrunner.nodes.guarded import Update
from agentrunner.runs.folder import RunFolder, load_spec, new_run_id, save_spec
from agentrunner.runs.locks import me, repository_lock
from agentrunner.settings import state_dir
from agentrunner.task.context import TaskContext
from agentrunner.task.load import TaskSource, load_task
from agentrunner.task.spec import TaskSpec

_open: dict[str, Deps] = {}
"""One workshop per run for as long as the server lives."""
_exits = contextlib.AsyncExitStack()


async def open_deps(state: TaskContext) -> tuple[Deps, Update]:
    """The dependencies of a run that Studio drives, and the state it starts with."""
    run = state.get("run")
    if run is not None:
        deps = _open.get(run.run_id)
        if deps is None:
            folder = RunFolder.open(state_dir(), run.run_id)
            deps = await _workshop(load_spec(folder), folder)
        return deps, {}
    spec = _task(state)
    clock = Clock()
    run_id = new_run_id(spec.task_id, secrets.token_bytes(4))
    folder = RunFolder.create(state_dir(), run_id, Path(spec.repo))
    save_spec(folder, spec)
    deps = await _workshop(spec, folder)
    return deps, cast("dict[str, Any]", first_state(spec, run_id, clock))


def _task(state: TaskContext) -> TaskSpec:
    path = state.get("task_file")
    if not path:
        raise UsageError(
            'Give the run an input: {"task_file": "path/to/task.yaml"}.',
            code="usage",
            path="task_file",
        )
    return load_task(TaskSource("file", path), environ=os.environ, cwd=Path.cwd())


async def _workshop(spec: TaskSpec, folder: RunFolder) -> Deps:
    repository = repository_lock(state_dir(), Path(spec.repo))
    repository.acquire(me(folder.run_id, Clock().stamp()))
    workshop = open_workshop(
        spec, folder, state_dir(), os.environ, [], repository, assemble(spec, os.environ)
    )
    deps = await _exits.enter_async_context(workshop)
    _open[folder.run_id] = deps
    return deps


graph = build_graph(open_deps).compile(name="AgentRunner")
