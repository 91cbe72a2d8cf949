"""`agentrunner plan TEXT` in a terminal: what is asked, and how a person leaves."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.kit.talks import Talks, decompose, phase, task
from tests.kit.terminals import Terminal


def says(talks: Talks) -> Terminal:
    unset = ("CI", "NO_COLOR", "OPENAI_API_KEY")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    own = {"TERM": "dumb", "HOME": str(talks.place), "AGENTRUNNER_STATE_DIR": str(talks.state_dir)}
    script = ("--planner", "script", "--set", "runner.meta.script=replies.yaml")
    argv = [sys.executable, "-m", "agentrunner", "plan", "a list", *script]
    return Terminal(argv, talks.repo, {**inherited, **own})


@pytest.mark.parametrize(
    ("keys", "code", "version"), [("\x03", 4, 0), ("\x04", 4, 0), ("n\r", 0, 0), ("y\r", 0, 1)]
)
def test_a_proposal_is_applied_refused_or_kept(
    keys: str, code: int, version: int, tmp_path: Path
) -> None:
    talks = Talks(tmp_path)
    (talks.repo / ".git").mkdir(parents=True)
    talks.script([decompose(phase("Build", task("t1", "List")))])
    with says(talks) as terminal:
        terminal.until("[y/N] ")
        terminal.type(keys)
        if code:
            terminal.until("agentrunner plan accept --id")
        assert terminal.end() == code
    assert talks.store.load().version == version
