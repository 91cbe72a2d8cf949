"""Commands that decide: the test command and the checks of criteria. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from agentrunner.config.spec import TaskSpec, TestSpec
from agentrunner.state.evidence_words import Author
from agentrunner.state.run_state import Criterion
from agentrunner.verification.evidence.checks import CommandCheck, command_of, test_name
from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome

TEST = "test"
"""The id of the test command among targets."""


@dataclass(frozen=True)
class Target:
    """A command whose result decides something."""

    id: str
    """A criterion's id, or `TEST`."""
    shell: str
    cwd: str = "."
    timeout_sec: float = 600
    expect_exit: int = 0
    author: Author = "person"
    """Who wrote it."""
    test: str = ""
    """The test that a check names; "" where it names none."""


@dataclass(frozen=True)
class Measured:
    """One run of a target in a clean room."""

    target: Target
    ran: CommandOutcome
    results: Results | None = None
    """Results by test name; None where the tool reports totals at most."""
    moved: tuple[str, ...] = ()
    """Files of the tree that were written, replaced or removed during the run."""
    written: tuple[str, ...] = ()
    """The same, with new files."""
    others_red: bool = False
    """Whether the test that the check names passed, and the exit code is that of others which the
    tool took for meant, too."""

    @property
    def passed(self) -> bool:
        """Whether the command ended in time with the exit code that means success."""
        succeeded = self.ran.exit_code == self.target.expect_exit or self.others_red
        return succeeded and not self.ran.timed_out and not self.names_no_test

    @property
    def names_no_test(self) -> bool:
        """Whether the check names a test and its tool, which reports all tests, has none so called.

        Others may have run: tools also take what only contains a name for meant.
        """
        found, counts = self.results, self.ran.counts
        if found is None:
            return bool(self.target.test) and counts is not None and not counts.ran
        return bool(self.target.test) and not found.tests and found.complete


Run = Callable[[Target, str, Sequence[str]], Awaitable[Measured]]
"""Runs a target on a tree; of its tests only those named, if any are named."""


def test_target(test: TestSpec) -> Target:
    """The target of a task's test command."""
    return Target(TEST, test.command, test.cwd, test.timeout_sec)


def target_of(criterion: Criterion, spec: TaskSpec, read: ReadFile | None) -> Target | None:
    """The target of a criterion's check; None where nothing is executed for it."""
    check = criterion.check
    if check is None or (check.kind == "test" and not check.name):
        return None
    command: CommandCheck | None = command_of(check, spec.task.test, read)
    if command is None:
        return None
    author: Author = "planner" if criterion.check_origin == "model" else "person"
    return Target(
        criterion.id, command.shell, command.cwd, command.timeout_sec, command.expect_exit, author,
        test_name(check) if check.kind == "test" else "",
    )  # fmt: skip


def in_repo(file: str, cwd: str) -> str:
    """A test's file relative to the repository; "" where it is unknown."""
    return posixpath.normpath(posixpath.join(cwd, file)) if file else ""


def in_tree(file: str, cwd: str, paths: Collection[str]) -> bool:
    """Whether a test's file, relative to its command's folder, is one of these paths."""
    return in_repo(file, cwd) in paths


def files_of(results: Results | None, cwd: str) -> set[str]:
    """The files of the tests that a command reported, relative to the repository."""
    return {in_repo(test.file, cwd) for test in (results.tests if results else ()) if test.file}
