"""Why tests are red, on every screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentrunner.results import Result
from agentrunner.screens.log import LogView
from agentrunner.screens.red_tests import red_lines
from agentrunner.screens.summary import summary_screen
from agentrunner.state.red_tests import how_many, shown_red, title_of
from agentrunner.state.run_state import RedTest, TestOutcome
from agentrunner.text.terminal import cell_width
from tests.kit.screen_samples import EVIL, TESTS, changed, criterion, result

Golden = Callable[[str, str], None]


def red(number: int, message: str = "assert 500 == 409\nmore") -> dict[str, Any]:
    return {"name": f"tests/test_a.py::test_{number}", "file": "tests/test_a.py",
            "line": number, "message": message}  # fmt: skip


def failed(count: int, total: int | None = None) -> Result:
    reds = [red(number) for number in range(1, count + 1)]
    test = {**TESTS, "command": "pytest -q", "exit_code": 1, "passed": 3, "failed": total or count,
            "baseline_exit_code": 0, "red": reds}  # fmt: skip
    return result(
        state="FAILED", exit_code=1, reason="loop_limit", test=test, proof=[],
        acceptance_criteria=[criterion("AC-1", "Totals are rounded", "failed")],
    )  # fmt: skip


def test_the_last_screen_says_why(golden: Golden) -> None:
    golden("screens/summary-red.txt", summary_screen(failed(2), home="/home/hana") + "\n")


def test_show_has_the_messages_whole_and_ten_of_many(golden: Golden) -> None:
    screen = summary_screen(failed(10, 200), home="/home/hana", target="a-1", all_rows=True)
    golden("screens/show-red.txt", screen + "\n")
    assert screen.count("assert 500 == 409") == 10
    assert "and 190 more: agentrunner logs a-1 --tests" in screen


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_last_screen_stays_within_its_lines(width: int, count: int) -> None:
    many = [criterion(f"AC-{n}", "x", "failed") for n in range(30)]
    shown = changed(failed(count, 400), acceptance_criteria=many)
    lines = summary_screen(shown, warnings=["w"] * 9, width=width).split("\n")
    assert len(lines) <= 24
    assert any("test_1 (line 1): assert 500 == 409"[: width - 40] in line for line in lines)
    assert max(map(cell_width, lines)) <= max(width, 80)


@pytest.mark.parametrize(
    ("one", "title"),
    [
        ({"name": "a.py::t", "file": "a.py", "line": 3}, "a.py::t (line 3)"),
        ({"name": "TestX", "file": "x_test.go", "line": 9}, "TestX (x_test.go:9)"),
        ({"name": "works", "file": "a.test.ts", "line": None}, "works (a.test.ts)"),
        ({"name": "a.py::t", "file": "a.py", "line": None}, "a.py::t"),
        ({"name": ""}, "?"),
    ],
)
def test_name_and_place(one: dict[str, Any], title: str) -> None:
    assert title_of(one) == title


def test_hostile_texts_stay_in_their_lines() -> None:
    lines = red_lines([{"name": EVIL, "file": EVIL, "message": EVIL * 9}], 1, whole=True)
    assert all("\x1b" not in line and cell_width(line) <= 80 for line in lines)


def test_names_without_messages_count_as_well() -> None:
    outcome = TestOutcome(
        command="x", exit_code=1, failed=70, failing=[f"t{n}" for n in range(50)],
        red=[RedTest(name="t3", message="m")],
    )  # fmt: skip
    assert [one.name for one in shown_red(outcome)][:3] == ["t3", "t0", "t1"]
    assert len(shown_red(outcome)) == 10 and how_many(outcome) == 70
    assert shown_red(None) == [] and red_lines([], 5) == []


def test_known_reds_come_last_under_their_own_label() -> None:
    lines = red_lines([red(1), red(2), red(3)], 3, known=[red(1)["name"], red(3)["name"]])
    assert [line.split(": ")[0].split() for line in lines] == [
        ["red", "tests/test_a.py::test_2", "(line", "2)"],
        ["known", "tests/test_a.py::test_1", "(line", "1)"],
        ["tests/test_a.py::test_3", "(line", "3)"],
    ]


def test_logs_of_a_round_say_why() -> None:
    view = LogView(width=80)
    ran = {"ts": "2026-11-21T05:00:00Z", "target": "test", "exit_code": 1, "outcome": "failed"}
    events = [
        {"event": "worker_started", "loop": 0, "worker": "x", "ts": ran["ts"]},
        {**ran, "event": "check", "passed": 3, "failed": 12,
         "red": [red(number) for number in range(1, 11)]},
    ]  # fmt: skip
    lines = [line for event in events for line in view.feed(event)] + view.flush()
    text = "\n".join(lines)
    assert "tests/test_a.py::test_1 (line 1): assert 500 == 409" in text
    assert "and 2 more red: agentrunner logs --tests" in text
