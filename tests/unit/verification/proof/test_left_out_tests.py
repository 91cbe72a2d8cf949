"""New tests that the work itself leaves out."""

from __future__ import annotations

import pytest

from agentrunner.verification.evidence.target import Target
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.change_alone import left_out
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult


@pytest.mark.parametrize(
    ("text", "outcome", "out"),
    [
        ("@pytest.mark.skip\ndef test_late(): ...\n", "skipped", True),
        ("@pytest.mark.xfail\ndef test_late(): ...\n", "xfailed", True),
        ("@pytest.mark.skipif(WINDOWS)\ndef test_late(): ...\n", "skipped", False),
        ("def test_late(): ...\n", "passed", False),
    ],
)
def test_a_new_test_is_left_out(text: str, outcome: TestOutcomeKind, out: bool) -> None:
    late = TestResult("test_late", outcome, file="test_a.py")
    target = Target("tests", "pytest")
    before, now = Results("pytest"), Results("pytest", (late,))
    case = Case(target, before, was_red=True, now=now)
    assert bool(left_out([case], lambda _: text.encode())) is out
    stood = Case(target, now, was_red=True, now=now)
    assert not left_out([stood], lambda _: text.encode())


def test_a_check_of_one_test_leaves_no_other_out() -> None:
    text = b"test('late', () => {});\ntest('other', () => {});\n"
    skipped = Results("node", (TestResult("late", "skipped", file="a.test.js"),))
    run = Results("node", (TestResult("late", "passed", file="a.test.js"),))
    by_name = Case(Target("AC-1", "node --test"), Results("node"), was_red=True, now=skipped)
    whole = Case(Target("test", "npm test"), Results("node"), was_red=True, now=run)
    assert left_out([by_name], lambda _: text)
    assert not left_out([by_name, whole], lambda _: text)
