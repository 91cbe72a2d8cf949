"""What a case needs of this machine, and whether it is there."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.battery.case import TOOLS


def lacking(needs: list[str]) -> str:
    """A sentence on the first thing that is not there; "" where all is."""
    for need in needs:
        if not _there(need):
            return f"{need} is not installed"
    return ""


@cache
def _there(need: str) -> bool:
    """`python:NAME` is a module, `npm:NAME` a test tool of npm, `gem:NAME` one of Ruby's,
    `file:PATH` a file of the system, anything else a program.
    """
    kind, _, name = need.rpartition(":")
    if kind == "python":
        return importlib.util.find_spec(name) is not None
    if kind == "file":
        return Path(name).is_file()
    if kind == "npm":
        return (TOOLS / "node_modules" / name).is_dir()
    if kind == "gem":
        asked = ["ruby", "-e", "gem ARGV[0]", name]
        return (
            shutil.which("ruby") is not None
            and not subprocess.run(asked, check=False, capture_output=True).returncode
        )
    return shutil.which(name) is not None
