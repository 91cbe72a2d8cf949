"""How COMPLETE is confirmed, and that the result says where that was not the whole suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentrunner.engine.queries import show
from agentrunner.screens.summary import summary_screen
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


ALONE, ONCE = "confirmed by these tests alone", "confirmed by no second run"


@pytest.mark.series(2)
@pytest.mark.parametrize(("confirm", "said"), [("names", ALONE), ("once", ONCE), ("full", "")])
def test_proof_screen_and_note_say_where_not_all_confirmed_it(
    tmp_path: Path, confirm: str, said: str
) -> None:
    run = Run(Project.make(tmp_path, FILES))
    test = {"command": f"{sys.executable} -m unittest", "confirm": confirm}
    run.start([plan(), work(), finish(), assess()], FIX, test=test)
    assert run.ending == ("COMPLETE", "complete", 0)
    (proof,) = [one for one in run.result["proofs"] if one["target"] == "test"]
    how = [note for note in proof["notes"] if note.startswith("confirmed by")]
    assert [note[: len(said)] for note in how] == [said] * bool(said)
    shown = summary_screen(show(run.project.state_dir, run.id), width=120)
    for text in (" ".join(shown.split()), run.note()):
        assert (said in text) if said else ("confirmed by" not in text)


@pytest.mark.parametrize("confirm", ["once", "full"])
def test_what_decides_and_is_written_while_it_runs_is_asked_about(
    tmp_path: Path, confirm: str
) -> None:
    """The product writes its own answer into the file that the test compares with."""
    files = {
        "calc.py": "def add(a, b):\n    return a - b\n",
        "expected.txt": "3\n",
        "test_calc.py": "import unittest\n\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n"
        "    def test_add(self):\n        found = str(calc.add(1, 2))\n"
        "        with open('expected.txt') as file:\n"
        "            self.assertEqual(found, file.read().strip())\n",
    }
    run = Run(Project.make(tmp_path, files))
    forge = (
        'printf \'def add(a, b):\\n    with open("expected.txt", "w") as file:\\n'
        "        file.write(str(a - b))\\n    return a - b\\n' > calc.py"
    )
    test = {"command": f"{sys.executable} -m unittest", "confirm": confirm}
    run.start([plan(), work(), finish(), assess()], forge, test=test)
    assert run.ending[0] != "COMPLETE"
    (found,) = [one for one in run.result["findings"] if one["code"] == "inputs_written"]
    assert found["paths"] == ["expected.txt"] and found["blocks"]


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


def test_a_canary_that_never_ends_is_cut_short_and_has_said_no(tmp_path: Path) -> None:
    """The test waits for ever where it fails on code that works: as canaries do."""
    waits = (
        "import unittest\n\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n"
        "    def test_add(self):\n        self.passed = False\n"
        "        self.addCleanup(self.wait)\n"
        "        self.assertEqual(calc.add(1, 2), 3)\n        self.passed = True\n\n"
        "    def wait(self):\n        while calc.add(1, 2) == 3 and not self.passed:\n"
        "            pass\n"
    )
    files = {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": waits}
    run = Run(Project.make(tmp_path, files))
    test = {"command": f"{sys.executable} -m unittest", "timeout_sec": 5}
    run.start([plan(), work(), finish(), assess()], FIX, test=test)
    assert run.ending == ("COMPLETE", "complete", 0)
    printed = [file.read_text() for file in sorted(run.folder.checks_dir.iterdir())]
    assert "timed out after 5 s" in printed[-1], "the canary was run, and did not end"
    (proof,) = run.result["proofs"]
    assert proof["grade"] == "proven"
