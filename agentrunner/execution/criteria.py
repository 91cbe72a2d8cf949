"""The criteria of a run: those of people, what a plan adds to them, and what a person edits."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from agentrunner.config.spec import Check, CriterionSpec, TestSpec
from agentrunner.execution.planner_checks import check_of
from agentrunner.protocol import CriterionDraft, PlanTask
from agentrunner.state.run_state import Criterion
from agentrunner.verification.evidence.checks import no_file, stands_in_suite, test_name
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import is_called

MAX_CRITERIA = 50
SAME_WORDS = 0.6
"""How alike (0 to 1) two descriptions with the same id must be to count as one criterion."""


def criteria_of(
    specs: Sequence[CriterionSpec], test: TestSpec | None = None, read: ReadFile = no_file
) -> list[Criterion]:
    """Return the criteria that people wrote, as state.

    A check that is a test of the suite and cannot be run alone becomes a test that a person mapped.
    `read` reads the files of the repository.
    """
    in_suite = {spec.id: spec.check for spec in specs if stands_in_suite(spec.check, test, read)}
    return [
        Criterion(
            id=spec.id,
            description=spec.description,
            critical=spec.critical,
            type=spec.type,
            rationale=spec.rationale,
            detail=spec.detail,
            line=spec.line,
            check=None if spec.id in in_suite else spec.check,
            tests=[test_name(check)] if (check := in_suite.get(spec.id)) is not None else [],
        )
        for spec in specs
    ]


def merged(
    own: Sequence[Criterion], planned: PlanTask, names: Collection[str] = ()
) -> list[Criterion]:
    """Return people's criteria as they are, then the model's additions under ids of their own.

    The model may add a check to a person's criterion that has none; it counts as the model's. The
    id alone does not make it the same criterion: models number their own from AC-1, too. The model
    may name only tests that exist before the run (`names`). What a check or test of a person
    decides already is no further criterion, unless only the model's is critical.
    """
    criteria = {criterion.id: criterion for criterion in own}
    by_people = dict(criteria)
    known = {_normal(criterion.description): criterion.id for criterion in own}
    for draft in planned.acceptance_criteria:
        check = check_of(draft)
        tests = [name for name in draft.tests if name in names]
        same = known.get(_normal(draft.description))
        if same is None and draft.id in by_people and _reworded(draft, by_people[draft.id]):
            same = draft.id
        if same is not None:
            criteria[same] = _with_planned(criteria[same], check, tests)
            continue
        # A green check of a criterion that may stay open would not stand for one that may not.
        as_critical = [one for one in own if one.critical or not draft.critical]
        if any(_is_decided_alike(check, tests, criterion) for criterion in as_critical):
            continue
        if len(criteria) >= MAX_CRITERIA:
            break
        new_id = draft.id if draft.id and draft.id not in criteria else _free_id(criteria)
        known[_normal(draft.description)] = new_id
        criteria[new_id] = Criterion(
            id=new_id,
            description=draft.description,
            critical=draft.critical,
            type=draft.type,
            rationale=draft.rationale,
            origin="model",
            check=check,
            check_origin="model",
            tests=tests if check is None else [],
            tests_origin="model",
        )
    return list(criteria.values())


def _with_planned(own: Criterion, check: Check | None, tests: list[str]) -> Criterion:
    """Return a person's criterion with what the model decides it by, where nothing does so yet."""
    if own.check is not None or own.tests:
        return own
    if check is not None:
        return own.model_copy(update={"check": check, "check_origin": "model"})
    return own.model_copy(update={"tests": tests, "tests_origin": "model"}) if tests else own


def _free_id(taken: dict[str, Criterion]) -> str:
    number = len(taken) + 1
    while f"AC-{number}" in taken:
        number += 1
    return f"AC-{number}"


def _reworded(draft: CriterionDraft, own: Criterion) -> bool:
    """Whether the model's description is mostly the person's."""
    words = SequenceMatcher(None, _normal(draft.description), _normal(own.description))
    return words.ratio() >= SAME_WORDS


def _is_decided_alike(check: Check | None, tests: Sequence[str], own: Criterion) -> bool:
    """Whether a person's criterion is decided by the check or the tests of a draft."""
    if check is not None and check.kind != "test":
        return check == own.check
    drafted = [check.name] if check is not None else list(tests)
    given = [own.check.name] if own.check is not None and own.check.kind == "test" else own.tests
    same = [name for name in drafted if any(is_called(name, one) for one in given if one)]
    return bool(same) and same == drafted


def _normal(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".。")


def edited_criteria(text: str) -> list[Criterion]:
    """Return the criteria of an edited approval; raise ValueError where they cannot be read."""
    subject = json.loads(text)
    items = subject.get("criteria") if isinstance(subject, dict) else subject
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_CRITERIA:
        raise ValueError(f"the edited plan needs a list `criteria` of 1 to {MAX_CRITERIA}")
    criteria = [
        Criterion.model_validate(item).model_copy(
            update={"origin": "human", "check_origin": "human", "late": False, "awaits": None}
        )
        for item in items
    ]
    if len({criterion.id for criterion in criteria}) < len(criteria):
        raise ValueError("two criteria have the same id")
    return criteria
