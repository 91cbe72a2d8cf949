"""The attempts of a run: reading the latest, making the next, stopping the process that drives one.

Each attempt has a thread of its own (`run#n`), because fresh input on an existing thread would
restart it over its old state.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import AgentRunnerError, CheckpointCorrupt, LockHeld
from agentrunner.execution.commit import commit_of
from agentrunner.execution.criteria import criteria_of
from agentrunner.execution.deps import Clock
from agentrunner.execution.finding_diffs import kept_diffs
from agentrunner.execution.result import build_result
from agentrunner.execution.stuck import forgotten
from agentrunner.git.snapshots import Change
from agentrunner.graph.builder import graph_for
from agentrunner.graph.checkpoints import (
    check_file,
    damaged,
    open_saver_sync,
    read_errors,
    read_only,
    thread_config,
)
from agentrunner.money.bill import MadeCalls, bill_of
from agentrunner.money.counters import caught_up
from agentrunner.nodes.guarded import BadUpdate, validated
from agentrunner.results import Result
from agentrunner.state.decisions import in_one_line, with_decision
from agentrunner.state.lifecycle import TERMINAL, TaskState
from agentrunner.state.people import People, PersonDecision, Question
from agentrunner.state.rounds import rounds_so_far
from agentrunner.state.run_state import (
    Acceptance,
    Counters,
    Evidence,
    RunInfo,
    TaskContext,
    Verdict,
    updated,
)
from agentrunner.storage.locks import Holder, repository_lock, run_lock
from agentrunner.storage.process_time import start_time
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.storage.worker_ledger import Ledger, NotExecuted, Unclaimed
from agentrunner.supervisor.client import request_stop
from agentrunner.text.times import stamp

STOP_PATIENCE_SEC = 20.0
ALWAYS = frozenset({"run", "state", "counters", "criteria"})
"""Channels that every saved state has."""
CARRIED = "people.json"
"""File name in the folder of a run: what people decided about its task in an earlier one."""


def first_state(
    spec: TaskSpec, run_id: str, clock: Clock, people: People | None = None
) -> TaskContext:
    """Return the state of a run that has done nothing yet."""
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
        people=people or People(),
    )


def started(state: TaskContext, now: datetime, given_at: datetime | None) -> TaskContext:
    """Return the first state as its first step begins, with the time that the start took.

    `given_at` is when a person asked for the run; None for when the state was made.
    """
    run = state["run"]
    began = given_at or datetime.fromisoformat(run.started_at)
    took = max((now - began).total_seconds(), 0.0)
    times = {"started_at": stamp(began), "start_sec": round(took, 3)}
    return {**state, "run": run.model_copy(update=times)}


def begun(folder: RunFolder, spec: TaskSpec, clock: Clock) -> TaskContext:
    """Return the first state of an `untouched` run, with what people decided before it."""
    kept = folder.root / CARRIED
    people = People.model_validate_json(kept.read_bytes()) if kept.exists() else None
    return first_state(spec, folder.run_id, clock, people)


def unsaved(folder: RunFolder) -> bool:
    """Whether the run was stopped before it did anything, and no state of it was saved."""
    if not untouched(folder):
        return False
    try:
        newest_attempt(folder)
    except CheckpointCorrupt:
        return True
    return False


def newest_attempt(folder: RunFolder) -> int:
    """Return the number of the latest attempt; raise CheckpointCorrupt where none is saved."""
    check_file(folder.checkpoints)
    try:
        with closing(sqlite3.connect(read_only(folder.checkpoints), uri=True)) as database:
            rows = database.execute("select distinct thread_id from checkpoints").fetchall()
        numbers = [int(thread.rpartition("#")[2]) for (thread,) in rows]
    except read_errors() as error:
        raise damaged(folder.checkpoints, str(error)) from error
    if not numbers:
        raise damaged(folder.checkpoints, "it holds no state")
    return max(numbers)


def untouched(folder: RunFolder) -> bool:
    """Whether the run was stopped before it did anything; the first thing it does is logged."""
    return not folder.log_file.exists() and not any(folder.workers_dir.iterdir())


def has_worker(folder: RunFolder, state: TaskContext) -> bool:
    """Whether a worker was started for the order in the state and is not recorded yet."""
    order = state.get("order")
    if order is None or state["state"] in TERMINAL:
        return False
    return not isinstance(Ledger(folder).look(order.worker_run_id), Unclaimed | NotExecuted)


async def read(folder: RunFolder) -> tuple[TaskContext, Question | None]:
    """Return the saved state of the latest attempt, and the question that it waits with, if any.

    Raises CheckpointCorrupt.
    """
    return await asyncio.to_thread(read_sync, folder)


def read_sync(folder: RunFolder) -> tuple[TaskContext, Question | None]:
    """Like `read`, for callers without an event loop. Blocks."""
    attempt = newest_attempt(folder)
    with closing(open_saver_sync(folder.checkpoints, new=False)) as saver:
        try:
            config = thread_config(folder.run_id, attempt)
            snapshot = graph_for(saver).get_state(config)
        except read_errors() as error:
            raise damaged(folder.checkpoints, str(error)) from error
    state = _validated_state(folder, snapshot.values)
    return state, state.get("question") if snapshot.interrupts else None


def _validated_state(folder: RunFolder, values: Mapping[str, Any]) -> TaskContext:
    """Return loaded values as a state; raise CheckpointCorrupt where their shape is not ours."""
    try:
        whole = values.keys() >= ALWAYS
        whole = whole and all(validated(name, value) == value for name, value in values.items())
    except (ValueError, BadUpdate) as error:
        raise damaged(folder.checkpoints, str(error)) from error
    if not whole:
        raise damaged(folder.checkpoints, "it holds no whole state")
    return cast("TaskContext", values)


async def latest(folder: RunFolder) -> TaskContext:
    """Return the saved state of the latest attempt; raise CheckpointCorrupt."""
    return (await read(folder))[0]


async def waiting(folder: RunFolder) -> Question | None:
    """Return the question that the run waits with."""
    return (await read(folder))[1]


def result_of(
    folder: RunFolder, spec: TaskSpec, state: TaskContext, question: Question | None = None
) -> Result:
    """Return the result of a saved state."""
    path = folder.root / "note-path"
    note = path.read_text(encoding="utf-8") if path.exists() else None
    log = RunLog(folder.log_file)
    state = updated(state, caught_up(state, MadeCalls(log)))
    state = with_unseen(folder, state)
    return build_result(
        state,
        spec,
        waiting=question,
        note=note,
        bill=bill_of(log),
        commit=commit_of(log),
        latest_at=log.latest_at,
        diffs=kept_diffs(folder),
    )


def with_unseen(folder: RunFolder, state: TaskContext) -> TaskContext:
    """Return the state of a run that was stopped before its latest work was verified, with what it
    changed. Blocks.
    """
    from agentrunner.engine.queries import changes_not_seen

    changes: list[Change] = []
    if state["state"] not in TERMINAL:
        with suppress(AgentRunnerError, OSError):
            changes = changes_not_seen(folder, state)
    return {**state, "evidence": _unseen(state, changes)} if changes else state


def _unseen(state: TaskContext, changes: Sequence[Change]) -> Evidence:
    """Return the evidence so far, with changes that nothing has looked at yet."""
    seen = state.get("evidence") or Evidence(tree=state["tree"])
    return seen.model_copy(
        update={
            "changed_files": [one.path for one in changes],
            "deleted_files": [one.path for one in changes if one.kind == "deleted"],
            "lines_added": sum(one.added or 0 for one in changes),
            "lines_removed": sum(one.removed or 0 for one in changes),
            "stale": True,
        }
    )


# -- the next attempt ---------------------------------------------------------------------------


def next_attempt(
    state: TaskContext, spec: TaskSpec, *, max_loops: int | None, replan: bool
) -> TaskContext:
    """Return attempt n+1: criteria, history, snapshots and usage kept, loops from 0."""
    run = state["run"]
    fresh: TaskContext = {
        **state,
        "run": run.model_copy(
            update={
                "attempt": run.attempt + 1,
                "max_loops": spec.runner.meta.max_loops if max_loops is None else max_loops,
                "accepting": "",
            }
        ),
        "counters": state["counters"].model_copy(update={"loops": 0, "losses": 0}),
        "state": TaskState.VALIDATING,
        "wants_completion": False,
        "refused_tree": "",
        "order": None,
        "wait": None,
        "question": None,
        "answer": None,
        "verdict": None,
        "stuck": forgotten(state),
    }
    evidence = state.get("evidence")
    if evidence is not None and evidence.red:  # what was red may have been so by chance
        fresh["evidence"] = evidence.model_copy(update={"stale": True})
    if replan or not state.get("criteria") or state.get("baseline") is None:
        fresh["criteria"] = criteria_of(spec.criteria)
        fresh["state"] = TaskState.PENDING
        fresh["evidence"] = None
        fresh["assessment"] = None
        if baseline := state.get("baseline"):  # the tree stays; the checks and tests may change
            unknown: dict[str, Any] = {"test": None, "checks": {}, "measured_with": ""}
            fresh["baseline"] = baseline.model_copy(update=unknown)
    return fresh


def looking_again(state: TaskContext, spec: TaskSpec) -> TaskContext:
    """Return an attempt that verifies again: completion is requested, a no ends it as before."""
    run, verdict = state["run"], state.get("verdict")
    fresh = next_attempt(state, spec, max_loops=run.max_loops, replan=False)
    reason = run.accepting or (verdict.reason if verdict else "loop_limit")
    fresh["run"] = fresh["run"].model_copy(update={"accepting": reason})
    fresh["counters"] = state["counters"].model_copy(update={"losses": 0})
    fresh["wants_completion"] = True
    return fresh


def with_acceptance(state: TaskContext, spec: TaskSpec, acceptance: Acceptance) -> TaskContext:
    """Return an attempt that verifies again, with a person's acceptance of its tree."""
    fresh = looking_again(state, spec)
    fresh["acceptances"] = [*state.get("acceptances", []), acceptance]
    fresh["people"] = with_decision(state.get("people"), accepted(state, acceptance))
    return fresh


