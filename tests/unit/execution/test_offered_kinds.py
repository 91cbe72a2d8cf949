"""What a planner is offered, by what the task has."""

from __future__ import annotations

from agentrunner.execution.asking import kinds_for
from agentrunner.execution.seeing import red_ids_in


def test_where_tests_have_ids_a_check_names_them_by_these() -> None:
    assert kinds_for(True, True, True) == ["command", "test", "file"]
    assert "pytest" in kinds_for(True, False, False)
    assert "test" not in kinds_for(False, False, False)


def test_a_test_that_passes_already_is_offered_as_no_check() -> None:
    """A small model took each that it was offered, and had to be told that it shows nothing."""
    assert kinds_for(True, True, False) == ["command", "file"]
    tests = {"ids": {"T1": "a", "T2": "b"}, "red_now": ["T2", "c"], "passing_now": ["T1"]}
    assert red_ids_in({"tests": tests}) == ("T2",)
    assert red_ids_in({"tests": {**tests, "red_now": []}}) == red_ids_in(None) == ()
