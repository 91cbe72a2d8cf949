"""Driving a run in the foreground: start, resume, answer, accept, cancel.

One process drives a run (its lock) in a repository (another lock, shared with the supervisor).
Whatever ends the driving, a pause, a signal, `kill -9`, the state is saved and `resume` goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from agentrunner.errors import Busy, UsageError
from agentrunner.gateway.order import GATEWAY_PORT
from agentrunner.graph import attempts
from agentrunner.graph.answers import checked_answer
from agentrunner.graph.builder import graph_for
from agentrunner.graph.checkpoints import BoundedSaver, open_saver, thread_config
from agentrunner.graph.crew import Crew, assemble, muster
from agentrunner.graph.drive import Drive, Options
from agentrunner.graph.header import header_of, reach_of_all
from agentrunner.graph.indexing import Indexer
from agentrunner.graph.landing import land_late, load_task_of, prepared
from agentrunner.graph.memory import be_frugal
from agentrunner.graph.policy import capped, capped_again, capped_as_far
from agentrunner.graph.workshop import box_spec, check_box, open_workshop, with_image
from agentrunner.nodes.budget import granted
from agentrunner.nodes.credentials import secrets_of
from agentrunner.nodes.deps import Clock, Deps
from agentrunner.nodes.egress import has_gateway
from agentrunner.nodes.plan import criteria_of
from agentrunner.runs.folder import RunFolder, new_run_id, refuse_inside, save_spec
from agentrunner.runs.locks import FileLock, me, repository_lock, run_lock
from agentrunner.runs.log import RunLog
from agentrunner.runs.worktree import remove_places
from agentrunner.sandboxes.choose import AUTO, make_sandbox
from agentrunner.supervisor.processes import kill_orphans
from agentrunner.task.budget import read_grants
from agentrunner.task.context import (
    Acceptance,
    Answer,
    Counters,
    RunInfo,
    TaskContext,
)
from agentrunner.task.lifecycle import TERMINAL, TaskState
from agentrunner.task.load import changed_sources
from agentrunner.task.prd import describe_check
from agentrunner.task.spec import TaskSpec
from agentrunner.text.redaction import Redactor
from agentrunner.workers.base import WorkerCall
from agentrunner.workers.make import network_of

__all__ = ["Options", "accept", "cancel", "dry_run", "respond", "resume", "start"]


async def start(spec: TaskSpec, options: Options, *, run_id: str = "") -> dict[str, Any]:
    """Run a task from the beginning to its end or to a pause; the `result` object.

    `run_id` is its name (`new_run_id`) where one was chosen beforehand. Raises UsageError where it
    goes beyond a policy, and Surroundings before anything is written where planner, worker or
    repository are not to be had, and during the run where its box or its state fail; then `resume`
    goes on.
    """
    environ, state_dir, policy = options.environ, options.state_dir, options.policy
    spec = capped(spec, environ, state_dir, policy, replays=_replays(options))
    refuse_inside(options.state_dir, Path(spec.repo))
    run_id = run_id or new_run_id(spec.task_id, secrets.token_bytes(4))
    with prepared(spec, run_id, options.state_dir) as (spec, undo):
        crew = assemble(spec, options.environ, options.cassette)
        check_box(spec, crew, options.environ, options.state_dir)
        spec = await with_image(spec, crew, options.environ, options.confirm)
        repository = repository_lock(options.state_dir, Path(spec.repo))
        repository.acquire(me(run_id, options.clock.stamp()))
        undo.callback(repository.close)
        folder = RunFolder.create(options.state_dir, run_id, Path(spec.shown_repo))
        save_spec(folder, spec)
        undo.pop_all()
    with contextlib.closing(repository):
        Indexer(spec, folder, options).begin()
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
            repo=spec.shown_repo,
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
    budget: Sequence[str] = (),
) -> dict[str, Any]:
    """Go on where a run was; a FAILED or NEEDS_REVIEW one starts its next attempt.

    `budget` are grants like "usd=+5"; where the run waits with a spent limit they are the answer.
    Raises UsageError where its inputs changed and `on_change` does not say what that means, and
    for grants that cannot be given; Busy where someone else drives it.
    """
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_task_of(folder)
    replan = False
    if changes := changed_sources(spec):
        if on_change not in ("replan", "continue"):
            raise _inputs_changed(run_id, changes)
        if on_change == "replan":
            spec, replan = attempts.reload(spec, options.environ), True
    spec = capped_again(spec, folder, options.environ, options.policy, max_loops=max_loops)
    with _driving(folder, options):
        # Read under the lock: whoever held it until now may have gone on.
        state = await _latest(folder, spec, options)
        if state["state"] == TaskState.COMPLETE and not replan:
            await asyncio.to_thread(land_late, folder, spec, state, options.environ)
            return attempts.result_of(folder, spec, state)
        if max_loops is not None and not (replan or state["state"] in TERMINAL):
            raise UsageError(
                f"{run_id} has not ended; --max-loops is the limit of a new attempt.",
                code="usage",
                path="--max-loops",
                remedy=f"agentrunner resume {run_id}",
            )
        grants, answer = await _grants(folder, spec, budget)
        crew = assemble(spec, options.environ, options.cassette)
        with _repository(spec, folder, options) as repository:
            fresh = state if attempts.untouched(folder) else None
            if replan:
                state = await _settled(state, spec, folder, options, repository, crew)
                save_spec(folder, spec)
            if replan or state["state"] in TERMINAL:
                fresh = attempts.next_attempt(state, spec, max_loops=max_loops, replan=replan)
            if message:
                words = _redactor(spec, crew, options).redact(message)
                attempts.leave_message(folder, state, words, options.clock.stamp())
            answer = None if fresh else answer
            return await _run(spec, folder, options, repository, crew, fresh, answer, grants=grants)


async def _grants(
    folder: RunFolder, spec: TaskSpec, budget: Sequence[str]
) -> tuple[dict[str, float], Answer | None]:
    """What is granted; as the answer, too, where the run waits with a spent limit."""
    if not budget:
        return {}, None
    text, before = " ".join(budget), granted(RunLog(folder.log_file))
    asked = None if attempts.untouched(folder) else await attempts.waiting(folder)
    if asked is None or asked.kind != "budget":
        return read_grants(text, spec, before), None
    answer = Answer(id=asked.id, kind="budget", text=text)
    return {}, checked_answer(folder.run_id, asked, answer, spec, before)


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
    spec = capped_again(load_task_of(folder), folder, options.environ, options.policy)
    with _driving(folder, options):
        question = await attempts.waiting(folder)
        before = granted(RunLog(folder.log_file))
        answer = checked_answer(run_id, question, answer, spec, before)
        crew = assemble(spec, options.environ, options.cassette)
        with _repository(spec, folder, options) as repository:
            return await _run(spec, folder, options, repository, crew, None, answer)


async def accept(
    run_id: str, criteria: list[str], reason: str, by: str, options: Options
) -> dict[str, Any]:
    """Record a person's yes and check once more; COMPLETE if code agrees.

    Raises UsageError for a run that has not ended, unknown criteria or an empty reason.
    """
    folder = RunFolder.open(options.state_dir, run_id)
    spec = capped_again(load_task_of(folder), folder, options.environ, options.policy)
    if not reason.strip():
        raise UsageError("A reason is needed.", code="usage", path="--reason")
    with _driving(folder, options):
        state = await attempts.latest(folder)
        _check_acceptable(state, criteria)
        crew = assemble(spec, options.environ, options.cassette)
        said = _redactor(spec, crew, options).redact(reason)
        yes = Acceptance(criteria=criteria, reason=said, by=by, at=options.clock.stamp(), tree="")
        fresh = attempts.with_acceptance(state, spec, yes)
        with _repository(spec, folder, options) as repository:
            return await _run(spec, folder, options, repository, crew, fresh)


def _redactor(spec: TaskSpec, crew: Crew, options: Options) -> Redactor:
    """Takes secrets out of what people type, before it is kept anywhere."""
    return Redactor(secrets_of(spec, crew.members, options.environ))


def _check_acceptable(state: TaskContext, criteria: list[str]) -> None:
    run_id = state["run"].run_id
    if state["state"] not in (TaskState.NEEDS_REVIEW, TaskState.FAILED):
        raise UsageError(
            f"{run_id} is {state['state']}; only an ended, unfinished run can be accepted.",
            code="not-acceptable",
        )
    if state.get("baseline") is None:
        raise UsageError(
            f"{run_id} has no plan yet, so there is nothing to accept.",
            code="not-acceptable",
            remedy=f"agentrunner resume {run_id}",
        )
    known = [criterion.id for criterion in state["criteria"]]
    if unknown := [name for name in criteria if name not in known]:
        raise UsageError(
            f"{run_id} has no criterion {', '.join(unknown)}. It has {', '.join(known)}.",
            code="unknown-criterion",
        )


async def cancel(run_id: str, options: Options) -> dict[str, Any]:
    """End a run FAILED, stopping whoever drives it and its worker first."""
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_task_of(folder)
    await attempts.stop_driver(folder, options.state_dir, Path(spec.repo))
    with _driving(folder, options):
        state = await _latest(folder, spec, options)
        if state["state"] in TERMINAL:
            return attempts.result_of(folder, spec, state)
        crew = assemble(spec, options.environ, options.cassette)
        with _repository(spec, folder, options) as repository:
            state = await _settled(state, spec, folder, options, repository, crew)
            fresh = attempts.cancelled(state, spec)
            return await _run(spec, folder, options, repository, crew, fresh)


async def dry_run(spec: TaskSpec, options: Options) -> dict[str, Any]:
    """What a run would do, without a model call and without leaving anything.

    What keeps it from starting is among it, as `missing`.
    """
    environ, state_dir, policy = options.environ, options.state_dir, options.policy
    spec, missing = capped_as_far(spec, environ, state_dir, policy, replays=_replays(options))
    crew = muster(spec, options.environ, options.cassette)
    folder = RunFolder(options.state_dir / "runs" / f"{spec.task_id}-0000")
    sandbox = make_sandbox(
        spec.runner.sandbox.kind,
        box_spec(spec, crew.members, folder),
        options.environ,
        Path(options.environ.get("HOME") or Path.home()),
        state_root=options.state_dir,
    )
    first = crew.members[0]
    auto = spec.runner.sandbox.kind == "auto"
    gateway = has_gateway(first.spec, first.worker, spec.runner.sandbox.kind)
    call = WorkerCall(
        worker_run_id="1-001",
        prompt="<the planner's prompt>",
        workdir=Path(spec.repo),
        home=folder.box_dir,
        prompt_file=folder.box_dir / "prompts" / "1-001.md",
        model=first.spec.runner.worker.model,
        base_url=f"http://127.0.0.1:{GATEWAY_PORT}" if gateway else None,
        sandboxed=spec.runner.sandbox.kind != "none",
    )
    return {
        "header": header_of(
            spec,
            crew,
            options.environ,
            box=", else ".join(AUTO) if auto else sandbox.describe(),
            max_loops=spec.runner.meta.max_loops,
        ),
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
        "worker_command": list(first.worker.command(call).argv),
        "mounts": [
            {"source": str(m.source), "target": str(m.target), "read_only": m.read_only}
            for m in sandbox.mounts()
        ],
        "network": network_of(first.spec, first.worker).policy,
        "reach": reach_of_all(spec, crew.members),
        "missing": [error.as_dict() for error in missing or crew.missing],
    }


def _replays(options: Options) -> bool:
    return options.cassette is not None and options.cassette.replay is not None


# -- driving ------------------------------------------------------------------------------------


@contextmanager
def _driving(folder: RunFolder, options: Options) -> Iterator[None]:
    """Hold the run's lock: one process drives a run."""
    be_frugal()
    lock = run_lock(folder)
    lock.acquire(me(folder.run_id, options.clock.stamp()))
    with contextlib.closing(lock):
        yield


