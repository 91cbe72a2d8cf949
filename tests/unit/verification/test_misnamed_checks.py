"""A planner's check that names a test of the suite by half its name."""

from __future__ import annotations

import pytest

from agentrunner.state.run_state import Awaited, CheckOutcome, Criterion
from agentrunner.verification.evidence.baseline_checks import Absent, BaselineCheck, _misnamed
from agentrunner.verification.evidence.check_runner import Tried
from agentrunner.verification.results.model import Results, TestResult

BEFORE = Results(
    reader="pytest",
    tests=(TestResult("tests/test_a.py::TestA::test_x", "passed", file="tests/test_a.py"),),
)
MADE = BaselineCheck("AC-1", "to_write", "the check", awaits=Awaited(kind="test", what="it"))


@pytest.mark.parametrize(
    ("file", "name", "standing"),
    [
        ("tests/test_a.py", "test_x", "cannot_run"),
        ("", "test_x", "cannot_run"),
        ("tests/test_b.py", "test_x", "to_write"),
        ("tests/test_a.py", "test_y", "to_write"),
        ("tests/test_a.py", "TestB::test_x", "cannot_run"),
        ("tests/test_a.py", "TestB.test_x", "cannot_run"),
        ("tests/test_b.py", "TestB::test_x", "to_write"),
        ("tests/test_a.py", "TestB::test_y", "to_write"),
        ("tests/test_a.py", "", "to_write"),
    ],
)
def test_a_name_without_its_class_is_no_test_to_write(file: str, name: str, standing: str) -> None:
    criterion = Criterion(id="AC-1", description="it works")
    outcome = CheckOutcome(criterion_id="AC-1", what="the check", outcome="failed")
    made = _misnamed(MADE, Absent(file, name), BEFORE, Tried(criterion, outcome))
    assert made.standing == standing
    if standing == "cannot_run":
        assert made.awaits is None and "TestA::test_x" in made.output


@pytest.mark.parametrize(
    ("absent", "text"),
    [
        (Absent("tests/test_a.py", "TestB::test_x"), "Add a class TestB to the tests."),
        (Absent("tests/test_a.py", "TestB.test_x", exact=True), "It adds."),
        (Absent("tests/test_a.py", "TestA::test_z"), "It adds."),
    ],
    ids=["spoken of", "called new", "another name"],
)
def test_a_test_of_a_new_class_may_have_a_known_name(absent: Absent, text: str) -> None:
    criterion = Criterion(id="AC-1", description="it works")
    outcome = CheckOutcome(criterion_id="AC-1", what="the check", outcome="failed")
    made = _misnamed(MADE, absent, BEFORE, Tried(criterion, outcome), text)
    assert made.standing == "to_write"


@pytest.mark.parametrize(
    ("name", "standing"),
    [("cart > adds", "cannot_run"), ("cart > rounds 2.5", "cannot_run"), ("adds", "cannot_run"),
     ("cart > subtracts", "to_write"), ("adds 2.5", "to_write")],
)  # fmt: skip
def test_titles_are_parts_of_a_name_as_words_are(name: str, standing: str) -> None:
    titles = ("basket > adds", "basket > rounds 2.5")
    before = Results("jest", tuple(TestResult(f"a.test.js > {one}", "passed") for one in titles))
    criterion = Criterion(id="AC-1", description="it works")
    outcome = CheckOutcome(criterion_id="AC-1", what="the check", outcome="failed")
    made = _misnamed(MADE, Absent("", name), before, Tried(criterion, outcome))
    assert made.standing == standing
