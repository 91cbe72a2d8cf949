"""docs/tutorial.md: its commands, run in order in one shell, print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.missing import missing

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARYING = re.compile(r"cart-\w{4}\b|\d+(?:\.\d)? s\b|Tree `\w+`")


def blocks(kind: str) -> list[str]:
    return [text for of, text in BLOCK.findall(PAGE.read_text("utf-8")) if of == kind]


def shape(line: str) -> str:
    """A line without what differs from run to run: ids, times and their padding."""
    return " ".join(VARYING.sub("_", line).split())


@pytest.mark.skipif(sys.platform != "linux", reason="the tutorial needs bubblewrap")
def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    if subprocess.run(["bwrap", "--version"], capture_output=True, check=False).returncode:
        missing("bubblewrap (bwrap) is not installed")
    script = tmp_path / "tutorial.sh"
    script.write_text("\n".join(blocks("sh")))
    home = tmp_path / "home"
    home.mkdir()
    environ = {
        "HOME": str(home),
        "COLUMNS": "80",
        "LANG": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    ran = subprocess.run(
        ["bash", str(script)],
        cwd=tmp_path,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    printed = {shape(line) for line in ran.stdout.splitlines()}
    promised = [shape(line) for block in blocks("text") for line in block.splitlines()]
    assert [line for line in promised if line not in printed] == [], ran.stdout + ran.stderr
    assert ran.returncode == 0, ran.stderr
