"""Checks of people that cannot run: found by running them; then a person is asked.

A check counts as unable to run only where it does not run on the tree before the work either, in
the same kind of clean room. Otherwise a worker could get rid of a check by breaking it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from agentrunner.config.prd import describe_check
from agentrunner.config.spec import Check
from agentrunner.errors.replies import ReplyInvalid
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.planner_checks import asked_by_people, check_from, without
from agentrunner.execution.questions import question, remark
from agentrunner.execution.silence import AGAIN, DROP, END, PlannerOrder
from agentrunner.protocol import NextAction
from agentrunner.protocol.known_ids import known_id
from agentrunner.state.decisions import total
from agentrunner.state.people import CHECK, CHECK_AFTER, Question
from agentrunner.state.run_state import (
    Acceptance,
    Baseline,
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    FormerCheck,
    TaskContext,
)
from agentrunner.state.summary import NOTICED
from agentrunner.text.terminal import sanitize
from agentrunner.verification.evidence.baseline_checks import (
    BaselineCheck,
    has_own_check,
    proposed,
    try_checks,
)

MOST_FORMER = 5
"""Former checks of a criterion that the state keeps."""
MOST_OUTPUT = 500
DETAIL = 200


async def tried_by_people(
    state: TaskContext, deps: Deps, back_to: str
) -> tuple[Update, Question | None]:
    """Run the checks of people that have not run yet on the tree before the work.

    Return the update (the baseline, and what the checks wait for) and the question about the first
    that cannot run; `back_to` is the node that continues. Raises SandboxError and OSError.
    """
    baseline, criteria = state.get("baseline"), state["criteria"]
    if baseline is None:
        return {}, None
    known = {one.criterion_id: one.what for one in baseline.check_outcomes}

    def untried(criterion: Criterion) -> bool:
        own = criterion.check_origin == "human" and has_own_check(criterion)
        return own and known.get(criterion.id) != describe_check(criterion.check)

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
    if not faulty or not _may_ask_person(state, deps):
        return update, None
    return update, _question(state, deps, faulty[0].criterion_id, faulty[0], back_to)


async def lost_in_mid_run(state: TaskContext, deps: Deps, evidence: Evidence) -> Question | None:
    """Return the question about a check that ran before the work, and now starts on neither tree.

    A check that still starts on the tree before the work was broken by the work: it is red. Raises
    SandboxError and OSError.
    """
    baseline = state.get("baseline")
    if baseline is None or not _may_ask_person(state, deps):
        return None
    before = {one.criterion_id: one for one in baseline.check_outcomes}
    stopped = {one.criterion_id for one in evidence.checks if _stopped_running(one, before)}
    mine = [one for one in state["criteria"] if one.id in stopped and one.awaits is None]
    if not mine:
        return None
    tried = await deps.verifier.first_tries(mine, baseline)
    for one in tried:
        if one.why:
            fault = BaselineCheck(one.criterion.id, "cannot_run", one.outcome.what, one.why)
            return _question(state, deps, one.criterion.id, fault, "validate")
    return None


def _may_ask_person(state: TaskContext, deps: Deps) -> bool:
    """Whether a person may be asked: not in CI, and not where one is accepting the run."""
    return deps.spec.runner.meta.on_unusable == "ask" and not state["run"].accepting


def _stopped_running(now: CheckOutcome, before: dict[str, CheckOutcome]) -> bool:
    """Whether a check that ran before the work does not start any more."""
    earlier = before.get(now.criterion_id)
    ran = earlier is not None and earlier.outcome != "not_run" and not earlier.unstarted
    return ran and now.unstarted and now.outcome == "failed"


def _question(
    state: TaskContext, deps: Deps, criterion_id: str, fault: BaselineCheck, back_to: str
) -> Question:
    """Return the question about a check that cannot run; of kind `planner`, as it is answered."""
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


# -- the person's answer --------------------------------------------------------------------


def about_check(
    state: TaskContext, subject: dict[str, Any], order: PlannerOrder, *, at: str, by: str
) -> Update:
    """Return the update of a person's answer: try again, replace, drop, or accept as it is."""
    id_ = str(subject["criterion"])
    baseline, evidence = state.get("baseline"), state.get("evidence")
    update: Update = {"criteria": [_after_answer(c, id_, order, state) for c in state["criteria"]]}
    again = order.what == "again"
    if baseline is not None and not (again and _ran_before_work(baseline, id_)):
        update["baseline"] = without(baseline, {id_})  # the check that is there now has yet to run
    if evidence is not None:
        update["evidence"] = measured_anew(evidence, {id_})
    if order.what == "accept":
        reason, who = order.text, by or "a person"
        acceptance = Acceptance(criteria=[id_], reason=reason, by=who, at=at, tree="")
        update["acceptances"] = [*state.get("acceptances", []), acceptance]
    return update


