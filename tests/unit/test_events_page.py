"""docs/reference/events.md has every event of a run with its fields, and every key of a result."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from agentrunner import events
from agentrunner.events import PLAN_EVENTS, RUN_EVENTS, Event, PlanEvent, RunEvent
from agentrunner.header import Header
from agentrunner.results import PlanResult, Result
from tests.kit.missing import missing

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "events.md"
SCRIPT = ROOT / "scripts" / "events_page.py"


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


def test_every_class_of_an_event_stands_in_any_run_event_or_any_plan_event() -> None:
    classes = [one for one in vars(events).values() if isinstance(one, type)]
    of_a_kind = {
        one for one in classes if issubclass(one, Event) and "event" in vars(one)["__annotations__"]
    }
    assert of_a_kind == {Event, *RUN_EVENTS.values(), *PLAN_EVENTS.values()}


def test_the_tables_are_those_of_the_models() -> None:
    if not SCRIPT.exists():
        missing("no scripts: an unpacked sdist")
    spec = spec_from_file_location("events_page", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    page = PAGE.read_text("utf-8")
    assert script.written(page) == page, "python scripts/events_page.py"
    assert set(script.TABLES) == {name for _, name, _ in script.MARKED.findall(page)}


def test_what_every_event_has_and_the_header_are_there() -> None:
    table = rows("# Events and the result")
    header = {field.alias or name for name, field in Header.model_fields.items()}
    assert set(RunEvent.model_fields) | header <= set(table)
    of_plans = rows("## Of a plan")
    assert set(PlanEvent.model_fields) | set(PLAN_EVENTS) <= set(of_plans)


def test_every_key_of_a_result_is_there() -> None:
    for heading, model in (("## The result", Result), ("## Of a plan", PlanResult)):
        text = "".join(rows(heading).values())
        assert [key for key in model.model_fields if f"`{key}`" not in text] == []
