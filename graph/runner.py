"""Driving a run in the foreground: start, resume, answer, accept, cancel.

One process drives a run (its lock) in a repository (another lock, shared with the supervisor).
Whatever ends the driving, a pause, a signal, `kill -9`, the state is saved and `resume` goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from agentrunner.graph.builder import build_graph  # first: it quiets the libraries

# isort: split
from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command

from agentrunner.errors import UsageError
from agentrunner.graph import attempts
from agentrunner.graph.checkpoints import damaged, open_saver, prune, read_errors, thread_config
from agentrunner.graph.header import header_of
from agentrunner.graph.workshop import Crew, assemble, box_spec, open_workshop
from agentrunner.nodes.deps import Clock, Deps
from agentrunner.nodes.guarded import Stopped
from agentrunner.nodes.note import leave_note
from agentrunner.nodes.plan import criteria_of, edited_criteria
from agentrunner.nodes.result import build_result
from agentrunner.runs.folder import RunFolder, load_spec, new_run_id, refuse_inside, save_spec
from agentrunner.runs.index import RunIndex, RunRow
from agentrunner.runs.locks import FileLock, me, repository_lock, run_lock
from agentrunner.sandboxes.choose import make_sandbox
from agentrunner.task.context import (
    Acceptance,
    Answer,
    Counters,
    Question,
    RunInfo,
    TaskContext,
    Verdict,
)
from agentrunner.task.lifecycle import TERMINAL, TaskState
from agentrunner.task.load import changed_sources
from agentrunner.task.prd import describe_check
from agentrunner.task.spec import TaskSpec
from agentrunner.workers.base import WorkerCall

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Graph = CompiledStateGraph[TaskContext, Deps, TaskContext, TaskContext]


@dataclass(frozen=True)
class Options:
    """How a run is driven."""

    state_dir: Path
    on_event: Callable[[dict[str, Any]], None]
    """Every event of --json, redacted."""
    ask: Callable[[Question], Answer | None] | None = None
    """Answers inline, in a terminal; None or an answer of None pauses the run."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = field(default_factory=Clock)


async def start(spec: TaskSpec, options: Options) -> dict[str, Any]:
    """Run a task from the beginning to its end or to a pause; the `result` object.

    Raises Surroundings before anything is written where planner, worker or repository are not
    to be had, and during the run where its box or its state fail; then `resume` goes on.
    """
    repo = Path(spec.repo)
    crew = assemble(spec, options.environ)
    refuse_inside(options.state_dir, repo)
    run_id = new_run_id(spec.task_id, secrets.token_bytes(4))
    repository = repository_lock(options.state_dir, repo)
    repository.acquire(me(run_id, options.clock.stamp()))
    with contextlib.closing(repository):
        folder = RunFolder.create(options.state_dir, run_id, repo)
        save_spec(folder, spec)
        with _driving(folder, options):
            first = first_state(spec, run_id, options.clock)
            return await _run(spec, folder, options, repository, crew, first)


def first_state(spec: TaskSpec, run_id: str, clock: Clock) -> TaskContext:
    """The state of a run that has done nothing yet."""
    return TaskContext(
        run=RunInfo(
            run_id=run_id,
            task_id=spec.task_id,
            title=spec.title,
            repo=spec.repo,
            max_loops=spec.runner.meta.max_loops,
            salt=secrets.token_hex(16),
            started_at=clock.stamp(),
        ),
        state=TaskState.PENDING,
        counters=Counters(),
        criteria=criteria_of(spec.criteria),
    )


async def resume(
    run_id: str,
    options: Options,
    *,
    max_loops: int | None = None,
    message: str | None = None,
    on_change: str | None = None,
) -> dict[str, Any]:
    """Go on where a run was; a FAILED or NEEDS_REVIEW one starts its next attempt.

    Raises UsageError where its inputs changed and `on_change` does not say what that means,
    Busy where someone else drives it.
    """
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_spec(folder)
    replan = False
    if changes := changed_sources(spec):
        if on_change not in ("replan", "continue"):
            raise _inputs_changed(run_id, changes)
        if on_change == "replan":
            spec, replan = attempts.reload(spec, options.environ), True
    state = await attempts.latest(folder)
    if state["state"] == TaskState.COMPLETE and not replan:
        return attempts.result_of(folder, spec, state)
    crew = assemble(spec, options.environ)
    with _driving(folder, options), _repository(spec, folder, options) as repository:
        if replan:
            save_spec(folder, spec)
        fresh = None
        if replan or state["state"] in TERMINAL:
            fresh = attempts.next_attempt(state, spec, max_loops=max_loops, replan=replan)
        if message:
            attempts.leave_message(folder, state, message, options.clock.stamp())
        return await _run(spec, folder, options, repository, crew, fresh)


