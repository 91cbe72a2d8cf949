"""What the last screen and the note say about what a criterion rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.queries import show
from agentrunner.screens.live import counts_lines
from agentrunner.screens.summary import summary_screen
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

CALC = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "import unittest\n\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n",
}
UNITTEST = "python3 -m unittest -q"
ADD = "test_calc.CalcTest.test_add"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, CALC))


def screen(run: Run, **how: Any) -> str:
    return summary_screen(show(run.project.state_dir, run.id), width=120, **how)


def row(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_criteria_that_share_a_test_of_the_planner_say_what_it_stands_for(run: Run) -> None:
    both = [
        {"id": "AC-1", "description": "add adds two numbers.", "tests": [ADD]},
        {"id": "AC-2", "description": "add takes negative ones.", "tests": [ADD]},
    ]
    judged = assess(passed=("AC-1", "AC-2"))
    run.start([plan(*both), work(), finish(), judged], FIX, test=UNITTEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    shown, note = screen(run), run.note()
    assert "its test stands for AC-1" in row(shown, "  AC-2")
    assert "AC-1: its test is mapped by the planner" in shown
    assert "mapped by the planner" in row(note, "| AC-1")
    second = row(note, "| AC-2")
    assert "its test stands for AC-1" in second and "nothing was executed" not in second


def test_header_screen_and_note_say_where_tests_have_no_names(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    (begun,) = run.project.told("run_started")
    assert begun["header"]["inputs"]["nameless"] == TEST
    (counts,) = counts_lines(begun["header"]["inputs"])
    assert f"by its exit code, as it reports no test names: {TEST}" in counts
    assert "no test names: the exit code counts" in row(screen(run), "  tests")
    assert "No test names: the exit code counts." in row(run.note(), "- **Tests**")


def test_where_they_have_names_nothing_is_said(run: Run) -> None:
    run.start([plan(), work(), finish(), assess()], FIX, test=UNITTEST)
    (begun,) = run.project.told("run_started")
    assert "nameless" not in begun["header"]["inputs"]
    assert "test names" not in screen(run) + run.note()


def test_first_line_and_note_say_that_the_worker_s_own_test_only_shows_it(run: Run) -> None:
    own = (
        "import unittest\nimport calc\n\n\nclass NewTest(unittest.TestCase):\n"
        "    def test_twice(self):\n        self.assertEqual(calc.twice(2), 4)\n"
    )
    run.project.write({"calc.py": "def add(a, b):\n    return a + b\n", "own.txt": own})
    makes = (
        "cp own.txt test_twice.py; printf '\\n\\ndef twice(n):\\n    return 2 * n\\n' >> calc.py"
    )
    wish = {"text": "calc.py gets a function `twice(n)` that doubles n."}
    criterion = {"id": "AC-1", "description": "`twice(n)` doubles n."}
    run.start([plan(criterion), work(), finish(), assess()], makes, test=UNITTEST, prd=wish)
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    assert run.result["grade"] == "shown"
    assert screen(run).startswith("COMPLETE (shown)  ")
    assert "> It is shown by the worker's or planner's own test" in run.note()
