"""Whether a command is one stage, so that its tests alone decide its exit. Pure."""

from __future__ import annotations

from agentrunner.evidence.checks import ReadFile
from agentrunner.evidence.scripts import commands_run


def is_one_stage(shell: str, cwd: str, read: ReadFile) -> bool:
    """Whether everything that runs is one command, recipes of make, just and npm followed.

    Of `lint && pytest` a red exit may be either's; then no known red excuses it.
    """
    return len(commands_run(shell, cwd, read)) == 1
