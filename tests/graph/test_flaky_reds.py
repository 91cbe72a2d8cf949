"""A test that is red only now and then: never kept as red for a tree, and told by name."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.kit.metas import finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, Run

SUITE = """\
import unittest
from pathlib import Path

from calc import add

RUNS = Path({runs!r})


class Calc(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)

    def test_now_and_then(self):
        with RUNS.open("a") as file:
            file.write(".")
        self.assertNotIn(len(RUNS.read_text()), {red})
"""
TEST = "python3 -m unittest -q test_calc"


def flaky(place: Path, red: set[int]) -> Run:
    """A run on a project whose second test is red in these runs of it, counted from 1."""
    suite = SUITE.format(runs=str(place / "runs.txt"), red=red)
    files = {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": suite}
    run = Run(Project.make(place, files))
    runner = {"meta": {"kind": "checklist"}, "sandbox": {"kind": "none"}}
    run.start(None, FIX, test=TEST, runner=runner)
    return run


def test_one_that_is_red_by_chance_after_the_work_is_asked_once_more(tmp_path: Path) -> None:
    run = flaky(tmp_path, {2})
    assert run.result["test"]["flaky"] == ["test_calc.Calc.test_now_and_then"]
    assert "Red once and green once on this very tree" in run.result["waiting"]["text"]
    run.approve()
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.series(2)
@pytest.mark.parametrize("message", [None, "try once more"])
def test_a_red_of_the_attempt_before_is_measured_again(tmp_path: Path, message: str | None) -> None:
    run = flaky(tmp_path, {2, 3})
    assert run.result["state"] == "FAILED", run.result["text"]
    run.resume(**({"message": message} if message else {}))
    assert run.ending == ("COMPLETE", "complete", 0)


BUILT = {
    ".gitignore": "*.so\n__pycache__/\n",
    "fast.c": "int twice(int n) { return 2 * n; }\n",
    "calc.py": (
        "import ctypes\nimport pathlib\n\n"
        "LIB = ctypes.CDLL(str(pathlib.Path(__file__).parent / 'libfast.so'))\n\n\n"
        "def four(n):\n    return LIB.twice(LIB.twice(n)) + 1\n"
    ),
    "test_calc.py": (
        "import unittest\n\nfrom calc import four\n\n\nclass CalcTest(unittest.TestCase):\n"
        "    def test_four(self):\n        self.assertEqual(four(2), 8)\n"
    ),
}


@pytest.mark.whole
def test_a_red_after_another_set_up_is_red_again_and_not_by_chance(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    run = Run(Project.make(tmp_path, BUILT))
    breaks = "sed -i 's/ + 1$//' calc.py; sed -i 's/2 [*] n/3 * n/' fast.c"
    setup = {"command": "gcc -shared -fPIC -o libfast.so fast.c"}
    test = f"{sys.executable} -m unittest"
    run.start([plan(), work(), finish(), give_up()], breaks, test=test, setup=setup)
    assert run.ending == ("FAILED", "aborted", 1)
    assert run.result["test"]["flaky"] == []
