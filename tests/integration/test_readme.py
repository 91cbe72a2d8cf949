"""What README.md shows of a terminal is what the commands print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.project import require_bwrap

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "quickstart" / "shop"
BLOCK = re.compile(r"^```\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
CUT = "…"
"""A line that stands for all that follows."""


def transcripts() -> list[str]:
    """The blocks of the README that begin with a prompt."""
    return BLOCK.findall((ROOT / "README.md").read_text("utf-8"))


def steps(transcript: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that are shown after it."""
    for part in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        yield command, shown


def steady(text: str) -> str:
    """The text without what differs from run to run: durations, and blanks beside them."""
    return re.sub(r" +\d+(?:\.\d+)? s\b", " TIME", text)


def test_the_readme_has_transcripts() -> None:
    assert transcripts()


@pytest.mark.parametrize("transcript", transcripts())
def test_a_transcript_is_what_its_commands_print(transcript: str, tmp_path: Path) -> None:
    require_bwrap()
    shop = tmp_path / "shop"
    shutil.copytree(SHOP, shop)
    git = ["git", "-c", "user.name=demo", "-c", "user.email=demo@example.invalid"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a shop"]):
        subprocess.run([*git, *words], cwd=shop, check=True)
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "AGENTRUNNER_STATE_DIR": str(tmp_path / "state"),
    }
    code = 0
    for command, shown in steps(transcript):
        script = f"(exit {code}); {command}"
        ran = subprocess.run(
            ["sh", "-c", script], cwd=shop, env=env, capture_output=True, text=True, check=False
        )
        code = ran.returncode
        printed = steady(ran.stdout.rstrip("\n")).split("\n")
        if CUT in shown:
            shown = shown[: shown.index(CUT)]
            printed = printed[: len(shown)]
        assert [steady(line) for line in shown] == printed, ran.stderr
