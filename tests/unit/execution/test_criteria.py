"""Merging a plan with the criteria of people, and reading a plan that a person edited."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrunner.config.spec import Check, CriterionSpec, TestSpec
from agentrunner.execution.criteria import MAX_CRITERIA, criteria_of, edited_criteria, merged
from agentrunner.protocol import PlanTask, parse_reply
from agentrunner.state.run_state import Criterion


def planned(*drafts: dict[str, Any]) -> PlanTask:
    reply = {"type": "plan_task", "version": 1, "payload": {"acceptance_criteria": list(drafts)}}
    payload = parse_reply(json.dumps(reply), "plan_task").payload
    assert isinstance(payload, PlanTask)
    return payload


def own(*criteria: CriterionSpec) -> list[Criterion]:
    return criteria_of(criteria)


RUN = Check(kind="command", run="make check")
TRUE = {"kind": "command", "run": "true"}
T1 = "tests/test_calc.py::test_adds"
MINE = CriterionSpec(id="AC-1", description="It adds.", check=RUN)
UNCHECKED = CriterionSpec(id="AC-1", description="It adds.")


def test_criteria_of_people_stay_as_they_are() -> None:
    other = {"id": "AC-1", "description": "It adds up.", "critical": False, "check": TRUE}
    (criterion,) = merged(own(MINE), planned(other))
    assert (criterion.description, criterion.critical) == ("It adds.", True)
    assert (criterion.check, criterion.check_origin, criterion.origin) == (RUN, "task", "task")


def test_a_planners_check_takes_the_place_of_no_test_that_a_person_named() -> None:
    named = Criterion(id="AC-1", description="It adds.", tests=[T1])
    for draft in ({"check": TRUE}, {"tests": ["test_other"]}):
        reply = planned({"id": "AC-1", "description": "It adds.", **draft})
        assert merged([named], reply) == [named]


def test_the_file_before_a_named_test_is_no_part_of_its_name() -> None:
    check = Check(kind="test", name="./tests/test_calc.py::test_adds")
    spec = CriterionSpec(id="AC-1", description="It adds.", check=check)
    makefile = b"test:\n\tpython3 -m pytest -q\n"
    (one,) = criteria_of([spec], TestSpec(command="make test"), lambda _: makefile)
    assert one.tests == [T1]


@pytest.mark.parametrize(
    ("command", "makefile", "mapped"),
    [
        ("make test", b"test:\n\tpython3 -m pytest -q\n", True),
        ("make test", b"test:\n\t./run-everything\n", False),
        ("make test", None, False),
        ("pytest -q", None, False),
    ],
)
def test_a_named_test_that_only_the_suite_runs_becomes_one_that_a_person_mapped(
    command: str, makefile: bytes | None, mapped: bool
) -> None:
    check = Check(kind="test", name="test_adds")
    spec = CriterionSpec(id="AC-1", description="It adds.", check=check)
    test = TestSpec(command=command)
    (one,) = criteria_of([spec], test, lambda path: makefile if path == "Makefile" else None)
    assert (one.tests, one.check) == ((["test_adds"], None) if mapped else ([], check))
    assert one.tests_origin == "task"


@pytest.mark.parametrize("draft_id", ["AC-1", "AC-9"])
def test_the_model_may_add_a_check_where_a_person_gave_none(draft_id: str) -> None:
    draft = {"id": draft_id, "description": " it  ADDS", "check": TRUE}
    (criterion,) = merged(own(UNCHECKED), planned(draft))
    assert criterion.check == Check(kind="command", run="true")
    assert (criterion.origin, criterion.check_origin) == ("task", "model")


def test_a_reworded_criterion_is_the_persons_and_may_get_a_check() -> None:
    mine = CriterionSpec(id="AC-1", description="GET /users answers with 200.")
    draft = {"id": "AC-1", "description": "`GET /users` answers 200", "check": TRUE}
    (criterion,) = merged(own(mine), planned(draft))
    assert (criterion.description, criterion.check_origin) == (mine.description, "model")


def test_another_criterion_under_a_persons_id_is_an_addition() -> None:
    draft = {"id": "AC-1", "description": "The readme tells how to install it.", "check": TRUE}
    mine, added = merged(own(UNCHECKED), planned(draft))
    assert (mine.id, mine.description, mine.check) == ("AC-1", "It adds.", None)
    assert (added.id, added.origin) == ("AC-2", "model")


def test_additions_get_ids_of_their_own() -> None:
    drafts = [{"id": "X", "description": "Second."}, {"id": "X", "description": "Third."}]
    criteria = merged(own(MINE), planned(*drafts))
    assert len({criterion.id for criterion in criteria}) == 3
    assert [c.origin for c in criteria] == ["task", "model", "model"]


def test_the_same_words_twice_are_one_criterion() -> None:
    drafts = [{"description": "It adds."}, {"description": "It adds"}, {"description": "it adds."}]
    assert len(merged([], planned(*drafts))) == 1


@pytest.mark.parametrize(
    ("check", "draft"),
    [
        (RUN, {"check": {"kind": "command", "run": "make check"}}),
        (Check(kind="test", name="test_adds"), {"check": {"kind": "test", "name": T1}}),
        (Check(kind="test", name="test_adds"), {"tests": [T1]}),
    ],
)
def test_what_a_person_has_decided_by_the_same_check_is_no_further_criterion(
    check: Check, draft: dict[str, Any]
) -> None:
    mine = CriterionSpec(id="AC-1", description="It adds.", check=check)
    draft = {"description": "The criterion that it adds is met already.", **draft}
    assert [one.id for one in merged(own(mine), planned(draft), {T1})] == ["AC-1"]


@pytest.mark.parametrize(("mine", "critical"), [(True, True), (True, False), (False, False)])
def test_a_criterion_of_the_models_that_weighs_no_more_is_no_further_one(
    mine: bool, critical: bool
) -> None:
    person = CriterionSpec(id="AC-1", description="It adds.", check=RUN, critical=mine)
    check = {"kind": "command", "run": "make check"}
    draft = {"description": "All is well.", "check": check, "critical": critical}
    assert len(merged(own(person), planned(draft))) == 1


def test_a_critical_criterion_is_not_dropped_for_one_that_may_stay_open() -> None:
    person = CriterionSpec(id="AC-1", description="It adds.", check=RUN, critical=False)
    draft = {"description": "All is well.", "check": {"kind": "command", "run": "make check"}}
    criteria = merged(own(person), planned({**draft, "critical": True}))
    assert [(one.origin, one.critical) for one in criteria] == [("task", False), ("model", True)]


def test_another_test_is_a_further_criterion() -> None:
    mine = CriterionSpec(id="AC-1", description="It adds.", check=Check(kind="test", name="adds"))
    draft = {"description": "It subtracts.", "check": {"kind": "test", "name": T1}}
    assert len(merged(own(mine), planned(draft), {T1})) == 2


def test_there_are_never_more_than_fifty() -> None:
    mine = [CriterionSpec(id=f"AC-{n}", description=f"Number {n}.") for n in range(1, 41)]
    drafts = [{"description": f"More {n}."} for n in range(40)]
    assert len(merged(own(*mine), planned(*drafts))) == MAX_CRITERIA == 50


def test_a_check_of_an_unknown_kind_is_kept() -> None:
    check = {"kind": "telepathy", "run": "think"}
    (criterion,) = merged([], planned({"description": "It adds.", "check": check}))
    assert criterion.check is not None
    assert criterion.check.kind == "telepathy"


# -- edits --------------------------------------------------------------------------------------


def test_an_edited_plan_is_of_human_origin_whatever_it_says() -> None:
    item = {"id": "AC-1", "description": "x", "origin": "task", "check": TRUE}
    item["check_origin"] = "model"
    for text in (json.dumps({"criteria": [item]}), json.dumps([item])):
        (criterion,) = edited_criteria(text)
        assert (criterion.origin, criterion.check_origin) == ("human", "human")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "7",
        "[]",
        "{}",
        '{"criteria": {}}',
        '{"criteria": [7]}',
        '{"criteria": [{"id": "AC-1"}]}',
        '{"criteria": [{"id": "AC-1", "description": "x", "status": "green"}]}',
        json.dumps([{"id": "AC-1", "description": "x"}] * 2),
        json.dumps([{"id": f"AC-{n}", "description": "x"} for n in range(51)]),
    ],
)
def test_an_edit_that_is_no_plan_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - pydantic's and json's are some, too
        edited_criteria(text)
    assert str(raised.value)
