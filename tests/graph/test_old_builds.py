"""A library that git ignores, built before the run, and a source of it that the work changes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kit.landing_run import SCRIPT
from tests.kit.project import Project
from tests.kit.runs import Run

FILES = {
    ".gitignore": "*.so\n__pycache__/\n",
    "fast.c": "int twice(int n) { return 2 * n + 1; }\n",
    "calc.py": "import ctypes\nimport pathlib\n\n"
    "LIB = ctypes.CDLL(str(pathlib.Path(__file__).parent / 'libfast.so'))\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": "import unittest\n\nimport calc\n\n\nclass CalcTest(unittest.TestCase):\n"
    "    def test_twice(self):\n        self.assertEqual(calc.LIB.twice(2), 4)\n",
}
BUILD = "cc -shared -fPIC -o libfast.so fast.c"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
@pytest.mark.parametrize("set_up", [False, True])
def test_red_tests_that_load_an_old_build_are_told_of_it(tmp_path: Path, set_up: bool) -> None:
    project = Project.make(tmp_path, FILES)
    subprocess.run(["sh", "-c", BUILD], cwd=project.repo, check=True)
    run = Run(project)
    more: dict[str, Any] = {"setup": {"command": BUILD}} if set_up else {}
    mended = "sed -i 's/ + 1//' fast.c"
    runner = {"meta": {"max_loops": 0}}
    run.start(SCRIPT, mended, test="python3 -m unittest -q", runner=runner, **more)
    if set_up:
        assert run.ending == ("COMPLETE", "complete", 0), run.result
        return
    assert run.result["state"] == "FAILED"
    (finding,) = run.result["findings"]
    assert finding["code"] == "may_be_old" and not finding["blocks"]
    assert "fast.c changed, and libfast.so" in finding["message"]
    assert "task.setup.command" in finding["remedy"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_a_build_made_again_says_nothing_of_another_that_is_not(tmp_path: Path) -> None:
    """The command builds one of two libraries, and the work breaks what the tests ask the other."""
    source = f"{FILES['fast.c']}int half(int n) {{ return n / 2; }}\n"
    asked = "calc.LIB.twice(2), 4)\n        self.assertEqual(calc.OLD.half(4), 2)\n"
    more = FILES["calc.py"].replace("LIB =", "OLD =").replace("libfast", "libold")
    tests = FILES["tests/test_calc.py"].replace("calc.LIB.twice(2), 4)\n", asked)
    files = {"fast.c": source, "tests/test_calc.py": tests}
    project = Project.make(tmp_path, {**FILES, **files, "calc.py": FILES["calc.py"] + more})
    build = f"{BUILD} && cp libfast.so libold.so"
    subprocess.run(["sh", "-c", build], cwd=project.repo, check=True)
    run = Run(project)
    worker = "sed -i 's/ + 1//; s,n / 2,n / 3,' fast.c"
    runner = {"meta": {"max_loops": 0}}
    run.start(SCRIPT, worker, test=f"{BUILD} && python3 -m unittest -q", runner=runner)
    (finding,) = run.result["findings"]
    assert (finding["code"], run.result["state"]) == ("not_built_again", "NEEDS_REVIEW")
    assert "passes with libold.so, which" in finding["message"]
