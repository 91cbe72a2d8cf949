"""A planner changes a check of its own: it is withdrawn or replaced, and always reported."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.config.prd import describe_check
from agentrunner.config.spec import Check
from agentrunner.errors.replies import ReplyInvalid
from agentrunner.execution.check_faults import measured_anew, with_former
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.planner_checks import asked_by_people, check_from, without
from agentrunner.execution.questions import remark
from agentrunner.protocol import NextAction
from agentrunner.protocol.known_ids import known_id
from agentrunner.state.run_state import Baseline, Counters, Criterion, TaskContext
from agentrunner.state.summary import NOTICED
from agentrunner.verification.evidence.baseline_checks import BaselineCheck, proposed, try_checks


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