def accepted(state: TaskContext, acceptance: Acceptance) -> PersonDecision:
    """Return an acceptance as a person's decision for the records."""
    return PersonDecision(
        id=f"accept-{len(state.get('acceptances', [])) + 1}",
        kind="acceptance",
        asked=in_one_line(
            (", ".join(acceptance.criteria) or "the run as a whole")
            + ", nothing had to change" * acceptance.unchanged
        ),
        decision="accept",
        text=acceptance.reason,
        at=acceptance.at,
        by=acceptance.by,
        round=rounds_so_far(state),
    )


def keep_decision(folder: RunFolder, attempt: int, loop: int, decision: PersonDecision) -> None:
    """Append a person's decision, redacted already, to the run log."""
    RunLog(folder.log_file).append(
        "person",
        decision.id,
        decision.model_dump(mode="json"),
        attempt=attempt,
        loop=loop,
        at=decision.at,
    )


def cancelled(state: TaskContext, spec: TaskSpec, changes: Sequence[Change] = ()) -> TaskContext:
    """Return an attempt that ends at once, in the state that the run is in.

    `changes` are those of workers that nothing has looked at yet.
    """
    verdict = Verdict(state="FAILED", reason="cancelled", text="A person cancelled the run.")
    fresh = next_attempt(state, spec, max_loops=None, replan=False)
    if changes:
        fresh["evidence"] = _unseen(state, changes)
    return {**fresh, "state": state["state"], "verdict": verdict}


