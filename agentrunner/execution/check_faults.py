"""Checks that people agreed to and that cannot run: found out by running them, then asked about.

A check counts as unable to run only where it does not run on the tree before the work either, in
the same kind of room. Else a worker would get rid of a check by breaking it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from agentrunner.config.prd import describe_check
from agentrunner.config.spec import Check
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.proposals import asked_by_people, without
from agentrunner.execution.questions import question
from agentrunner.execution.silence import AGAIN, DROP, END, PlannerOrder
from agentrunner.state.decisions import total
from agentrunner.state.people import CHECK, CHECK_AFTER, Question
from agentrunner.state.run_state import (
    Acceptance,
    Baseline,
    CheckOutcome,
    Criterion,
    Evidence,
    FormerCheck,
    TaskContext,
)
from agentrunner.text.terminal import sanitize
from agentrunner.verification.proposals import Proposal, has_own_check, try_checks

MOST_FORMER = 5
"""Checks that a criterion had, in the state."""
MOST_OUTPUT = 500
DETAIL = 200


async def tried_by_people(
    state: TaskContext, deps: Deps, back_to: str
) -> tuple[Update, Question | None]:
    """Checks of people that nothing has run yet, run on the tree before the work.

    With them the baseline and what they wait for, and the question about the first that cannot
    run; `back_to` is the node that goes on. Raises SandboxError and OSError.
    """
    baseline, criteria = state.get("baseline"), state["criteria"]
    if baseline is None:
        return {}, None
    known = {one.criterion_id: one.what for one in baseline.check_outcomes}

    def untried(one: Criterion) -> bool:
        own = one.check_origin == "human" and has_own_check(one)
        return own and known.get(one.id) != describe_check(one.check)

    if not any(map(untried, criteria)):
        return {}, None
    baseline, tried = await try_checks(
        deps.verifier, criteria, baseline, asked_by_people(deps), untried
    )
    awaits = {one.criterion_id: one.awaits for one in tried}
    criteria = [
        one.model_copy(update={"awaits": awaits[one.id]}) if one.id in awaits else one
        for one in criteria
    ]
    update: Update = {"baseline": baseline, "criteria": criteria}
    faulty = [one for one in tried if one.standing == "cannot_run"]
    if not faulty or not _asks(state, deps):
        return update, None
    return update, _question(state, deps, faulty[0].criterion_id, faulty[0], back_to)


async def lost_in_mid_run(state: TaskContext, deps: Deps, evidence: Evidence) -> Question | None:
    """The question about a check that ran before the work, and now starts on neither tree.

    One that still starts on the tree before the work was broken by the work: it is red. Raises
    SandboxError and OSError.
    """
    baseline = state.get("baseline")
    if baseline is None or not _asks(state, deps):
        return None
    before = {one.criterion_id: one for one in baseline.check_outcomes}
    stopped = {one.criterion_id for one in evidence.checks if _stopped(one, before)}
    mine = [one for one in state["criteria"] if one.id in stopped and one.awaits is None]
    if not mine:
        return None
    tried = await deps.verifier.first_tries(mine, baseline)
    for one in tried:
        if one.why:
            fault = Proposal(one.criterion.id, "cannot_run", one.outcome.what, one.why)
            return _question(state, deps, one.criterion.id, fault, "validate")
    return None


def _asks(state: TaskContext, deps: Deps) -> bool:
    """Whether anybody is asked: not in CI, and not where a person just said that it is right."""
    return deps.spec.runner.meta.on_unusable == "ask" and not state["run"].accepting


def _stopped(now: CheckOutcome, before: dict[str, CheckOutcome]) -> bool:
    """Whether a check that came to decide something before the work does not start any more."""
    was = before.get(now.criterion_id)
    ran = was is not None and was.outcome != "not_run" and not was.unstarted
    return ran and now.unstarted and now.outcome == "failed"


def _question(
    state: TaskContext, deps: Deps, criterion_id: str, fault: Proposal, back_to: str
) -> Question:
    """What a person is asked about a check that cannot run; kind `planner`, as it is answered."""
    after, before = state["counters"].worker_runs > 0, state.get("question")
    output = sanitize(deps.redactor.redact(fault.output))[:MOST_OUTPUT]
    what = sanitize(deps.redactor.redact(fault.what))
    subject: dict[str, Any] = {
        "asked_for": CHECK_AFTER if after else CHECK,
        "criterion": criterion_id,
        "check": what,
        "code": "check-cannot-run",
        "fault": f"the check of {criterion_id} cannot run",
        "output": output,
        "back_to": back_to,
        "answered": total(state.get("people")),  # the same later is another question
        "asked": None if before is None else before.model_dump(mode="json"),
    }
    place = "not even on the files as they were before the work" if after else "here"
    text = (
        f"The check of {criterion_id}, `{what}`, cannot run, {place}: {output or 'no output'}. "
        "Put right what it lacks, give another check, or drop it."
    )
    deps.warn(state, "check-cannot-run", text)
    return question("planner", text, subject, state, options=[AGAIN, DROP, END])


# -- what a person says to it ----------------------------------------------------------------------


def about_check(
    state: TaskContext, subject: dict[str, Any], word: PlannerOrder, *, at: str, by: str
) -> Update:
    """The state after a person's word: tried again, replaced, dropped, or accepted as it is."""
    id_ = str(subject["criterion"])
    baseline, evidence = state.get("baseline"), state.get("evidence")
    update: Update = {"criteria": [_after_word(c, id_, word, state) for c in state["criteria"]]}
    again = word.what == "again"
    if baseline is not None and not (again and _counted(baseline, id_)):
        update["baseline"] = without(baseline, {id_})  # what stands there now is yet to be run
    if evidence is not None:
        update["evidence"] = measured_anew(evidence, {id_})
    if word.what == "accept":
        reason, who = word.text, by or "a person"
        yes = Acceptance(criteria=[id_], reason=reason, by=who, at=at, tree="")
        update["acceptances"] = [*state.get("acceptances", []), yes]
    return update


