"""Driving a run in the foreground: start, resume, answer, accept, cancel.

Whatever stops the driving, a pause, a signal or `kill -9`, the state is saved and `resume`
continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agentrunner.config.agents import PlannerSpec, ProfilesSpec
from agentrunner.config.load import changed_sources
from agentrunner.config.spec import TaskSpec
from agentrunner.engine import attempts
from agentrunner.engine import known_reds as reds
from agentrunner.engine.attempt_run import Options, checked_answer
from agentrunner.engine.commits import commit_late, load_task_of, prepared
from agentrunner.engine.driver import Driver, driving, open_driver
from agentrunner.engine.indexing import Indexer, start_error
from agentrunner.engine.planner_change import renewed, tried_with, with_worker_model
from agentrunner.engine.policies import capped, capped_again
from agentrunner.engine.queries import changes_not_seen
from agentrunner.engine.rereading import reread
from agentrunner.engine.resolve import check_test_folder, resolve
from agentrunner.engine.resources import check_sandbox, with_image
from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.errors.repositories import RepositoryGone
from agentrunner.errors.runs import InputsChanged, NotAcceptable, UnknownCriterion
from agentrunner.execution.decisions import KNOWN_RED
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.execution.silence import AGAIN
from agentrunner.git.snapshots import Change
from agentrunner.money.counters import granted
from agentrunner.planners.panel import make_panel
from agentrunner.results import Result
from agentrunner.state.budget import read_grants
from agentrunner.state.lifecycle import TERMINAL, TaskState
from agentrunner.state.people import Answer, People
from agentrunner.state.run_state import Acceptance, TaskContext
from agentrunner.storage.locks import me, repository_lock
from agentrunner.storage.run_folder import (
    RunFolder,
    load_spec,
    new_run_id,
    refuse_inside,
    save_spec,
)
from agentrunner.storage.run_log import RunLog
from agentrunner.text.redaction import Redactor


async def start(
    spec: TaskSpec, options: Options, *, run_id: str = "", people: People | None = None
) -> Result:
    """Run a task from the beginning to its end or to a pause.

    `run_id` is its name (`new_run_id`) where one was chosen beforehand, `people` what people
    decided about the task before, in another run of it. Raises UsageError where the task goes
    beyond a policy. Raises InfraError before anything is written where planner, worker or
    repository are unavailable, and during the run where its sandbox or its state fail; then
    `resume` continues it.
    """
    options = replace(options, given_at=options.given_at or options.clock.now())
    environ, state_dir, policy = options.environ, options.state_dir, options.policy
    replays = options.cassette.replay is not None
    spec = capped(spec, environ, state_dir, policy, replays=replays)
    refuse_inside(options.state_dir, Path(spec.repo))
    run_id = run_id or new_run_id(spec.task_id, secrets.token_bytes(4))
    with prepared(spec, run_id, options.state_dir) as (spec, undo):
        await asyncio.to_thread(check_test_folder, spec)
        resolved = await asyncio.to_thread(_resolved, spec, options, begins=True)
        await asyncio.to_thread(check_sandbox, resolved, options.state_dir)
        resolved = await with_image(resolved, options.confirm)
        spec = resolved.spec
        repository = repository_lock(options.state_dir, Path(spec.repo))
        repository.acquire(me(run_id, options.clock.stamp()))
        undo.callback(repository.close)
        folder = RunFolder.create(options.state_dir, run_id, Path(spec.shown_repo))
        if people is not None:
            folder.write(attempts.CARRIED, people.model_dump_json())
        save_spec(folder, spec)
        undo.pop_all()
    with contextlib.closing(repository):
        Indexer(spec, folder, options).begin()
        with driving(folder, options):
            first = attempts.first_state(spec, run_id, options.clock, people)
            return await Driver(resolved, folder, options, repository).run(first)


async def resume(
    run_id: str,
    options: Options,
    *,
    max_loops: int | None = None,
    message: str | None = None,
    on_change: str | None = None,
    budget: Sequence[str] = (),
    instead: TaskSpec | None = None,
    by: str = "",
    asked: str = "",
    planner: str | None = None,
    planner_model: str | None = None,
    model: str | None = None,
) -> Result:
    """Continue a run; a FAILED or NEEDS_REVIEW one starts its next attempt.

    `instead` is a new version of the task: it is planned anew, on its files as they are. `message`
    is a text of the person `by`; `asked` is the question it answers, where that was asked outside
    of the run. `planner` and `planner_model` say who plans and judges from now on; where the run
    waits because the planner gave no answer, it is asked again. `model` is the worker's from now
    on; where the run waits because the worker failed, the same order is tried with it. `budget`
    are grants like "usd=+5"; where the run waits with a spent limit they are the answer. Raises
    UsageError where its inputs changed and `on_change` does not say what to do, and for grants that
    cannot be given; Busy where another process drives the run.
    """
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_task_of(folder)
    replan = instead is not None
    if instead is not None:
        spec = _renewed(spec, instead, options)
    elif changes := changed_sources(spec):
        if start_error(folder):  # nothing was made from them
            on_change = on_change or "replan"
        if on_change not in ("replan", "continue"):
            raise _inputs_changed(run_id, changes)
        if on_change == "replan":
            spec, replan = reread(spec, options), True
    spec = capped_again(spec, folder, options.environ, options.policy, max_loops=max_loops)
    changes_planner = planner is not None or planner_model is not None
    if changes_planner:
        spec = renewed(spec, folder, options.environ, options.policy, planner, planner_model)
    with driving(folder, options):
        # Read under the lock: whoever held it until now may have continued the run.
        state = await _latest(folder, spec, options)
        if state["state"] == TaskState.COMPLETE and not replan:
            await asyncio.to_thread(commit_late, folder, spec, state, options.environ)
            return attempts.result_of(folder, spec, state)
        if max_loops is not None and not (replan or state["state"] in TERMINAL):
            raise UsageError(
                f"{run_id} has not ended; --max-loops is the limit of a new attempt.",
                path="--max-loops",
                remedy=f"agentrunner resume {run_id}",
            )
        grants, answer = await _grants(folder, spec, budget)
        if model is not None:
            spec = with_worker_model(spec, model, state)
            spec = capped_again(spec, folder, options.environ, options.policy)
        resolved = _resolved(spec, options)
        if changes_planner:
            answer = answer or await _asked_again(folder, by)
        if model is not None:
            answer = answer or await tried_with(folder, model, by)
        if changes_planner or model is not None:
            save_spec(folder, spec)
        if replan:
            resolved = await with_image(resolved, options.confirm)
            spec = resolved.spec
        with open_driver(resolved, folder, options) as driver:
            fresh = state if attempts.untouched(folder) else None
            if replan:
                state = await driver.settle(state)
                save_spec(folder, spec)
            if replan or state["state"] in TERMINAL:
                again = replan or state["run"].plan_open
                fresh = attempts.next_attempt(state, spec, max_loops=max_loops, replan=again)
            if message:
                redacted = Redactor(resolved.secrets).redact(message)
                at = options.clock.stamp()
                attempts.leave_message(folder, state, redacted, at, by=by, asked=asked)
            answer = None if fresh else answer
            return await driver.run(fresh, answer, grants=grants)


def _renewed(kept: TaskSpec, instead: TaskSpec, options: Options) -> TaskSpec:
    """Return the new task for a run's folder; the old one's budget and policies stay in force."""
    runner = instead.runner.model_copy(update={"budget": kept.runner.budget})
    spec = instead.model_copy(update={"runner": runner})
    spec = capped(spec, options.environ, options.state_dir, options.policy)
    policies = [
        *kept.policies,
        *(policy for policy in spec.policies if policy not in kept.policies),
    ]
    return spec.model_copy(update={"policies": policies})


async def _grants(
    folder: RunFolder, spec: TaskSpec, budget: Sequence[str]
) -> tuple[dict[str, float], Answer | None]:
    """Return the grants; where the run waits with a spent limit, return them as the answer."""
    if not budget:
        return {}, None
    text, before = " ".join(budget), granted(RunLog(folder.log_file))
    asked = None if attempts.untouched(folder) else await attempts.waiting(folder)
    if asked is None or asked.kind != "budget":
        return read_grants(text, spec, before), None
    answer = Answer(id=asked.id, kind="budget", text=text)
    return {}, checked_answer(folder.run_id, asked, answer, spec, before)


async def _asked_again(folder: RunFolder, by: str) -> Answer | None:
    """Return the answer that asks again, for a run that waits because its planner failed."""
    asked = None if attempts.untouched(folder) else await attempts.waiting(folder)
    if asked is None or asked.kind != "planner":
        return None
    return Answer(id=asked.id, kind="planner", text=AGAIN, by=by)


def _inputs_changed(run_id: str, changes: list[tuple[str, str]]) -> UsageError:
    return InputsChanged(
        f"What {run_id} was made from has changed since it started.",
        path=changes[0][0],
        details=tuple(("changed", f"{path}\n{diff}") for path, diff in changes),
        remedy=f"agentrunner resume {run_id} --on-change replan   |   --on-change continue",
    )


async def respond(run_id: str, answer: Answer, options: Options) -> Result:
    """Give a waiting run its answer and continue; refuse stale, foreign and malformed ones."""
    folder = RunFolder.open(options.state_dir, run_id)
    spec = capped_again(load_task_of(folder), folder, options.environ, options.policy)
    with driving(folder, options):
        question = await attempts.waiting(folder)
        before = granted(RunLog(folder.log_file))
        answer = checked_answer(run_id, question, answer, spec, before)
        resolved = _resolved(spec, options)
        with open_driver(resolved, folder, options) as driver:
            return await driver.run(None, answer)


async def accept(
    run_id: str,
    criteria: list[str],
    reason: str,
    by: str,
    options: Options,
    *,
    unchanged: bool = False,
    known_red: Sequence[str] = (),
) -> Result:
    """Record a person's acceptance and verify once more; COMPLETE if the code agrees.

    With `unchanged` the person says that nothing had to change; without it, a tree that is as it
    was before the run is not accepted. With `known_red` they say that these tests were red before
    for another reason, and nothing about the tree.

    Raises UsageError for a run that has not ended, unknown criteria, an empty reason, and names of
    tests that were not red before or that have to turn green.
    """
    folder = RunFolder.open(options.state_dir, run_id)
    spec = capped_again(load_task_of(folder), folder, options.environ, options.policy)
    if not reason.strip():
        raise UsageError("A reason is needed.", path="--reason")
    with driving(folder, options):
        state = await attempts.latest(folder)
        _check_acceptable(state, criteria)
        resolved = _resolved(spec, options)
        redacted = Redactor(resolved.secrets).redact(reason)
        if known_red:
            fresh = await asyncio.to_thread(
                _known_reds, folder, spec, state, known_red, redacted, by, options
            )
            with open_driver(resolved, folder, options) as driver:
                return await driver.run(fresh)
        acceptance = Acceptance(
            criteria=criteria,
            reason=redacted,
            by=by,
            at=options.clock.stamp(),
            tree="",
            unchanged=unchanged,
        )
        fresh = attempts.with_acceptance(state, spec, acceptance)
        attempt, loop = fresh["run"].attempt, fresh["counters"].loops
        attempts.keep_decision(folder, attempt, loop, attempts.accepted(state, acceptance))
        with open_driver(resolved, folder, options) as driver:
            return await driver.run(fresh)


def _known_reds(
    folder: RunFolder,
    spec: TaskSpec,
    state: TaskContext,
    tests: Sequence[str],
    reason: str,
    by: str,
    options: Options,
) -> TaskContext:
    """Record known reds in the run log, and return the attempt that judges with them. Blocks."""
    names = reds.known_reds(folder, spec, state, tests)
    log, at = RunLog(folder.log_file), options.clock.stamp()
    number = len(log.records(KNOWN_RED)) + 1
    fresh, decision = reds.with_known_reds(state, spec, names, reason, at=at, by=by, number=number)
    attempt, loop = fresh["run"].attempt, fresh["counters"].loops
    data = {"names": names, "reason": reason, "by": by}
    log.append(KNOWN_RED, decision.id, data, attempt=attempt, loop=loop, at=at)
    attempts.keep_decision(folder, attempt, loop, decision)
    return fresh


def _resolved(spec: TaskSpec, options: Options, *, begins: bool = False) -> ResolvedRun:
    """Return all that is known of the run beforehand; raise InfraError if something is missing."""
    return resolve(spec, options.environ, options.cassette, begins=begins).ready()


def _resolved_to_end(spec: TaskSpec, options: Options) -> ResolvedRun:
    """Return what ending a run needs: nobody plans or works, so nothing of theirs can be missing.

    A person ends runs from any shell, also from one that has no key.
    """
    resolved = resolve(spec, options.environ, options.cassette)
    if not resolved.missing:
        return resolved
    alone = {"meta": PlannerSpec(kind="checklist"), "assess": None, "profiles": ProfilesSpec()}
    runner = spec.runner.model_copy(update=alone)
    idle = make_panel(spec.model_copy(update={"runner": runner}), options.environ)
    return replace(resolved, planner=resolved.planner or idle, missing=())


def _check_acceptable(state: TaskContext, criteria: list[str]) -> None:
    run_id = state["run"].run_id
    if state["state"] not in TERMINAL - {TaskState.COMPLETE}:
        raise NotAcceptable(
            f"{run_id} is {state['state']}; only an ended, unfinished run can be accepted.",
        )
    if state.get("baseline") is None:
        raise NotAcceptable(
            f"{run_id} has no plan yet, so there is nothing to accept.",
            remedy=f"agentrunner resume {run_id}",
        )
    known = [criterion.id for criterion in state["criteria"]]
    if unknown := [name for name in criteria if name not in known]:
        raise UnknownCriterion(
            f"{run_id} has no criterion {', '.join(unknown)}. It has {', '.join(known)}.",
        )


async def cancel(run_id: str, options: Options) -> Result:
    """End a run FAILED, after stopping the process that drives it and its worker.

    Its folder may be gone.
    """
    folder = RunFolder.open(options.state_dir, run_id)
    spec = load_spec(folder)
    with _in_place_of_lost(Path(spec.repo)):
        await attempts.stop_driver(folder, options.state_dir, Path(spec.repo))
        with driving(folder, options):
            state = await _latest(folder, spec, options)
            if state["state"] in TERMINAL:
                return attempts.result_of(folder, spec, state)
            with open_driver(_resolved_to_end(spec, options), folder, options) as driver:
                state = await driver.settle(state)
                changes: list[Change] = []
                with contextlib.suppress(AgentRunnerError, OSError):
                    changes = await asyncio.to_thread(changes_not_seen, folder, state)
                return await driver.run(attempts.cancelled(state, spec, changes))


@contextlib.contextmanager
def _in_place_of_lost(repo: Path) -> Iterator[None]:
    """Let an empty folder stand in for one that is gone, with what was made on the way to it."""
    lost = [place for place in (repo, *repo.parents) if not place.exists()]
    try:
        for place in reversed(lost):
            place.mkdir()
    except OSError as error:
        raise RepositoryGone(
            "The repository is not there any more, and nothing can stand in for it.",
            path=str(repo),
            remedy="put it back, or remove the run: agentrunner gc",
        ) from error
    try:
        yield
    finally:
        if lost:
            _remove_what_we_made(repo, lost)


def _remove_what_we_made(repo: Path, made: Sequence[Path]) -> None:
    """Remove the folders of a stand-in, where they hold nothing but the run's note."""
    with contextlib.suppress(OSError):
        found = [one for one in repo.rglob("*") if not one.is_dir()]
        if len(found) <= 1 and not (repo / ".git").exists():
            shutil.rmtree(repo)
        for place in made[1:]:
            place.rmdir()


async def _latest(folder: RunFolder, spec: TaskSpec, options: Options) -> TaskContext:
    """Return the saved state, or the first one where the run was stopped before any step."""
    if attempts.untouched(folder):
        return attempts.begun(folder, spec, options.clock)
    return await attempts.latest(folder)
