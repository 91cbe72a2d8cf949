"""What `doctor` and `validate` report about policies and logins on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentrunner.config.repo import refuse_state
from agentrunner.environment import home_of
from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.git.snapshots import find_git
from agentrunner.screens.doctor import DoctorItem
from agentrunner.screens.layout import tilde


def policy_findings(
    option: Path | None, environ: Mapping[str, str], repo: Path
) -> list[DoctorItem]:
    """Return each policy in force; a single FAIL if one of them cannot be used."""
    from agentrunner.policy.load import load_policies

    try:
        policies = load_policies(option, environ, repo)
    except UsageError as error:
        return [DoctorItem("FAIL", "policy", error.message, error.remedy)]
    home = environ.get("HOME", "")
    if not policies:
        return [DoctorItem("--", "policy", "none: nothing limits what a task may ask for")]
    return [
        DoctorItem("ok", "policy", policy_line(str(policy.path), policy.sha256, home))
        for policy in policies
    ]


def policy_line(path: str, sha256: str, home: str) -> str:
    """Format `/etc/agentrunner/policy.yaml (sha256 0123456789ab)`."""
    return f"{tilde(path, home)} (sha256 {sha256[:12]})"


def login_findings(kinds: Sequence[str], environ: Mapping[str, str]) -> list[DoctorItem]:
    """Return the login of each worker kind that can have one; never a token."""
    from agentrunner.workers.login import login_for

    home = home_of(environ)
    found = []
    for kind in kinds:
        if login := login_for(kind, environ, home):
            state = login.describe()
            found.append(DoctorItem("ok" if state.usable else "--", kind, state.text, state.cure))
    return found


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
