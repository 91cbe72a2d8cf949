"""Tells which commit of AgentRunner runs, where it runs from a checkout of its own."""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.git.process import git_dir_of, shared_dir_of

ROOT = Path(__file__).parents[2]
"""The folder that holds the package: the checkout's root, or an environment's packages."""
DIGITS = 10
LARGEST = 10_000_000
"""Bytes of a file of references that are read."""


def own_commit(root: Path = ROOT) -> str:
    """Return the first digits of the commit that is checked out at `root`; "" for none. Blocks.

    Nothing is run: whoever asks may stand in a repository that brings a `git` of its own.
    """
    try:
        git_dir = git_dir_of(root)
        head = (git_dir / "HEAD").read_text(errors="replace").strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return _commit(head)
        shared = shared_dir_of(git_dir)
        place = shared / name
        if place.is_file():
            return _commit(place.read_text(errors="replace").strip())
        packed = (shared / "packed-refs").read_text(errors="replace")[:LARGEST]
        found = re.search(rf"^(\w+) {re.escape(name)}$", packed, re.MULTILINE)
        return _commit(found[1]) if found else ""
    except OSError:
        return ""


def described(version: str) -> str:
    """A version for people, with the commit where there is one: `0.1.0 (commit 1f2e…)`. Blocks."""
    commit = own_commit()
    return f"{version} (commit {commit})" if commit else version


def _commit(text: str) -> str:
    return text[:DIGITS] if re.fullmatch(r"[0-9a-f]{40,64}", text) else ""
