"""Find what would prevent a run in this repository from starting or being kept: for `doctor`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from agentrunner.config.repo import refuse_state
from agentrunner.errors import AgentRunnerError
from agentrunner.git.snapshots import find_git
from agentrunner.screens.doctor import DoctorItem
from agentrunner.screens.layout import tilde


def obstacles(repo: Path, state_dir: Path, home: str) -> list[DoctorItem]:
    """Return why `run` would refuse to start; [] if it would start."""
    checks: Mapping[str, Callable[[], object]] = {
        "repository": lambda: refuse_state(repo),
        "git": lambda: find_git(repo),
    }
    found = []
    for name, check in checks.items():
        try:
            check()
        except AgentRunnerError as error:
            found.append(DoctorItem("FAIL", name, error.message, error.remedy))
    if not _may_write(state_dir):
        cure = "--state-dir DIR, or AGENTRUNNER_STATE_DIR, with a folder of your own"
        text = f"{tilde(str(state_dir), home)}: runs cannot be kept there, it cannot be written"
        found.append(DoctorItem("FAIL", "state folder", text, cure))
    return found


def _may_write(folder: Path) -> bool:
    """Whether a folder can be written, or created if it does not exist yet."""
    there = next((one for one in (folder, *folder.parents) if os.path.lexists(one)), folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
