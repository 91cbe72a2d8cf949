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
