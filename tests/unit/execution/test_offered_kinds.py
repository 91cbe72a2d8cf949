"""What a planner is offered, by what the task has."""

from __future__ import annotations

from agentrunner.execution.asking import kinds_for


def test_where_tests_have_ids_a_check_names_them_by_these() -> None:
    assert kinds_for(True, True) == ["command", "test", "file"]
    assert "pytest" in kinds_for(True, False) and "test" not in kinds_for(False, False)
