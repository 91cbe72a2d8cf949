"""RUNNING | FIXING → VALIDATING: the worker of a decision, started once and never twice.

The ledger (agentrunner/storage/worker_ledger.py) records what became of a worker run. Only one that
was never started is started here. A live one is attached to, a finished one taken over, a lost one
recorded.
"""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from typing import cast

from langgraph.types import Command

from agentrunner.errors.workers import WorkerLost
from agentrunner.execution.budget_questions import (
    FOR_WORKER,
    check_budget,
    limits_for,
    stopped_by_budget,
)
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.egress import (
    host_question,
    refuse_unrecorded,
    usage_of,
)
from agentrunner.execution.launch import again_with_login, start_worker
from agentrunner.execution.recover import as_answered, earlier_tries, given_up, recovered
from agentrunner.execution.tries import after_loss
from agentrunner.execution.worker_record import (
    LiveUsage,
    booked_tokens,
    output_tails,
    record_run,
    tree_before,
    worker_run_of,
)
from agentrunner.money.amount import Amount
from agentrunner.money.counters import Usage, amounts_of, with_worker
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import RECENT, Counters, TaskContext, updated
from agentrunner.state.worker_runs import Outcome, WorkerOrder, WorkerRun
from agentrunner.storage.failpoints import reach
from agentrunner.storage.locks import me
from agentrunner.storage.worker_ledger import NotExecuted, Unclaimed
from agentrunner.supervisor.client import (
    SupervisedResult,
    wait,
)
from agentrunner.workers.base import Ended, WorkerEvent, WorkerReading
from agentrunner.workers.outcome import WorkerOutcome, outcome_of

MOST_EVENTS = 5_000
"""Events that are emitted of one worker run: a flood of short lines would take hours and fill the
disk."""
MAX_LOSSES = 2
"""Worker runs without an outcome in a row. After so many, no further one is started
automatically."""


async def run_worker(state: TaskContext, deps: Deps) -> Command[str]:
    """Run the ordered worker to its end, or take over what an earlier process began."""
    if (end := given_up(state)) is not None:
        return end
    order = state["order"]
    assert order is not None
    order = as_answered(state, deps, order)
    began = deps.clock.monotonic()
    process = None
    fresh = _never_ran(deps, order)
    if not fresh:
        supervised = await _wait(deps, order, process)
    if not deps.repository.held:  # this run's supervisor holds it if it is alive
        holder = me(state["run"].run_id, deps.clock.stamp())
        await asyncio.to_thread(deps.repository.acquire, holder)
    # Again after waiting: a supervisor whose driver died may have ended without an order.
    if fresh or _never_ran(deps, order):
        needed = limits_for(FOR_WORKER, free=not deps.member(order.member).may_cost)
        check_budget(state, deps, state["counters"], needed)
        process = await start_worker(state, deps, order)
        supervised = await _wait(deps, order, process)
    reach("after_finish")
    if supervised.outcome in ("lost", "infra"):
        return await _without_outcome(state, deps, order, supervised, here=process is not None)
    command = await asyncio.to_thread(_ended, state, deps, order, supervised)
    here = deps.clock.monotonic() - began
    return command if process else _with_time(command, state, supervised.duration_sec - here)


def _with_time(command: Command[str], state: TaskContext, seconds: float) -> Command[str]:
    """The command, with what a worker had worked before this process took it over."""
    update = cast("Update", command.update or {})
    counters = update.get("counters") or state["counters"]
    wall = round(counters.wall_sec + max(seconds, 0), 3)
    counters = counters.model_copy(update={"wall_sec": wall})
    return replace(command, update={**update, "counters": counters})


def _never_ran(deps: Deps, order: WorkerOrder) -> bool:
    return isinstance(deps.ledger.look(order.worker_run_id), Unclaimed | NotExecuted)


# -- waiting ------------------------------------------------------------------------------------


async def _wait(
    deps: Deps, order: WorkerOrder, process: subprocess.Popen[bytes] | None
) -> SupervisedResult:
    """Follow the worker run to its end and emit its events."""
    reader = deps.member(order.member).worker.events()
    usage = LiveUsage(deps, order)
    first, events = True, 0

    def on_output(stream: str, chunk: bytes) -> None:
        nonlocal first, events
        if first:
            first = False
            reach("mid_work")
        if stream != "stdout" or events > MOST_EVENTS:
            return
        for event in reader.feed(chunk)[: MOST_EVENTS + 1 - events]:
            events += 1
            if events > MOST_EVENTS:
                event = WorkerEvent("text", {"text": "… and more, which is in its output"})
            deps.emit(
                "worker_event",
                worker_run_id=order.worker_run_id,
                **{"kind": event.kind, **event.fields},
            )

    supervised = await wait(
        deps.ledger,
        order.worker_run_id,
        on_output=on_output,
        on_look=usage.look,
        stop=deps.stop,
        process=process,
        replay=process is not None,  # an earlier process has emitted what it read
    )
    usage.look()
    return supervised


