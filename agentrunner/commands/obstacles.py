"""Find what would prevent a run in this repository from starting or being kept: for `doctor`."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.config.repo_state import refuse_state
from agentrunner.errors import AgentRunnerError
from agentrunner.screens.doctor import DoctorItem
from agentrunner.screens.layout import tilde


def obstacles(repo: Path, state_dir: Path, home: str) -> list[DoctorItem]:
    """Return why `run` would refuse to start; [] if it would start."""
    found = []
    try:
        refuse_state(repo)
    except AgentRunnerError as error:
        found.append(DoctorItem("FAIL", "repository", error.message, error.remedy))
    if not _may_write(state_dir):
        cure = "--state-dir DIR, or AGENTRUNNER_STATE_DIR, with a folder of your own"
        text = f"{tilde(str(state_dir), home)}: runs cannot be kept there, it cannot be written"
        found.append(DoctorItem("FAIL", "state folder", text, cure))
    return found


def _may_write(folder: Path) -> bool:
    """Whether a folder can be written, or created if it does not exist yet."""
    there = next((one for one in (folder, *folder.parents) if os.path.lexists(one)), folder)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