def _inputs_changed(run_id: str, changes: list[tuple[str, str]]) -> UsageError:
    return UsageError(
        f"What {run_id} was made from has changed since it started.",
        code="inputs-changed",
        path=changes[0][0],
        details=tuple(("changed", f"{path}\n{diff}") for path, diff in changes),
        remedy=f"agentrunner resume {run_id} --on-change replan   |   --on-change continue",
    )


async def respond(run_id: str, answer: Answer, options: Options) -> dict[str, Any]:
    """Give a waiting run its answer and go on; refuses stale, foreign and malformed ones."""
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_spec(folder)
    with _driving(folder, options):
        question = await attempts.waiting(folder)
        answer = checked_answer(run_id, question, answer)
        crew = assemble(spec, options.environ)
        with _repository(spec, folder, options) as repository:
            return await _run(spec, folder, options, repository, crew, None, answer)


def checked_answer(run_id: str, question: Question | None, answer: Answer) -> Answer:
    """The answer as one to this very question; raises UsageError, and the question stays."""
    if question is None:
        raise UsageError(f"{run_id} is not waiting for anyone.", code="not-waiting")
    if answer.id and answer.id != question.id:
        raise UsageError(
            f"{run_id} is not waiting for {answer.id}; its question is {question.id}.",
            code="stale-answer",
            remedy=f"agentrunner show {run_id}",
        )
    free = question.kind == "ask_human"
    if free != (answer.decision == "answer"):
        verb = "answer" if free else "approve or reject"
        raise UsageError(
            f"The question of {run_id} is of kind {question.kind}: {verb} it.",
            code="wrong-answer",
            remedy=f"agentrunner {verb.split()[0]} {run_id} --id {question.id}",
        )
    if len(answer.text) > 16_384 or (free and not answer.text.strip()):
        raise UsageError("An answer has 1 to 16384 characters.", code="wrong-answer")
    if answer.edit:
        if question.kind != "plan":
            raise UsageError("Only a plan can be edited.", code="wrong-answer", path="--edit")
        try:
            edited_criteria(answer.edit)
        except ValueError as error:
            raise UsageError(
                f"The edited plan cannot be read: {error}", code="wrong-answer", path="--edit"
            ) from error
    text = answer.text
    if free and text.strip().isdigit() and 1 <= int(text) <= len(question.options):
        text = question.options[int(text) - 1]
    return answer.model_copy(update={"id": question.id, "kind": question.kind, "text": text})


async def accept(
    run_id: str, criteria: list[str], reason: str, by: str, options: Options
) -> dict[str, Any]:
    """Record a person's yes and check once more; COMPLETE if code agrees.

    Raises UsageError for a run that has not ended, unknown criteria or an empty reason.
    """
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_spec(folder)
    state = await attempts.latest(folder)
    if state["state"] not in (TaskState.NEEDS_REVIEW, TaskState.FAILED):
        raise UsageError(
            f"{run_id} is {state['state']}; only an ended, unfinished run can be accepted.",
            code="not-acceptable",
        )
    known = [criterion.id for criterion in state["criteria"]]
    if unknown := [name for name in criteria if name not in known]:
        raise UsageError(
            f"{run_id} has no criterion {', '.join(unknown)}. It has {', '.join(known)}.",
            code="unknown-criterion",
        )
    if not reason.strip():
        raise UsageError("A reason is needed.", code="usage", path="--reason")
    crew = assemble(spec, options.environ)
    with _driving(folder, options), _repository(spec, folder, options) as repository:
        yes = Acceptance(criteria=criteria, reason=reason, by=by, at=options.clock.stamp(), tree="")
        fresh = attempts.with_acceptance(state, spec, yes)
        return await _run(spec, folder, options, repository, crew, fresh)


async def cancel(run_id: str, options: Options) -> dict[str, Any]:
    """End a run FAILED, stopping whoever drives it and its worker first."""
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_spec(folder)
    await attempts.stop_driver(folder, options.state_dir, Path(spec.repo))
    state = await attempts.latest(folder)
    if state["state"] in TERMINAL:
        return attempts.result_of(folder, spec, state)
    crew = assemble(spec, options.environ)
    with _driving(folder, options), _repository(spec, folder, options) as repository:
        verdict = Verdict(state="FAILED", reason="cancelled", text="A person cancelled the run.")
        fresh = attempts.next_attempt(state, spec, max_loops=None, replan=False)
        fresh = cast("TaskContext", {**fresh, "state": state["state"], "verdict": verdict})
        return await _run(spec, folder, options, repository, crew, fresh)


