"""A planner's checks count once they have run: it learns the outcome of each at once."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentrunner.config.spec import Check
from agentrunner.execution.asking import AskFailed, NeedsPerson, ask, keeping
from agentrunner.execution.deps import Deps
from agentrunner.execution.questions import remark
from agentrunner.planners.base import answers_by_code
from agentrunner.protocol import CriterionDraft, PlanTask
from agentrunner.state.run_state import Baseline, Counters, Criterion, TaskContext, updated
from agentrunner.verification.evidence.baseline_checks import (
    BaselineCheck,
    has_own_check,
    proposed,
    try_checks,
)

MOST_LISTED = 2
"""How often a planner is asked about checks that cannot run; then they are dropped."""
WORDS = {
    "cannot_run": "cannot run here",
    "green": "passes already, so it shows nothing",
    "taken": "is the check of another criterion, and a check stands for one",
}
LOST = ("cannot_run", "taken")
"""Standings of checks that are dropped unless the planner replaces them."""


async def settled(
    state: TaskContext,
    deps: Deps,
    criteria: list[Criterion],
    *,
    repository: Mapping[str, Any] | None,
    names: Collection[str],
) -> tuple[list[Criterion], Baseline, Counters]:
    """Return the plan with checks that were seen to run on the old tree, the baseline, and the
    counters.

    A check that cannot run, or that another criterion has already, is reported to the planner,
    twice at most, then dropped; its criterion stays. A check that is green already is reported
    once. Raises as `ask` where a budget is spent or the planner is unavailable.
    """
    baseline, counters = state["baseline"], state["counters"]
    assert baseline is not None
    late = counters.worker_runs > 0
    baseline, measured = await try_checks(deps.verifier, criteria, baseline, asked_by_people(deps))
    tried = _one_for_each(measured, criteria)
    _keep(state, deps, tried, 0)
    reported: set[str] = set()
    for number in range(1, MOST_LISTED + 1):
        faults = [one for one in tried if _is_at_fault(one, reported)]
        if not faults or not _planner_can_react(deps, counters):
            break
        reported |= {one.criterion_id for one in faults}
        asking = updated(
            state,
            {
                "criteria": criteria,
                "baseline": baseline,
                "counters": counters,
                "remarks": remark(state, _sentence(faults, criteria)),
            },
        )
        try:
            with keeping({"baseline": state["baseline"]}):
                message, counters = await ask(
                    asking, deps, "plan_task", counters, repository=repository,
                    at_fault=tuple(dict.fromkeys(one.criterion_id for one in faults)),
                )  # fmt: skip
        except (NeedsPerson, AskFailed) as error:
            counters = error.counters  # there is a plan; what cannot run is dropped below
            break
        assert isinstance(message.payload, PlanTask)
        criteria, changed = with_other_checks(criteria, message.payload, faults, names)
        if not changed:
            break
        fresh = [one for one in criteria if one.id in changed]
        baseline = without(baseline, changed)
        baseline, again = await try_checks(deps.verifier, fresh, baseline, asked_by_people(deps))
        measured = [one for one in measured if one.criterion_id not in changed] + again
        tried = _one_for_each(measured, criteria)
        _keep(state, deps, [one for one in tried if one.criterion_id in changed], number)
    lost = [one for one in tried if one.standing in LOST]
    if lost:
        gone = [f"{one.criterion_id}: {one.what} ({one.output})" for one in lost]
        deps.warn(
            state,
            "check-dropped",
            "Checks of the planner that cannot run here, or that another criterion has, are"
            f" dropped: {'; '.join(gone)}",
        )
    dropped = {one.criterion_id for one in lost}
    criteria = [_as_tried(one, tried, dropped, late=late) for one in criteria]
    mapped = {one.id: name for one in criteria if (name := _named_test(one)) in names}
    criteria = [_as_mapped(one, mapped.get(one.id)) for one in criteria]
    return criteria, without(baseline, {*dropped, *mapped}), counters


def _named_test(criterion: Criterion) -> str | None:
    """Return the test that a planner's check names alone, and that it does not still await."""
    check = criterion.check if proposed(criterion) and criterion.awaits is None else None
    return check.name if check is not None and check.kind == "test" else None


def _as_mapped(criterion: Criterion, test: str | None) -> Criterion:
    """Return the criterion with a test of the suite mapped to it in place of a check of it.

    That this test stands for it is the planner's word, under either key.
    """
    if test is None:
        return criterion
    update = {"check": None, "check_origin": "task", "tests": [test], "tests_origin": "model"}
    return criterion.model_copy(update=update)


def _is_at_fault(tried: BaselineCheck, reported: Collection[str]) -> bool:
    """Whether the planner should hear of a check: each time that it would be lost, once if
    green.
    """
    green = tried.standing == "green" and tried.criterion_id not in reported
    return tried.standing in LOST or green


def _one_for_each(
    tried: Sequence[BaselineCheck], criteria: Sequence[Criterion]
) -> list[BaselineCheck]:
    """Return the outcomes, `taken` where an earlier criterion has the same check.

    A small model gave the test of one function to a criterion about another one as well, which was
    then proven by it.
    """
    first: dict[str, str] = {}
    for criterion in criteria:
        if criterion.check is not None and has_own_check(criterion):
            first.setdefault(criterion.check.model_dump_json(), criterion.id)
    by_id = {one.id: one.check for one in criteria if one.check is not None and proposed(one)}
    found = []
    for one in tried:
        check = by_id.get(one.criterion_id)
        owner = first.get(check.model_dump_json(), "") if check is not None else ""
        is_taken = owner not in ("", one.criterion_id) and one.standing != "cannot_run"
        found.append(
            replace(one, standing="taken", output=f"{owner} has it", awaits=None)
            if is_taken
            else one
        )
    return found