async def _without_outcome(
    state: TaskContext,
    deps: Deps,
    order: WorkerOrder,
    supervised: SupervisedResult,
    *,
    here: bool,
) -> Command[str]:
    """Record a worker that was lost or never ran, with what it changed, then try once more.

    The new try has a new id. There are never three blind ones: after two the planner decides anew,
    or, where this very process failed twice, WorkerLost stops the run, which can be resumed.
    Without a sandbox there is no new try, since a lost worker's children may still be alive.
    """
    losses = state["counters"].losses + 1
    if here and losses >= MAX_LOSSES:
        raise WorkerLost(
            f"The worker came to nothing {losses} times in a row: {supervised.error}",
            remedy="agentrunner doctor, then agentrunner resume",
        )
    after = (await asyncio.to_thread(deps.snapshots.take)).tree
    trees = (tree_before(deps, order) or state["tree"], after)
    changes = await asyncio.to_thread(deps.snapshots.changes, *trees)
    blank = WorkerReading(completed=False)
    outcome = WorkerOutcome(cast("Outcome", supervised.outcome), supervised.error)
    run = worker_run_of(deps, order, supervised, trees, blank, outcome)
    reading = deps.member(order.member).worker.read(_ended_as(deps, order, supervised))
    used = usage_of(deps, order.worker_run_id)
    # What never ran has used nothing.
    amounts = _amounts(deps, order, used, reading) if supervised.outcome == "lost" else []
    await asyncio.to_thread(record_run, state, deps, run, blank, changes, amounts=amounts)
    counters = with_worker(state["counters"], amounts).model_copy(update={"losses": losses})
    update: Update = {
        "counters": counters,
        "recent": [*state.get("recent", []), run][-RECENT:],
        "tree": after,
    }
    if not deps.sandbox.isolates or losses >= MAX_LOSSES:
        return Command(
            update={**update, "state": TaskState.VALIDATING, "order": None}, goto="validate"
        )
    again = order.model_copy(update={"worker_run_id": after_loss(order.worker_run_id, losses)})
    return Command(update={**update, "order": again}, goto="run_worker")


# -- the end ------------------------------------------------------------------------------------


def _ended_as(deps: Deps, order: WorkerOrder, supervised: SupervisedResult) -> Ended:
    """Return the end of the worker run as its adapter reads it."""
    return Ended(
        exit_code=supervised.exit_code,
        outcome=supervised.outcome,
        stdout=supervised.stdout,
        stderr=supervised.stderr,
        home=deps.folder.sandbox_dir,
        session_tokens=booked_tokens(deps, order),
    )


def _amounts(deps: Deps, order: WorkerOrder, used: Usage, reading: WorkerReading) -> list[Amount]:
    """Return what the worker run cost, as far as it is known."""
    member = deps.member(order.member)
    return amounts_of(
        used,
        reading,
        gateway=member.has_gateway,
        calls_model=member.worker.needs_model,
        subscribed=member.subscribed,
    )


def _recorded(
    state: TaskContext, deps: Deps, order: WorkerOrder, supervised: SupervisedResult
) -> tuple[WorkerRun, Counters]:
    """Record the worker run: outcome by rule, changes by snapshot, texts by output. Blocks."""
    ended = _ended_as(deps, order, supervised)
    worker = deps.member(order.member).worker
    reading, used = worker.read(ended), usage_of(deps, order.worker_run_id)
    refuse_unrecorded(used)
    after = supervised.tree_after or deps.snapshots.take().tree
    trees = (tree_before(deps, order) or state["tree"], after)
    changes = deps.snapshots.changes(*trees)
    # A try that continues one that was cut off may have nothing left to do.
    earlier = earlier_tries(state.get("recent", []), order)
    changed = len(changes) + sum(tried.changed_files + len(tried.commands) for tried in earlier)
    outcome = outcome_of(
        ended, reading, gateway_error=used.last_error, changed=changed, reports=worker.reports
    )
    run = worker_run_of(deps, order, supervised, trees, reading, outcome)
    amounts = _amounts(deps, order, used, reading)
    embedded = supervised.after.get("embedded")
    seen = record_run(state, deps, run, reading, changes, embedded, amounts=amounts)
    counters = with_worker(state["counters"], amounts).model_copy(update={"losses": 0})
    return run.model_copy(update=seen), counters


def _ended(
    state: TaskContext, deps: Deps, order: WorkerOrder, supervised: SupervisedResult
) -> Command[str]:
    """Return the step after the run: validate it, or deal with what prevented it. Blocks."""
    run, counters = _recorded(state, deps, order, supervised)
    output_tail, error_tail = output_tails(deps, supervised)
    update: Update = {
        "state": TaskState.VALIDATING,
        "counters": counters,
        "order": None,
        "answer": None,
        "recent": [*state.get("recent", []), run][-RECENT:],
        "tail": output_tail,
        "error_tail": error_tail,
        "tree": run.tree_after,
    }
    if again := again_with_login(deps, order, run):
        working: Update = {**update, "state": state["state"], "order": again}
        return Command(update=working, goto="run_worker")
    if command := recovered(state, deps, order, run, update):
        return command
    if command := stopped_by_budget(state, deps, order, run, update):
        return command
    if run.outcome == "egress":
        asking = updated(state, update)
        if asked := host_question(asking, deps, run, supervised.error):
            return Command(update={**update, "question": asked}, goto="approve")
    return Command(update=update, goto="validate")
