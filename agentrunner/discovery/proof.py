"""What counts as tests in a checkout now: for validate, --dry-run and the header."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.git import MOST_FILES, files_of, reader_of
from agentrunner.verification.evidence.checks import commands_of

MOST_FILES_AT_START = 20_000
"""Largest repository for which a run's header shows it; `validate` accepts larger ones."""


class ProofInputs(Struct, frozen=True):
    """The lists `tests`, `product` and `unsure`, and problems of the task's globs.

    `nameless` is the test command, where no known test tool is in it that reports names.
    """

    lists: dict[str, object] | None = None
    """None if nothing is executed, or there are too many files."""
    problems: list[str] = field(default_factory=list)
    """Sentences with the place in the task file."""


def proof_inputs(
    spec: TaskSpec, *, most_files: int = MOST_FILES, most_listed: int | None = None
) -> ProofInputs:
    """The inputs of the proof, judged by the files that exist now. Blocks; runs nothing."""
    repo = Path(spec.repo)
    read = reader_of(repo)
    if not commands_of(spec, read):
        return ProofInputs()
    paths = files_of(repo, most_files)
    if paths is None:
        return ProofInputs()
    from agentrunner.verification.evidence.listing import (
        inputs_of_task,
        listed,
        nameless_command,
        problems,
    )

    found_problems = [f"{where}: {text}" for where, text in problems(spec, paths)]
    lists = listed(inputs_of_task(spec, paths, read), most_listed)
    if nameless := nameless_command(spec, read):
        lists["nameless"] = nameless
    return ProofInputs(lists, found_problems)
