"""Read facts from a repository's git folder without running git, which would obey its settings."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.config.text_files import read_text
from agentrunner.errors import UsageError
from agentrunner.text.lazy_regex import lazy_regex

_REF = lazy_regex(r"ref: refs/heads/([^\s~^:?*\[\\]{1,200})\n?")
_COMMIT = lazy_regex(r"([0-9a-f]{40}|[0-9a-f]{64})\n?")
_GITDIR = lazy_regex(r"gitdir: (\S.{0,4000}?)\s*")


def read_branch(repo: Path) -> str | None:
    """Return the branch checked out in `repo`, "detached at 1a2b3c4", or None if unknown."""
    head = _small(git_dir(repo) / "HEAD")
    if match := _REF.fullmatch(head):
        return match[1] if match[1].isprintable() else None
    if match := _COMMIT.fullmatch(head):
        return f"detached at {match[1][:7]}"
    return None


def git_dir(repo: Path) -> Path:
    """Return `.git`, or the folder that a worktree's `.git` file names."""
    place = repo / ".git"
    if place.is_dir() or not os.path.lexists(place):
        return place
    match = _GITDIR.fullmatch(_small(place))
    return repo / match[1] if match else place


def _small(path: Path) -> str:
    try:
        return read_text(path, name=path.name)
    except UsageError:
        return ""
