"""Checks that turn out wrong in mid-run: a planner takes back its own, a person is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import UsageError
from tests.kit.files import write
from tests.kit.metas import assess, finish, plan, work
from tests.kit.runs import FIX, NO_FIX, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

GOOD = {"kind": "command", "run": "grep -q 'a + b' calc.py"}
WRONG = {"kind": "command", "run": "grep -q 'a minus b' calc.py"}
LOST = {"kind": "command", "run": "no-such-tool --check calc.py"}
WHY = "It asks for words that nobody wants."


def criterion(check: dict[str, Any] | None, name: str = "AC-1", **more: Any) -> dict[str, Any]:
    return {"id": name, "description": f"add() adds ({name}).", "check": check, **more}


def takes_back(item: dict[str, Any], *changes: dict[str, Any]) -> dict[str, Any]:
    """The decision with checks that are withdrawn or replaced beside it."""
    item["reply"]["payload"]["changed_checks"] = list(changes)
    return item


def change(check: dict[str, Any] | None = None, name: str = "AC-1") -> dict[str, Any]:
    return {"id": name, "reason": WHY, "check": check}


def the_criterion(run: Run) -> Any:
    return run.state()["criteria"][0]


# -- the planner's own ----------------------------------------------------------------------------


def test_a_check_withdrawn_after_the_work_leaves_at_most_a_judgement(run: Run) -> None:
    steps = [plan(criterion(WRONG)), work(), takes_back(finish(), change()), assess()]
    run.start(steps, FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    found = the_criterion(run)
    # The suite went from red to green, and that proves nothing of this criterion any more.
    assert (found.check, found.grade) == (None, "judged")
    (former,) = run.result["acceptance_criteria"][0]["former_checks"]
    assert (former["what"], former["outcome"], former["by"]) == (WRONG["run"], "failed", "planner")
    assert "withdrawn by the planner: AC-1" in run.result["text"]
    assert [code for code, _ in run.warnings()] == ["check-withdrawn"]
    assert WHY in run.note() and "withdrew or replaced" in run.note()


def test_whoever_withdraws_all_of_them_ends_strict_with_a_person(run: Run) -> None:
    both = [criterion(WRONG), criterion(GOOD, "AC-2")]
    back = takes_back(finish(), change(), change(name="AC-2"))
    yes = assess(passed=("AC-1", "AC-2"))
    run.start([plan(*both), work(), back, yes, finish(), yes, finish(), yes], FIX, test=TEST,
              runner={"completion": "strict"})  # fmt: skip
    assert (run.ending[0], run.ending[2]) == ("NEEDS_REVIEW", 3)
    assert [one.grade for one in run.state()["criteria"]] == ["judged", "judged"]
    assert "withdrawn by the planner: AC-1, AC-2" in run.result["text"]
    assert any("rests on the planner's word" in one for one in run.result["missing"])


@pytest.mark.series(2)
@pytest.mark.parametrize("shell", ["true", "grep -q '# looked at' calc.py"])
def test_one_that_any_change_makes_green_proves_nothing(run: Run, shell: str) -> None:
    """The planner has seen the change by then."""
    back = takes_back(finish(), change({"kind": "command", "run": shell}))
    yes = assess()
    run.start([plan(criterion(WRONG)), work(), back, yes, finish(), yes, finish(), yes], NO_FIX)
    assert run.ending[0] == "NEEDS_REVIEW"
    found = the_criterion(run)
    assert (found.check.run, found.grade) == (shell, "judged")
    assert found.former[-1].replaced


@pytest.mark.whole
def test_before_the_work_a_replacement_is_a_proposal_like_any_other(run: Run) -> None:
    first = takes_back(work(), change(GOOD))
    run.start([plan(criterion(WRONG)), first, finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert the_criterion(run).grade == "shown"
    assert "withdrawn" not in run.result["text"] and "replaced" not in run.result["text"]


def test_a_replacement_that_cannot_run_is_not_taken(run: Run) -> None:
    steps = [plan(criterion(GOOD)), takes_back(work(), change(LOST)), finish(), assess()]
    run.start(steps, FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert (the_criterion(run).check.run, the_criterion(run).grade) == (GOOD["run"], "shown")
    assert [code for code, _ in run.warnings()] == ["check-refused"]


def test_checks_of_people_and_unknown_ones_are_refused(run: Run) -> None:
    mine = {"id": "AC-1", "description": "It adds.", "check": GOOD}
    foreign, unknown = change(), change(name="AC-7")
    steps = [plan(criterion(None, "AC-2")), work(), takes_back(finish(), foreign),
             takes_back(finish(), unknown), finish(), assess(passed=("AC-1", "AC-2"))]  # fmt: skip
    run.start(steps, FIX, test=TEST, acceptance_criteria=[mine])
    assert run.ending == ("COMPLETE", "complete", 0)
    assert the_criterion(run).check.run == GOOD["run"]
    assert "changed_checks.0.id" in run.prompt(3)


# -- what people agreed to -------------------------------------------------------------------------


def approve_with(run: Run, *criteria: dict[str, Any]) -> None:
    run.approve(edit=json.dumps({"criteria": list(criteria)}))


def asked_about_a_check(run: Run) -> dict[str, Any]:
    assert run.ending[2] == 4, run.result
    assert run.kind == "planner"
    return run.subject


@pytest.fixture
def edited(run: Run) -> Run:
    """A plan that a person approved with a check that does not run here."""
    run.start([plan(criterion(GOOD)), work(), finish(), assess()], FIX, test=TEST,
              runner={"approve": {"plan": "always"}})  # fmt: skip
    approve_with(run, criterion(LOST))
    subject = asked_about_a_check(run)
    assert (subject["criterion"], subject["check"]) == ("AC-1", LOST["run"])
    assert "not found" in subject["output"] and run.result["worker_runs"] == 0
    assert "A check cannot run here" in run.note()
    return run


def test_a_check_of_a_person_that_cannot_run_is_replaced_by_their_word(edited: Run) -> None:
    with pytest.raises(UsageError):
        edited.respond_text("accept: It is fine.")  # there is no work yet
    edited.respond_text(f"check: {GOOD['run']}")
    assert edited.ending == ("COMPLETE", "complete", 0)
    found = the_criterion(edited)
    assert (found.check.run, found.check_origin, found.grade) == (GOOD["run"], "human", "proven")


@pytest.mark.whole
def test_it_may_be_tried_again_and_dropped(edited: Run) -> None:
    edited.respond_text("again")
    assert asked_about_a_check(edited)["output"]
    edited.respond_text("drop")
    assert edited.ending == ("COMPLETE", "complete", 0)
    assert the_criterion(edited).check is None
    assert the_criterion(edited).grade == "proven"  # by the suite: it was dropped before the work


@pytest.mark.whole
def test_a_person_may_end_it_there(edited: Run) -> None:
    edited.respond_text("end")
    assert edited.ending == ("FAILED", "check-cannot-run", 1)


def test_a_tool_that_is_gone_for_both_trees_is_asked_about(run: Run, tmp_path: Path) -> None:
    """The worker did not break it: it does not start on the tree before the work either."""
    tool = tmp_path / "tools" / "look-at"
    write(tool.parent, {tool.name: "#!/bin/sh\ngrep -q 'a + b' \"$1\"\n"})
    check = {"kind": "command", "run": f"PATH=$PATH:{tool.parent}; look-at calc.py"}
    mine = {"id": "AC-1", "description": "It adds.", "check": check}
    steps = [plan(criterion(None, "AC-2")), work(), finish(), assess(passed=("AC-2",))]
    run.start(steps, f"{FIX}; rm {tool}", test=TEST, acceptance_criteria=[mine],
              runner={"sandbox": {"kind": "none"}})  # fmt: skip
    subject = asked_about_a_check(run)
    assert subject["asked_for"] == "check_after_work"
    run.respond_text("accept: I ran it by hand.")
    assert run.ending == ("COMPLETE", "complete", 0)
    found = the_criterion(run)
    assert (found.grade, found.check) == ("accepted", None)
    assert "I ran it by hand" in found.proof