def _as_tried(
    criterion: Criterion, tried: Sequence[BaselineCheck], dropped: Collection[str], *, late: bool
) -> Criterion:
    """Return the criterion with what its check awaits, or without a check that was dropped."""
    update: dict[str, object] = {"check": None, "check_origin": "task"}
    if criterion.id not in dropped:
        awaits = {one.criterion_id: one.awaits for one in tried}
        update = {"awaits": awaits.get(criterion.id)}
    return _mark_late(criterion.model_copy(update=update), late=late)


def asked_by_people(deps: Deps) -> str:
    """Return all that people ask for: title, PRD and their own criteria."""
    spec = deps.spec
    own = [f"{one.description}\n{one.detail}" for one in spec.criteria]
    return "\n".join([spec.title, spec.prd_text, *own])


def with_other_checks(
    criteria: Sequence[Criterion],
    planned: PlanTask,
    faults: Sequence[BaselineCheck],
    names: Collection[str],
) -> tuple[list[Criterion], set[str]]:
    """Return the plan with other checks for those at fault, and the ids of the criteria that
    changed.

    Nothing else of the reply is read: a planner replaces or withdraws only checks that it wrote
    itself. A criterion's description and weight stay word for word.
    """
    at_fault = {fault.criterion_id for fault in faults}
    by_id = {draft.id: draft for draft in planned.acceptance_criteria}
    by_description = {draft.description: draft for draft in planned.acceptance_criteria}
    result, changed = [], set()
    for criterion in criteria:
        draft = by_description.get(criterion.description) or by_id.get(criterion.id)
        if criterion.id not in at_fault or not proposed(criterion) or draft is None:
            result.append(criterion)
            continue
        check = check_of(draft)
        if check == criterion.check:
            result.append(criterion)
            continue
        tests = [name for name in draft.tests if name in names] if check is None else []
        update: dict[str, object] = {"check": check, "tests": tests, "tests_origin": "model"}
        if check is None:
            update["check_origin"] = "task"
        result.append(criterion.model_copy(update=update))
        changed.add(criterion.id)
    return result, changed


def check_of(draft: CriterionDraft) -> Check | None:
    """Return the model's check, or None where it gave none that can be read."""
    return check_from(draft.decided_by) if draft.decided_by else None


def check_from(given: Mapping[str, Any]) -> Check | None:
    """Return a check as a reply has it; None where it cannot be read."""
    known = {name: value for name, value in given.items() if name in Check.model_fields}
    try:
        return Check.model_validate({name: v for name, v in known.items() if v is not None})
    except ValueError:
        return None


def _mark_late(criterion: Criterion, *, late: bool) -> Criterion:
    """Return the criterion, `late` where the planner may have seen work when it wrote it."""
    mapped = bool(criterion.tests) and criterion.tests_origin == "model"
    wrote = criterion.check is not None and criterion.check_origin == "model"
    return criterion.model_copy(update={"late": late and (wrote or mapped)})


def without(baseline: Baseline, ids: Collection[str]) -> Baseline:
    """Return the baseline without the outcomes of these criteria's checks."""
    return baseline.model_copy(
        update={
            "checks": {name: c for name, c in baseline.checks.items() if name not in ids},
            "check_outcomes": [o for o in baseline.check_outcomes if o.criterion_id not in ids],
        }
    )


def _planner_can_react(deps: Deps, counters: Counters) -> bool:
    """Whether a report can change the answer; a script's next reply must say it awaits one."""
    clients = [one.client for one in deps.panel.role_candidates("plan").candidates]
    if not all(map(answers_by_code, clients)):
        return True
    awaits = getattr(clients[0], "awaits", None)
    return bool(awaits is not None and awaits("plan_task", counters.meta_calls))


def _sentence(faults: Sequence[BaselineCheck], criteria: Sequence[Criterion]) -> str:
    """Return what became of the checks; the planner's plan is not in what it is shown otherwise."""
    described = {one.id: one.description for one in criteria}
    parts = [
        # As strings of JSON: a tool's output must not look like our own sentence.
        f"{one.criterion_id}, {_quoted(described.get(one.criterion_id, ''))}: "
        f"{one.what} {WORDS[one.standing]}: {_quoted(one.output)}"
        for one in faults
    ]
    return "\n".join(
        [
            "Checks of your plan were run on the repository as it is now, before any work:",
            *parts,
            (
                "Reply with these criteria once more, id and description word for word, each with "
                "a check that runs here and fails now, or with check null, and with names under "
                "tests where tests of the suite stand for it. Nothing else of the plan is read "
                "again."
            ),
        ]
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _keep(state: TaskContext, deps: Deps, tried: Sequence[BaselineCheck], number: int) -> None:
    """Record the outcome of each check in the run log."""
    for one in tried:
        data = {
            "criterion": one.criterion_id,
            "standing": one.standing,
            "check": one.what,
            "said": one.output,
            "awaits": one.awaits.model_dump() if one.awaits else None,
        }
        key = f"{state['counters'].meta_calls}-{number}-{one.criterion_id}"
        deps.record(state, "proposal", key, data)