@contextmanager
def _repository(spec: TaskSpec, folder: RunFolder, options: Options) -> Iterator[FileLock]:
    """Hold the repository's lock, or leave it with this run's own supervisor while that lives."""
    lock = repository_lock(options.state_dir, Path(spec.repo))
    try:
        lock.acquire(me(folder.run_id, options.clock.stamp()))
    except Busy:
        holder = lock.probe()
        if holder is None or holder.run_id != folder.run_id:
            raise
    with contextlib.closing(lock):
        if lock.held:  # then nobody lives whose box it could be
            kill_orphans(folder.box_dir)
        yield lock


async def _latest(folder: RunFolder, spec: TaskSpec, options: Options) -> TaskContext:
    """The saved state, or that of a run which was stopped before it did anything."""
    if attempts.untouched(folder):
        return first_state(spec, folder.run_id, options.clock)
    return await attempts.latest(folder)


async def _settled(
    state: TaskContext,
    spec: TaskSpec,
    folder: RunFolder,
    options: Options,
    repository: FileLock,
    crew: Crew,
) -> TaskContext:
    """The state once the worker that an earlier driver left is ended in order and recorded.

    No other attempt may work beside it, and what it changed is a worker's doing.
    """
    if not attempts.has_worker(folder, state):
        return state
    index = Indexer(spec, folder, options)
    async with _opened(spec, folder, options, repository, crew, None, index) as (drive, _):
        await drive.stop_worker()
    return await attempts.latest(folder)


