"""What the note of a plan tells, read from the plan's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agentrunner.plans.execution.plan_notes import facts_of
from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import Plan
from agentrunner.plans.store import PlanStore
from agentrunner.results import PlanResult
from agentrunner.storage.plan_folder import PlanFolder


def test_what_was_taken_back_is_not_told_as_another_change(tmp_path: Path) -> None:
    folder = PlanFolder(tmp_path / "plan")
    store = PlanStore(folder.plan)
    first = replace(apply(Plan(), [PlanEdit("create", "a", {"title": "A"})]), goal="A list")
    second = apply(first, [PlanEdit("delete", "TASK-0001")])
    store.save(first, at="1", kind="decompose", author="hana", message="a list")
    store.save(second, at="2", kind="plan_patch", author="hana", message="not that")
    store.undo(at="3", author="jun")
    told = [
        (event.kind, event.text)
        for event in facts_of(tmp_path, folder, PlanResult(exit_code=0), {}).events
    ]
    assert told == [
        ("changed", "hana: a list"),
        ("changed", "hana: not that"),
        ("undone", "jun: not that"),
    ]
