"""Whole runs in which files have names that are not UTF-8: `caf\\351` in a shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.kit.project import BROKEN, FIX, PYTEST, Project

UNITTEST = "python3 -m unittest"
TESTED = {
    "calc.py": BROKEN["calc.py"],
    "tests/__init__.py": "",
    "tests/test_calc.py": (
        "import unittest\n\nfrom calc import add\n\n\n"
        "class CalcTest(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n\n"
        "    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n"
    ),
}
TASK: dict[str, Any] = {
    "test": {"command": UNITTEST},
    "prd": {"text": "add adds its two numbers, as test_add says."},
    "runner": {"meta": {"kind": "checklist", "max_loops": 0}},
}


def with_names(place: Path, files: dict[str, str], *names: bytes, text: bytes = b"1\n") -> Project:
    project = Project.make(place, files)
    for name in names:
        path = project.repo / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)
    project.git("add", "-A")
    project.git("commit", "-qm", "names")
    return project


@pytest.mark.series(3)
@pytest.mark.parametrize(
    "work",
    [
        "echo 2 >> \"$(printf 'caf\\351.txt')\"; echo 2 >> \"$(printf 'f\\351/data.json')\"",
        "rm \"$(printf 'caf\\351.txt')\"; rm -r \"$(printf 'f\\351')\" tests/data*",
        "mv \"$(printf 'caf\\351.txt')\" \"$(printf 'd\\351j\\340.txt')\"; "
        "echo 'def sub(a, b):\n    return a - b' > \"$(printf 'd\\351j\\340.py')\"",
    ],
    ids=["changed", "deleted", "moved and made"],
)
async def test_a_run_ends_as_it_does_with_other_names(tmp_path: Path, work: str) -> None:
    names = (b"caf\xe9.txt", b"f\xe9/data.json", b"tests/data\xe9.csv")
    project = with_names(tmp_path, TESTED, *names)
    result = await project.run(f"{FIX}; {work}", **TASK)
    assert result["state"] in ("COMPLETE", "NEEDS_REVIEW"), result
    assert result["reason"] in ("complete", "loop_limit"), result


async def test_tests_in_a_file_with_such_a_name_are_judged(tmp_path: Path) -> None:
    tests = BROKEN["tests/test_calc.py"].encode()
    files = {name: text for name, text in BROKEN.items() if not name.startswith("tests/")}
    project = with_names(tmp_path, files, b"tests/test_caf\xe9.py", text=tests)
    task = {
        **TASK,
        "test": {"command": PYTEST},
    }
    more = "echo 'def test_one(): assert add(1, 1) == 2' >> \"$(printf 'tests/test_caf\\351.py')\""
    result = await project.run(f"{FIX}; {more}", **task)
    assert result["reason"] in ("complete", "loop_limit"), result
    assert result["state"] in ("COMPLETE", "NEEDS_REVIEW"), result
