"""The examples of the page of the Python API, one after another, in a scratch folder.

    python -m examples

Each is a program as the page prints it, and works on the same small repository. Ends with 1 at the
first one that fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python-api.md"
REPOSITORY = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
    ),
}
"""A repository with a red test, which the page calls `shop`."""


def examples() -> list[tuple[str, str]]:
    """Return heading and program of each example of the page."""
    page = PAGE.read_text("utf-8")
    found = re.findall(r"^## (.*)\n|^```python\n([\s\S]*?)^```", page, re.MULTILINE)
    heading, programs = "", list[tuple[str, str]]()
    for title, program in found:
        heading = title or heading
        programs += [(heading, program)] * bool(program)
    return programs


def make_repository(place: Path) -> None:
    """Write the repository of the examples."""
    place.mkdir()
    for name, text in REPOSITORY.items():
        (place / name).write_text(text, encoding="utf-8")


def main() -> int:
    """Run them all; return the exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        make_repository(Path(scratch) / "shop")
        env = {**os.environ, "AGENTRUNNER_STATE_DIR": f"{scratch}/state"}
        for heading, program in examples():
            print(f"== {heading}", flush=True)
            ran = subprocess.run([sys.executable, "-c", program], cwd=scratch, env=env, check=False)
            if ran.returncode != 0:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
