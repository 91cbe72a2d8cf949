"""The note of a plan: what it tells in both languages, and what cannot be smuggled into it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from agentrunner.config.markdown import Language
from agentrunner.errors import UsageError
from agentrunner.money.amount import Amount
from agentrunner.money.bill import BillRow
from agentrunner.notes.plan_note import (
    MAX_DRAWN,
    EventKind,
    NotedEvent,
    PlanFacts,
    PlanQuestion,
    PlanRow,
    dependency_graph,
    gantt,
    label,
    plan_note,
    write_plan_note,
)
from agentrunner.notes.render import MAX_BYTES
from agentrunner.results import BillEntry

LANGUAGES: tuple[Language, ...] = get_args(Language)
NOW = datetime.fromisoformat("2026-11-21T15:00:00+09:00")


def bill_row(usd: float, model: str = "m-1") -> BillEntry:
    amount = Amount(model, calls=2, input_tokens=1000, output_tokens=50, usd=usd)
    return BillRow("worker", "codex-cli", "1-001", amount).entry()


FACTS = PlanFacts(
    plan_id="shop-1a2b",
    goal="A product list page\nwith filters",
    version=4,
    branch="agentrunner/product-list",
    rows=(
        PlanRow("Concept"),
        PlanRow(
            "Write the list",
            depth=1,
            task_id="TASK-0001",
            status="COMPLETE",
            detail="All 3 executable criteria pass.",
            run_id="task-0001-ab12",
            started_at="2026-11-21T05:00:00Z",
            ended_at="2026-11-21T05:10:00Z",
            commit="0123456789abcdef0123456789abcdef01234567",
            files=("list.py", "tests/test_list.py"),
            notes=("task-TASK-0001.1.md", "task-TASK-0001.md"),
        ),
        PlanRow("Implementation"),
        PlanRow(
            "Filters",
            depth=1,
            task_id="TASK-0002",
            status="RUNNING",
            depends_on=("TASK-0001",),
            run_id="task-0002-cd34",
            started_at="2026-11-21T05:20:00Z",
            notes=("task-TASK-0002.md",),
        ),
        PlanRow("Sort", depth=2, task_id="TASK-0003", status="BLOCKED", depends_on=("TASK-0002",)),
    ),
    questions=(PlanQuestion(1, "Which filters?"), PlanQuestion(2, "By price?", "TASK-0002")),
    events=(
        *(
            NotedEvent(f"2026-11-21T05:0{number}:00Z", kind, "TASK-0001", "as told")
            for number, kind in enumerate(get_args(EventKind))
        ),
        NotedEvent("2026-11-21T05:10:00Z", "asked", text="Which filters?"),
        NotedEvent("2026-11-21T05:11:00Z", "answered", text="All."),
    ),
    bills={"": [bill_row(0.01, "p-1")], "TASK-0001": [bill_row(0.2), bill_row(0.3, "m-2")]},
    pull_request="https://example.org/pulls/7",
)
EMPTY = PlanFacts(plan_id="shop-1a2b", goal="", version=0, branch="agentrunner/plan")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_plan_under_way(golden: Callable[[str, str], None], language: Language) -> None:
    golden(f"notes/plan.{language}.md", plan_note(FACTS, language, now=NOW))


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_empty_plan(golden: Callable[[str, str], None], language: Language) -> None:
    golden(f"notes/plan-empty.{language}.md", plan_note(EMPTY, language, now=NOW))


def test_the_same_facts_are_the_same_note() -> None:
    assert plan_note(FACTS, "en", now=NOW) == plan_note(FACTS, "en", now=NOW)


@pytest.mark.parametrize(
    "evil",
    [
        'x"]; click t1 "javascript:alert(1)"',
        "a :crit, 0, 9\n    section forged",
        "%%{init: {}}%% <script>",
        "```\n# forged",
        "end",
        "",
    ],
)
def test_a_label_is_words_and_one_line(evil: str) -> None:
    text = label(evil)
    assert not set(text) & set('"`:;<>{}[]()%#|\n')
    row = PlanRow(evil, task_id="TASK-0001", started_at=NOW.isoformat())
    assert len(gantt([row], NOW).splitlines()) == 4
    assert len(dependency_graph([row]).splitlines()) == 5


def test_nothing_of_a_title_becomes_markup_and_secrets_stay_out() -> None:
    row = PlanRow("![x](http://evil.example) \x1b[31m| sk-secret", task_id="TASK-0001", status="X")
    facts = replace(FACTS, goal="```\n## forged sk-secret", rows=(row,))
    text = plan_note(facts, "en", now=NOW, redact=lambda said: said.replace("sk-secret", "***"))
    assert "![x]" not in text
    assert "\x1b" not in text
    assert "sk-secret" not in text
    assert "````text\n```\n## forged" in text


def test_a_task_without_an_end_lasts_until_now() -> None:
    bars = [line for line in gantt(FACTS.rows, NOW).splitlines() if "TASK-0002" in line]
    assert bars == ["    TASK-0002 Filters :active, 1795238400, 1795240800"]


def test_what_is_too_much_is_left_out_and_said() -> None:
    rows = tuple(PlanRow("t", task_id=f"TASK-{n:04}", started_at="x") for n in range(1, 3001))
    events = tuple(NotedEvent("x", "ended", "TASK-0001", "y" * 500) for _ in range(3000))
    text = plan_note(replace(FACTS, rows=rows, events=events), "en", now=NOW)
    assert f"{3000 - MAX_DRAWN} more tasks are not drawn." in text
    assert "2800 earlier entries are left out." in text
    assert len(text.encode()) <= MAX_BYTES


def test_the_file_is_replaced_and_a_foreign_one_is_kept(tmp_path: Path) -> None:
    def written(facts: PlanFacts) -> Path:
        return write_plan_note(
            tmp_path, ".agent-runner", facts, "en", now=NOW, fallback=tmp_path / "elsewhere.md"
        ).path

    place = tmp_path / ".agent-runner" / "plan-shop-1a2b.md"
    place.parent.mkdir()
    place.write_text("mine")
    assert written(EMPTY) == place
    assert written(FACTS) == place
    assert "TASK-0002" in place.read_text()
    assert (place.parent / "plan-shop-1a2b.1.md").read_text() == "mine"
    assert len(list(place.parent.iterdir())) == 2
    with pytest.raises(UsageError):
        written(replace(FACTS, plan_id="../x"))


def test_what_is_not_there_is_not_spoken_of() -> None:
    bare = replace(FACTS, branch="", events=(NotedEvent("", "merged", "TASK-0001"),))
    text = plan_note(bare, "en", now=NOW)
    assert "into the branch" not in text
    assert "TASK-0001 merged\n" in text


def test_japanese_punctuation_is_no_syntax_and_stays() -> None:
    assert label("商品・価格の一覧、絞り込み（小）") == "商品・価格の一覧、絞り込み（小）"


def test_a_question_of_several_lines_is_a_list() -> None:
    asked = PlanQuestion(3, "FAILED: AC-1 is red\n- no proof\nWhat now?", "TASK-0002")
    text = plan_note(replace(FACTS, questions=(asked,)), "en", now=NOW)
    assert "- `3` TASK-0002: FAILED: AC-1 is red\n  - no proof\n  - What now?\n" in text


def test_a_chart_of_several_days_names_them() -> None:
    row = PlanRow("a", task_id="TASK-0001", started_at=NOW.isoformat(), ended_at=NOW.isoformat())
    assert "axisFormat %H:%M" in gantt([row], NOW)
    early = replace(row, started_at="2026-11-18T05:00:00Z")
    assert "axisFormat %m-%d %H:%M" in gantt([row, early], NOW)
