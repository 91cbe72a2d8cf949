"""A repository as a user's own git makes it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from agentrunner.git.private_clone import Identity
from tests.kit.files import write

WHO = Identity("Hana", "hana@example.org")
AT = "2026-01-01T00:00:00Z"


def git(folder: Path, *words: str, check: bool = True) -> str:
    """What git prints there; no settings of this machine's user count."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "t", f"GIT_{role}_EMAIL": "t@example.invalid"}
    return subprocess.run(
        ["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=check
    ).stdout


def uncommitted(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A repository without a commit, and files that it does not know."""
    git(write(folder, files), "init", "-q", "-b", "main")
    return folder


def plant_hooks(repo: Path, mark: Path, *names: str) -> Path:
    """Hooks that touch a file where any of them is run; the folder they are in."""
    text = f"#!/bin/sh\ntouch {mark}\n"
    return write(repo / ".git" / "hooks", dict.fromkeys(("reference-transaction", *names), text))


def committed(folder: Path, files: Mapping[str, str | bytes], message: str = "start") -> Path:
    """A repository with these files in one commit."""
    git(uncommitted(folder, files), "add", "-A")
    git(folder, "-c", "maintenance.auto=false", "commit", "-qm", message)
    return folder