def leave_message(
    folder: RunFolder,
    state: TaskContext,
    message: str,
    at: str,
    *,
    by: str = "",
    asked: str = "",
) -> None:
    """Append a person's message for the run to its log, with the question it answers, if any."""
    log = RunLog(folder.log_file)
    number = len(log.records("message")) + 1
    log.append(
        "message",
        str(number),
        {"text": message, "by": by, "asked": asked},
        attempt=state["run"].attempt,
        loop=state["counters"].loops,
        at=at,
    )


# -- stopping -----------------------------------------------------------------------------------


async def stop_driver(folder: RunFolder, state_dir: Path, repo: Path) -> None:
    """Stop the run's driver and its worker gracefully; raise Busy if that takes too long."""
    holder = run_lock(folder).probe()
    if holder is not None:
        _signal(holder)
    deadline = asyncio.get_running_loop().time() + STOP_PATIENCE_SEC
    repository = repository_lock(state_dir, repo)
    asked = False
    while True:
        driver = run_lock(folder).probe()
        supervisor = repository.probe()
        ours = supervisor is not None and supervisor.run_id == folder.run_id
        if driver is None and not ours:
            return
        if driver is None and ours and not asked:
            stop_workers(folder)
            asked = True
        if asyncio.get_running_loop().time() > deadline:
            raise LockHeld(
                f"{folder.run_id} does not stop.",
                details=(("process", str(driver.pid if driver else "its supervisor")),),
                remedy=f"kill {driver.pid}" if driver else f"agentrunner logs {folder.run_id}",
            )
        await asyncio.sleep(0.1)


def _signal(holder: Holder) -> None:
    """Send SIGTERM to the driver, if the process of that number is still the same one."""
    if start_time(holder.pid) == holder.start_time:
        os.kill(holder.pid, signal.SIGTERM)


def stop_workers(folder: RunFolder) -> None:
    """Ask every live supervisor of the run to end its worker gracefully."""
    for worker in sorted(folder.workers_dir.iterdir()):
        request_stop(worker)