def _after_word(one: Criterion, id_: str, word: PlannerOrder, state: TaskContext) -> Criterion:
    if one.id != id_ or word.what == "again" or one.check is None:
        return one
    reason = word.text if word.what == "accept" else "it could not run"
    former = with_former(one, state, reason, by="person", replaced=word.what == "check")
    if word.what == "check":
        check: Check | None = Check(kind="command", run=word.text)
        origin = "human"
    else:
        check, origin = None, "task"
    return one.model_copy(
        update={
            "check": check,
            "check_origin": origin,
            "former": former,
            "awaits": None,
            "late": False,
        }
    )


def _counted(baseline: Baseline, id_: str) -> bool:
    """Whether it ran on the tree before the work, so that this stays what it said there."""
    return any(o.criterion_id == id_ and o.outcome != "not_run" for o in baseline.check_outcomes)


def measured_anew(evidence: Evidence, ids: Collection[str]) -> Evidence:
    """The evidence without what checks said that are gone; the tree is then measured again."""
    return evidence.model_copy(
        update={
            "checks": [one for one in evidence.checks if one.criterion_id not in ids],
            "proofs": [one for one in evidence.proofs if one.target not in ids],
            "stale": True,
        }
    )


def with_former(
    one: Criterion, state: TaskContext, reason: str, *, by: str, replaced: bool
) -> list[FormerCheck]:
    """The checks that the criterion had, with the one that it has now."""
    evidence, baseline = state.get("evidence"), state.get("baseline")
    outcomes = [
        *(baseline.check_outcomes if baseline else []),
        *(evidence.checks if evidence else []),
    ]
    what = describe_check(one.check)
    last = next((o for o in reversed(outcomes) if (o.criterion_id, o.what) == (one.id, what)), None)
    gone = FormerCheck.model_validate(
        {
            "what": what,
            "outcome": last.outcome if last else "not_run",
            "detail": last.detail[:DETAIL] if last else "",
            "reason": reason[:MOST_OUTPUT],
            "by": by,
            "replaced": replaced,
            "worker_runs": state["counters"].worker_runs,
        }
    )
    return [*one.former, gone][-MOST_FORMER:]
