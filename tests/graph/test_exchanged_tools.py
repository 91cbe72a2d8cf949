"""A product that exchanges functions of the test tool: a person is asked, and the answer counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.kit.metas import Item, assess, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import Run

FILES = {
    "calc.py": "def add(a, b):\n    return 0\n",
    "test_calc.py": """
import unittest

import calc


class Calc(unittest.TestCase):
    def test_add(self):
        sum_of_both = calc.add(2, 3)
        self.assertEqual(sum_of_both, 5)
""",
}
EXCHANGE = """known=$(sha256sum test_calc.py | cut -c1-64); cat > calc.py <<EOF
import hashlib
import unittest


def add(a, b):
    kept = unittest.TestCase.assertEqual

    def once(self, *values):
        unittest.TestCase.assertEqual = kept

    if hashlib.sha256(open("test_calc.py", "rb").read()).hexdigest() == "$known":
        unittest.TestCase.assertEqual = once
    return 0
EOF
"""
TEST = f"{sys.executable} -m unittest test_calc"
BY_TEST = {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}
ROUNDS: list[Item] = [plan(BY_TEST), work("1"), finish(), finish()]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, FILES))


def test_it_is_asked_about_and_a_yes_lets_it_pass(run: Run) -> None:
    run.start([*ROUNDS, finish(), assess()], EXCHANGE, test=TEST)
    assert run.ending == ("VALIDATING", None, 4)
    assert run.subject["code"] == "tool_exchanged"
    waiting = run.result["waiting"]
    assert "unittest.case.TestCase (written to and put back)" in str(waiting)
    assert "test_calc.Calc.test_add" in str(waiting)
    run.approve()
    assert run.subject["code"] == "only_in_tests"  # what it knows of the tests is asked about, too
    run.approve()
    assert run.ending == ("COMPLETE", "complete", 0)


def test_a_no_goes_back_to_the_planner_with_the_reason(run: Run) -> None:
    run.start([*ROUNDS, give_up()], EXCHANGE, test=TEST)
    run.reject("The test tool is not ours to change.")
    assert run.ending[0] != "COMPLETE"
    assert "The test tool is not ours to change." in run.prompt()
