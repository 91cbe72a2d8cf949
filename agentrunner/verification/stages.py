"""Whether a command is one stage, so that its tests alone decide its exit. Pure."""

from __future__ import annotations

from agentrunner.verification.checks import ReadFile
from agentrunner.verification.results.commands import runs_of
from agentrunner.verification.results.registry import readers_of
from agentrunner.verification.results.shell import simple_commands

SILENT = frozenset({"set", "true", ":", "echo", "printf", "unset", "umask", "mkdir"})
"""Words of the shell that decide nothing."""


def is_one_stage(shell: str, cwd: str, read: ReadFile) -> bool:
    """Whether a red exit of a command that reported tests can only be that of its tests.

    That is so where everything that runs is one command, recipes of make, just and npm followed. Of
    `lint && pytest` it is so as well: where lint fails, no test is reported. Of `pytest && lint` a
    red exit hides what lint would say, and of `lint; pytest` what lint said; then no known red
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
