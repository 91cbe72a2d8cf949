"""Tells which commit of AgentRunner runs, where it runs from a checkout of its own."""

from __future__ import annotations

from pathlib import Path

from agentrunner.errors import AgentRunnerError
from agentrunner.git.process import git_dir_of, users_git
from agentrunner.git.snapshots import find_git

ROOT = Path(__file__).parents[2]
"""The folder that holds the package: the checkout's root, or an environment's packages."""
DIGITS = 10


def own_commit(root: Path = ROOT) -> str:
    """Return the first digits of the commit that is checked out at `root`; "" for none. Blocks."""
    try:
        if not (root / ".git").exists():
            return ""
        git = users_git(git_dir_of(root), find_git(root))
        return git.run("rev-parse", "--verify", "--quiet", "HEAD").decode().strip()[:DIGITS]
    except (AgentRunnerError, OSError):
        return ""