async def dry_run(spec: TaskSpec, options: Options) -> dict[str, Any]:
    """What a run would do, without a model call and without leaving anything."""
    crew = assemble(spec, options.environ)
    folder = RunFolder(options.state_dir / "runs" / f"{spec.task_id}-0000")
    sandbox = make_sandbox(
        spec.runner.sandbox.kind,
        box_spec(spec, crew.worker, folder),
        options.environ,
        Path(options.environ.get("HOME") or Path.home()),
        state_root=options.state_dir,
    )
    call = WorkerCall(
        worker_run_id="1-001",
        prompt="<the planner's prompt>",
        workdir=Path(spec.repo),
        home=folder.box_dir,
        prompt_file=folder.box_dir / "prompts" / "1-001.md",
        model=spec.runner.worker.model,
        sandboxed=spec.runner.sandbox.kind != "none",
    )
    return {
        "header": header_of(spec, crew, box=sandbox.kind),
        "criteria": [
            {
                "id": c.id,
                "description": c.description,
                "critical": c.critical,
                "line": c.line,
                "check": describe_check(c.check),
            }
            for c in spec.criteria
        ],
        "worker_command": list(crew.worker.command(call).argv),
        "mounts": [
            {"source": str(m.source), "target": str(m.target), "read_only": m.read_only}
            for m in sandbox.mounts()
        ],
        "network": spec.runner.sandbox.network or "none",
    }


# -- driving ------------------------------------------------------------------------------------


@contextmanager
def _driving(folder: RunFolder, options: Options) -> Iterator[None]:
    """Hold the run's lock: one process drives a run."""
    lock = run_lock(folder)
    lock.acquire(me(folder.run_id, options.clock.stamp()))
    with contextlib.closing(lock):
        yield


@contextmanager
def _repository(spec: TaskSpec, folder: RunFolder, options: Options) -> Iterator[FileLock]:
    """Hold the repository's lock, or leave it with this run's own supervisor while that lives."""
    lock = repository_lock(options.state_dir, Path(spec.repo))
    holder = lock.probe()
    if holder is None or holder.run_id != folder.run_id:
        lock.acquire(me(folder.run_id, options.clock.stamp()))
    with contextlib.closing(lock):
        yield lock


async def _run(
    spec: TaskSpec,
    folder: RunFolder,
    options: Options,
    repository: FileLock,
    crew: Crew,
    fresh: TaskContext | None,
    answer: Answer | None = None,
) -> dict[str, Any]:
    """Drive one attempt: `fresh` starts it, None goes on with the latest."""
    index = _Indexer(spec, folder, options)
    new_file = not folder.checkpoints.exists()
    async with (
        open_workshop(
            spec, folder, options.state_dir, options.environ, [index, options.on_event],
            repository, crew, options.clock,
        ) as deps,
        open_saver(folder.checkpoints, new=new_file and fresh is not None) as saver,
    ):  # fmt: skip
        attempt = fresh["run"].attempt if fresh else attempts.newest_attempt(folder)
        loops = fresh["run"].max_loops if fresh else spec.runner.meta.max_loops
        config = thread_config(folder.run_id, attempt, max(loops, 50))
        graph = build_graph().compile(checkpointer=saver, name="AgentRunner")
        _announce(deps, spec, crew, fresh, attempt)
        drive = _Drive(graph, config, deps, options)
        result = await drive.to_the_end(fresh, answer)
        if result["state"] in TERMINAL:
            await prune(saver, [f"{folder.run_id}#{n}" for n in range(1, attempt + 1)])
    index.finish(result)
    folder.write("result.json", _json(result))
    if result["state"] in TERMINAL and spec.runner.retention_days == 0:
        await asyncio.to_thread(folder.remove)
    return result


def _announce(
    deps: Deps, spec: TaskSpec, crew: Crew, fresh: TaskContext | None, attempt: int
) -> None:
    if fresh is not None and attempt == 1:
        deps.emit("run_started", header=header_of(spec, crew, box=deps.gatherer.box_name))
    else:
        deps.emit("run_resumed", attempt=attempt)


