"""Whether a command is one stage, so that its tests alone decide its exit. Pure."""

from __future__ import annotations

from agentrunner.verification.checks import ReadFile
from agentrunner.verification.results.commands import runs_of

SILENT = frozenset({"set", "true", ":", "echo", "printf", "unset", "umask", "mkdir"})
"""Words of the shell that decide nothing."""


def is_one_stage(shell: str, cwd: str, read: ReadFile) -> bool:
    """Whether everything that runs is one command, recipes of make, just and npm followed.

    Of `lint && pytest` a red exit may be either's; then no known red excuses it.
    """
    return sum(run.program not in SILENT for run in runs_of(shell, cwd, read)) == 1
