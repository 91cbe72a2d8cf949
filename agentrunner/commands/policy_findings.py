"""What `doctor` and `validate` report about policies and logins on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentrunner.environment import home_of
from agentrunner.errors import UsageError
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