class _Drive:
    """One graph on one thread, driven until it ends, pauses or is stopped."""

    def __init__(self, graph: Graph, config: dict[str, Any], deps: Deps, options: Options) -> None:
        self._graph = graph
        self._config = cast("Any", config)
        self._deps = deps
        self._options = options
        self._control = RunControl()
        self._signal: signal.Signals | None = None

    async def to_the_end(self, fresh: TaskContext | None, answer: Answer | None) -> dict[str, Any]:
        """The result object of whatever end was reached."""
        payload: Any = fresh
        if answer is not None:
            payload = await self._reply(answer)
        with self._signals():
            while True:
                await self._invoke(payload)
                state, question = await self._standing()
                if self._signal is not None:
                    return await self._interrupted(state)
                if question is None:
                    return self._ended(state)
                said = await self._ask_inline(question)
                if said is None:
                    return await self._paused(state, question)
                payload = await self._reply(said)

    async def _invoke(self, payload: Any) -> None:
        try:
            await self._graph.ainvoke(
                payload,
                self._config,
                context=self._deps,
                durability="sync",
                control=self._control,
            )
        except (GraphDrained, Stopped):
            pass
        except BaseException:
            self._deps.stop.set()
            raise

    async def _standing(self) -> tuple[TaskContext, Question | None]:
        try:
            snapshot = await self._graph.aget_state(self._config)
        except read_errors() as error:
            raise damaged(self._deps.folder.checkpoints, str(error)) from error
        state = cast("TaskContext", snapshot.values)
        if not state:
            raise damaged(self._deps.folder.checkpoints, "it holds no state of this attempt")
        return state, state.get("question") if snapshot.interrupts else None

    async def _reply(self, answer: Answer) -> Command[str]:
        """The answer, addressed to the one interrupt that is open."""
        snapshot = await self._graph.aget_state(self._config)
        value: dict[str, str] = {"id": answer.id, "text": answer.text}
        if answer.kind != "ask_human":
            value |= {"decision": answer.decision, "edit": answer.edit}
        state = cast("TaskContext", snapshot.values)
        self._deps.emit("answer", id=answer.id)
        self._deps.record(state, "answer", answer.id, answer)
        return Command(resume={snapshot.interrupts[0].id: value})

    async def _ask_inline(self, question: Question) -> Answer | None:
        if self._options.ask is None:
            return None
        self._tell(question)
        answer = await asyncio.to_thread(self._options.ask, question)
        if answer is None:
            return None
        return checked_answer(self._deps.folder.run_id, question, answer)

    def _tell(self, question: Question) -> None:
        self._deps.emit(
            "question", id=question.id, kind=question.kind, text=question.text,
            options=question.options,
        )  # fmt: skip

    # -- the three ways to stop -----------------------------------------------------------------

    def _ended(self, state: TaskContext) -> dict[str, Any]:
        self._deps.emit("state_changed", **{"from": None, "to": state["state"]})
        return self._result(state)

    async def _paused(self, state: TaskContext, question: Question) -> dict[str, Any]:
        self._deps.record(state, "question", question.id, question)
        if self._options.ask is None:
            self._tell(question)
        await asyncio.to_thread(leave_note, state, self._deps, waiting=question)
        return self._result(state, waiting=question)

    async def _interrupted(self, state: TaskContext) -> dict[str, Any]:
        assert self._signal is not None
        if state["state"] in TERMINAL:
            return self._ended(state)
        await asyncio.to_thread(leave_note, state, self._deps, reason="interrupted")
        return self._result(state, reason="interrupted", exit_code=128 + self._signal)

    def _result(self, state: TaskContext, **how: Any) -> dict[str, Any]:
        path = self._deps.folder.root / "note-path"
        note = path.read_text(encoding="utf-8") if path.exists() else None
        return build_result(state, self._deps.spec, note=note, **how)

    # -- signals --------------------------------------------------------------------------------

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """First signal: stop in order. Second: leave at once, the supervisor finishes the stop."""
        loop = asyncio.get_running_loop()
        try:
            for number in SIGNALS:
                loop.add_signal_handler(number, self._on_signal, number)
        except (ValueError, RuntimeError, NotImplementedError):  # not in the main thread
            yield
            return
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._signal is not None:
            os._exit(128 + number)
        self._signal = number
        self._deps.stop.set()
        self._control.request_drain(number.name)


class _Indexer:
    """Keeps the run's row in the index as its state changes."""

    def __init__(self, spec: TaskSpec, folder: RunFolder, options: Options) -> None:
        self._index = RunIndex(options.state_dir)
        self._clock = options.clock
        self._row = RunRow(
            run_id=folder.run_id,
            task_id=spec.task_id,
            title=spec.title,
            repo=spec.repo,
            state=str(TaskState.PENDING),
            started_at=options.clock.stamp(),
        )
        for row in self._index.runs():
            if row.run_id == folder.run_id:
                self._row = replace(row, waiting=None, finished_at=None)

    def __call__(self, event: dict[str, Any]) -> None:
        """Listen to the events of the run."""
        if event["event"] in ("run_started", "run_resumed"):
            self._index.record(self._row)
        elif event["event"] == "state_changed":
            self._row = replace(self._row, state=event["to"])
            self._index.record(self._row)

    def finish(self, result: Mapping[str, Any]) -> None:
        """The last word of this driving."""
        ended = result["state"] in TERMINAL
        waiting = result["waiting"]["kind"] if result["waiting"] else None
        self._row = replace(
            self._row,
            state=result["state"],
            waiting=waiting,
            finished_at=self._clock.stamp() if ended else None,
        )
        self._index.record(self._row)


def _json(result: Mapping[str, Any]) -> str:
    import json

    return json.dumps(result, ensure_ascii=False, indent=1)
