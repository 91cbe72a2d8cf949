"""docs/reference/events.md has every event of a run with its fields, and every key of a result."""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.events import RUN_EVENTS, RunEvent
from agentrunner.results import PlanResult, Result

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "events.md"


def rows(heading: str) -> dict[str, str]:
    """What the tables below a heading say, by each name in their first column."""
    section = PAGE.read_text("utf-8").partition(heading)[2].partition("\n## ")[0]
    return {
        name: line
        for line in re.findall(r"^\| `.*", section, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", line.split(" | ")[0])
    }


def test_every_event_of_a_run_is_there_with_its_fields() -> None:
    table = rows("# Events and the result")
    fields = {
        f"{kind}.{field.alias or name}"
        for kind, model in RUN_EVENTS.items()
        if kind != "result"
        for name, field in model.model_fields.items()
        if name not in RunEvent.model_fields
    }
    found = {one for one in fields if f"`{one.split('.')[1]}" in table.get(one.split(".")[0], "")}
    assert sorted(fields - found) == []
    assert sorted(RUN_EVENTS.keys() - table.keys()) == []


def test_every_key_of_a_result_is_there() -> None:
    for heading, model in (("## The result", Result), ("## Of a plan", PlanResult)):
        text = "".join(rows(heading).values())
        assert [key for key in model.model_fields if f"`{key}`" not in text] == []
