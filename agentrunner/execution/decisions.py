"""What people decide while a run goes on, added to its records; each decision is added once."""

from __future__ import annotations

from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.questions import remark
from agentrunner.execution.stuck import forgotten
from agentrunner.state.decisions import TEXT, decided, with_decision
from agentrunner.state.people import BY_PLAN, Answer, People, PersonDecision, Question
from agentrunner.state.rounds import rounds_so_far
from agentrunner.state.run_state import TaskContext
from agentrunner.state.summary import FROM_PERSON
from agentrunner.storage.run_log import Record

KNOWN_RED = "known_red"
"""The kind of the run log's records of tests that people take for known reds."""
GRANTED_UNASKED = "resume-"
"""How the keys of grants begin that were given with `resume --budget`."""


def record_answer(
    state: TaskContext, deps: Deps, asked: Question, answer: Answer
) -> tuple[Answer, Update]:
    """Record a person's answer; return it cut for the state, and the update of the records.

    The run log gets the whole text. A node that runs again after a crash records the same once.
    """
    redact = deps.redactor.redact  # an answer from Studio arrives unredacted
    answer = answer.model_copy(update={"text": redact(answer.text)})
    people, number = state.get("people"), rounds_so_far(state)
    decision = decided(people, asked, answer, at=deps.clock.stamp(), round=number)
    if answer.by == BY_PLAN:
        return answer, {}
    keep(state, deps, decision)
    cut = answer.model_copy(update={"text": answer.text[:TEXT]})
    return cut, {"people": with_decision(people, decision)}


def keep(state: TaskContext, deps: Deps, one: PersonDecision) -> None:
    """Append a decision to the run log, whole."""
    deps.record(state, "person", one.id, one)


def messages(state: TaskContext, deps: Deps) -> Update:
    """Return the update of what people wrote with `resume` since the last call: messages and
    grants.

    It is saved with the update of the node that asked, so that a crash loses and doubles none.
    """
    before = state.get("people") or People()
    counted = state["counters"].messages
    fresh = deps.log.records("message")[counted:]
    grants = [r for r in deps.log.records("grant") if r.key.startswith(GRANTED_UNASKED)]
    found = [_message(state, record) for record in fresh]
    found += [_grant(state, record) for record in grants[before.grants :]]
    if not found:
        return {}
    people = before
    for decision in found:
        keep(state, deps, decision)
        people = with_decision(people, decision)
    update: Update = {"people": people.model_copy(update={"grants": len(grants)})}
    if fresh:
        update["counters"] = state["counters"].model_copy(update={"messages": counted + len(fresh)})
        update["remarks"] = remark(state, FROM_PERSON + "a message; it stands under `people`.")
        update["stuck"] = forgotten(state)
    return update


def _message(state: TaskContext, record: Record) -> PersonDecision:
    return PersonDecision(
        id=f"message-{record.key}",
        kind="message",
        asked=str(record.data.get("asked") or ""),
        decision="message",
        text=str(record.data["text"]),
        at=record.at,
        by=str(record.data.get("by") or ""),
        round=rounds_so_far(state),
        steers=True,
    )


def _grant(state: TaskContext, record: Record) -> PersonDecision:
    amounts = record.data.get("amounts") or {}
    return PersonDecision(
        id=f"grant-{record.key.removeprefix(GRANTED_UNASKED)}",
        kind="budget",
        decision="answer",
        text=" ".join(f"{name}=+{amount:.12g}" for name, amount in amounts.items()),
        at=record.at,
        round=rounds_so_far(state),
    )


def why_not_acceptable(state: TaskContext, deps: Deps) -> str:
    """Return a sentence where the tree is the one from before the run; "" where it can be accepted.

    It says what to do: how to get the work back, or how to state that nothing had to change.
    Blocks.
    """
    evidence, baseline = state.get("evidence"), state.get("baseline")
    accepting = [
        acceptance
        for acceptance in state.get("acceptances", [])
        if evidence and acceptance.tree == evidence.tree
    ]
    if evidence is None or baseline is None or not accepting:
        return ""
    if any(acceptance.unchanged for acceptance in accepting):
        return ""
    changes = deps.snapshots.changes(baseline.origin or baseline.tree, evidence.tree)
    if {change.path for change in changes} - set(baseline.test_writes):
        return ""
    run = state["run"].run_id
    unchanged = f'agentrunner accept {run} --unchanged --reason "…"'
    undone = [record for record in deps.log.records("undo") if not record.data.get("redone")]
    rounds = [r for r in deps.log.history().worker_runs if r.data.get("tree_after")]
    worked = [
        number
        for number, record in enumerate(rounds, start=1)
        if record.data["tree_before"] != record.data["tree_after"]
    ]
    if not worked:
        return f"The run changed nothing; where nothing had to change, say so: {unchanged}"
    if undone and undone[-1].data["tree_after"] in (evidence.tree, evidence.tree_after):
        back = f"agentrunner undo {run}"
    else:
        back = "; ".join(f"agentrunner diff {run} --round {n} | git apply" for n in worked[-3:])
    return (
        "The run's work is no longer there: the files are as they were before it. "
        f"It comes back with: {back}. Where nothing had to change: {unchanged}"
    )