def _after_answer(
    criterion: Criterion, id_: str, order: PlannerOrder, state: TaskContext
) -> Criterion:
    if criterion.id != id_ or order.what == "again" or criterion.check is None:
        return criterion
    reason = order.text if order.what == "accept" else "it could not run"
    former = with_former(criterion, state, reason, by="person", replaced=order.what == "check")
    if order.what == "check":
        check: Check | None = Check(kind="command", run=order.text)
        origin = "human"
    else:
        check, origin = None, "task"
    return criterion.model_copy(
        update={
            "check": check,
            "check_origin": origin,
            "former": former,
            "awaits": None,
            "late": False,
        }
    )


def _ran_before_work(baseline: Baseline, id_: str) -> bool:
    """Whether the check ran on the tree before the work, so that its outcome there stays valid."""
    return any(o.criterion_id == id_ and o.outcome != "not_run" for o in baseline.check_outcomes)


def measured_anew(evidence: Evidence, ids: Collection[str]) -> Evidence:
    """Return the evidence without the checks of these criteria; the tree is then measured again."""
    return evidence.model_copy(
        update={
            "checks": [one for one in evidence.checks if one.criterion_id not in ids],
            "proofs": [one for one in evidence.proofs if one.target not in ids],
            "stale": True,
        }
    )


