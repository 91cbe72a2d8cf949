"""Whether a command is a single stage, so that its tests alone decide its exit code. Pure."""

from __future__ import annotations

from agentrunner.verification.results.commands import runs_of
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.registry import readers_of
from agentrunner.verification.results.shell import simple_commands

SILENT = frozenset({"set", "true", ":", "echo", "printf", "unset", "umask", "mkdir"})
"""Shell words that decide nothing."""


def is_one_stage(shell: str, cwd: str, read: ReadFile) -> bool:
    """Whether only tests can have caused a red exit of a command that reported tests.

    That is so where everything that runs is one command, recipes of make, just and npm followed. It
    is so for `lint && pytest` as well: where lint fails, no test is reported. A red exit of `pytest
    && lint` hides what lint would say, and one of `lint; pytest` what lint said; then no known red
    excuses it.
    """
    runs = [run for run in runs_of(shell, cwd, read) if run.program not in SILENT]
    if len(runs) == 1:
        return True
    commands = simple_commands(shell)
    if len(commands) < 2 or {command.after for command in commands[:-1]} != {"&&"}:
        return False
    last = commands[-1]
    start = min(word.start for word in (*last.assignments, *last.words))
    earlier = shell[:start].rstrip().removesuffix("&&")
    if readers_of(earlier, cwd, read):
        return False
    return last.after == "" and sum(run.outer == last for run in runs) == 1
