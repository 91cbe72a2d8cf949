"""How COMPLETE is confirmed, and that the result says where that was not the whole suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, Run

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef same(a):\n    return a\n",
    "test_calc.py": (
        "import unittest\n\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n\n"
        "    def test_same(self):\n        self.assertEqual(calc.same(1), 1)\n"
    ),
}


@pytest.mark.parametrize(("confirm", "said"), [("names", True), ("full", False)])
def test_the_proof_says_where_only_its_own_tests_confirmed_it(
    tmp_path: Path, confirm: str, said: bool
) -> None:
    run = Run(Project.make(tmp_path, FILES))
    test = {"command": f"{sys.executable} -m unittest", "confirm": confirm}
    run.start([plan(), work(), finish(), assess()], FIX, test=test)
    assert run.ending == ("COMPLETE", "complete", 0)
    (proof,) = [one for one in run.result["proofs"] if one["target"] == "test"]
    assert any(note.startswith("confirmed by these tests alone") for note in proof["notes"]) == said


def test_without_a_sandbox_an_editable_install_is_for_a_person(tmp_path: Path) -> None:
    """It leads to the worker's folder, from wherever the tests are run."""
    project = Project.make(tmp_path, {**FILES, ".gitignore": "env/\n"})
    packages = project.repo / "env/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "calc.pth").write_text(f"{project.repo}\n")
    run = Run(project)
    test = f"PYTHONPATH=env/lib/python3.11/site-packages {sys.executable} -m unittest"
    runner = {"sandbox": {"kind": "none"}, "meta": {"max_loops": 0}}
    script = [plan(), work(), finish(), assess()]
    run.start(script, FIX, test={"command": test}, runner=runner)
    assert run.ending[0] != "COMPLETE"
    (finding,) = [one for one in run.result["findings"] if one["code"] == "editable_install"]
    assert "env/lib/python3.11/site-packages/calc.pth" in finding["message"]
    assert "bwrap or docker" in finding["remedy"]