@asynccontextmanager
async def _opened(
    spec: TaskSpec,
    folder: RunFolder,
    options: Options,
    repository: FileLock,
    crew: Crew,
    fresh: TaskContext | None,
    index: Indexer,
) -> AsyncIterator[tuple[Drive, BoundedSaver]]:
    """What drives the attempt that `fresh` starts, or the latest one."""
    new_file = fresh is not None and attempts.untouched(folder)
    async with (
        open_workshop(
            spec, folder, options.state_dir, options.environ, [index, options.on_event],
            repository, crew, options.clock, options.cassette,
        ) as deps,
        open_saver(folder.checkpoints, new=new_file, before=deps.log.sync) as saver,
    ):  # fmt: skip
        attempt = fresh["run"].attempt if fresh else attempts.newest_attempt(folder)
        config = thread_config(folder.run_id, attempt)
        drive = Drive(graph_for(saver), config, deps, options)
        state = fresh or (await drive.standing())[0]
        _announce(deps, spec, crew, state, begins=fresh is not None and attempt == 1)
        yield drive, saver


async def _run(
    spec: TaskSpec,
    folder: RunFolder,
    options: Options,
    repository: FileLock,
    crew: Crew,
    fresh: TaskContext | None,
    answer: Answer | None = None,
    *,
    grants: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Drive one attempt: `fresh` starts it, None goes on with the latest."""
    index = Indexer(spec, folder, options)
    async with _opened(spec, folder, options, repository, crew, fresh, index) as (drive, saver):
        if grants:
            state = fresh or (await drive.standing())[0]
            number = len(drive.deps.log.records("grant")) + 1
            drive.deps.record(state, "grant", f"resume-{number}", {"amounts": dict(grants)})
        result = await drive.to_the_end(fresh, answer)
        drive.deps.emit("result", **{name: result[name] for name in result if name != "run_id"})
        if result["state"] in TERMINAL:
            attempt = int(result["attempt"])
            threads = [f"{folder.run_id}#{n}" for n in range(1, attempt + 1)]
            await asyncio.to_thread(saver.keep_latest, threads)
    index.finish(result)
    folder.write("result.json", json.dumps(result, ensure_ascii=False, indent=1))
    if result["state"] in TERMINAL and spec.runner.retention_days == 0:
        await asyncio.to_thread(folder.remove)
        await asyncio.to_thread(remove_places, options.state_dir, folder.run_id)
    return result


def _announce(deps: Deps, spec: TaskSpec, crew: Crew, state: TaskContext, *, begins: bool) -> None:
    run = state["run"]
    box = deps.sandbox.describe()
    header = header_of(spec, crew, deps.environ, box=box, max_loops=run.max_loops)
    if begins:
        deps.emit("run_started", task_id=spec.task_id, title=spec.title, header=header)
        return
    deps.emit("run_resumed", attempt=run.attempt, header=header)
    if names := [path for path, _ in changed_sources(spec)]:
        kept = f"changed meanwhile, the run goes on with what it was made from: {', '.join(names)}"
        deps.warn(state, "inputs-changed", kept)