def with_former(
    criterion: Criterion, state: TaskContext, reason: str, *, by: str, replaced: bool
) -> list[FormerCheck]:
    """Return the criterion's former checks, with its present one added."""
    evidence, baseline = state.get("evidence"), state.get("baseline")
    outcomes = [
        *(baseline.check_outcomes if baseline else []),
        *(evidence.checks if evidence else []),
    ]
    what = describe_check(criterion.check)
    last = next(
        (o for o in reversed(outcomes) if (o.criterion_id, o.what) == (criterion.id, what)), None
    )
    former = FormerCheck.model_validate(
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
    return [*criterion.former, former][-MOST_FORMER:]


def refuse_foreign_checks(chosen: NextAction, criteria: Sequence[Criterion]) -> None:
    """Raise ReplyInvalid for a change of a check that the planner did not write, or of none."""
    own = {one.id: one for one in criteria if proposed(one)}
    names = ", ".join(own) or "none"
    for number, change in enumerate(chosen.changed_checks):
        place = f"changed_checks.{number}"
        found = own.get(known_id(change.id, [one.id for one in criteria]) or "")
        if found is None:
            raise ReplyInvalid(f"{place}.id", f"criteria whose checks you wrote yourself: {names}")
        if change.check and check_from(change.check) is None:
            raise ReplyInvalid(f"{place}.check", "this check cannot be read")
        if change.check and check_from(change.check) == found.check:
            raise ReplyInvalid(f"{place}.check", "this is the check that it has")


async def changed_checks(
    state: TaskContext, deps: Deps, chosen: NextAction, counters: Counters
) -> Update:
    """Return the update with the checks that the planner withdraws or replaces; {} where it does
    neither.

    Description and weight stay. A criterion whose check it writes or withdraws once a worker has
    started is at most judged. A check that cannot run on the tree before the work is not taken.
    Raises SandboxError and OSError.
    """
    baseline, by_id = state.get("baseline"), {one.id: one for one in state["criteria"]}
    reasons: dict[str, str] = {}
    wanted: dict[str, Check | None] = {}
    for change in chosen.changed_checks:
        if change.id in by_id and proposed(by_id[change.id]):
            reasons[change.id] = change.reason
            wanted[change.id] = check_from(change.check) if change.check else None
    if not wanted:
        return {}
    late = counters.worker_runs > 0
    changed = [_changed(by_id[i], state, new, reasons[i], late) for i, new in wanted.items()]
    refused: list[BaselineCheck] = []
    if baseline is not None:
        replaced = [one for one in changed if one.check is not None]
        fresh, tried = await try_checks(
            deps.verifier, replaced, without(baseline, wanted), asked_by_people(deps)
        )
        refused = [one for one in tried if one.standing == "cannot_run"]
        awaits = {one.criterion_id: one.awaits for one in tried}
        changed = [one.model_copy(update={"awaits": awaits.get(one.id)}) for one in changed]
        baseline = _with_old_outcomes(fresh, baseline, {one.criterion_id for one in refused})
    taken = {one.id: one for one in changed if one.id not in {r.criterion_id for r in refused}}
    _report(state, deps, list(taken.values()), late=late)
    update: Update = {"criteria": [taken.get(one.id, one) for one in state["criteria"]]}
    if baseline is not None:
        update["baseline"] = baseline
    if (evidence := state.get("evidence")) is not None and taken:
        update["evidence"] = measured_anew(evidence, taken)
    if refused:
        faults = "; ".join(f"{one.criterion_id}: {one.what} ({one.output})" for one in refused)
        words = f"{NOTICED}these checks cannot run here and were not taken: {faults}"
        update["remarks"] = remark(state, words)
        deps.warn(state, "check-refused", f"Checks of the planner that cannot run here: {faults}")
    return update


def _changed(
    criterion: Criterion, state: TaskContext, check: Check | None, reason: str, late: bool
) -> Criterion:
    former = with_former(criterion, state, reason, by="planner", replaced=check is not None)
    origin = "task" if check is None else "model"
    return criterion.model_copy(
        update={"check": check, "check_origin": origin, "awaits": None, "former": former,
                "late": late and check is not None}
    )  # fmt: skip


def _with_old_outcomes(fresh: Baseline, before: Baseline, ids: set[str]) -> Baseline:
    """Return the new baseline, with the old outcomes of these criteria, whose checks stay."""
    kept = [outcome for outcome in before.check_outcomes if outcome.criterion_id in ids]
    others = [outcome for outcome in fresh.check_outcomes if outcome.criterion_id not in ids]
    passed = {name: value for name, value in before.checks.items() if name in ids}
    return fresh.model_copy(
        update={"checks": {**fresh.checks, **passed}, "check_outcomes": [*others, *kept]}
    )


def _report(state: TaskContext, deps: Deps, changed: Sequence[Criterion], *, late: bool) -> None:
    """Warn in log, events and note of each check taken back, and what that is worth."""
    worth = " Such a criterion is at most judged." if late else ""
    for code, what in (("check-replaced", "replaced"), ("check-withdrawn", "withdrawn")):
        mine = [one for one in changed if one.former[-1].replaced == (what == "replaced")]
        parts = []
        for one in mine:
            gone = one.former[-1]
            new = f" by `{describe_check(one.check)}`" if one.check else ""
            parts.append(f"{one.id}: `{gone.what}` ({gone.outcome}){new}, because: {gone.reason}")
        if parts:
            deps.warn(
                state, code, f"Checks that the planner has {what}: {'; '.join(parts)}.{worth}"
            )
