"""Results of tests by name, and what is handed to the readers of tools. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

ReadFile = Callable[[str], bytes | None]
"""Reads a file of the tree under judgement by its path; None where there is none."""


def _nothing(path: str) -> bytes | None:
    return None


TestOutcomeKind = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""`error` broke outside of the test (set-up, collection); `xfailed` failed as expected."""


@dataclass(frozen=True)
class TestResult:
    """The result of one test in one run."""

    __test__ = False

    name: str
    """Full and stable: with its package, file or program, as in `tests/test_a.py::test_x[1]`."""
    outcome: TestOutcomeKind
    file: str = ""
    """The file that defines it, relative to the folder the command ran in; "" where unknown."""
    line: int | None = None
    message: str = ""
    """The assertion or error of a red test, at most 2,000 characters."""
    unloaded: bool = False
    """Whether it stands for a file, package or class that could not be loaded: the tests in it have
    no names."""
    files: tuple[str, ...] = ()
    """Of one that is unloaded: the files of its tests, where `file` can't tell them."""

    @property
    def red(self) -> bool:
        """Whether the test failed or broke."""
        return self.outcome in ("failed", "error")


@dataclass(frozen=True)
class Exchanged:
    """A function of the test tool that was replaced after the project's code began to run."""

    what: str
    """The function, as in `unittest.case.TestCase.assertEqual`."""
    test: str = ""
    """The test at which it was first seen; "" where that was before or after all of them."""
    files: tuple[str, ...] = ()
    """Files that it is from, relative to the folder the command ran in; "" among them for one that
    is unknown or says otherwise. None where it is no function of a file."""
    place: str = ""
    """The file of tests that has it, or whose class inherits it; "" where that is not known."""
    member: str = ""
    """What a class of tests inherits, as in `Logged.setUp`."""
    heir: str = ""
    """The name of that class of tests."""
    digest: str = ""
    """Differs where what is inherited does something else."""

    @property
    def key(self) -> tuple[str, str]:
        """What is the same in two runs where nothing about it has changed."""
        return self.what, self.digest


@dataclass(frozen=True)
class Results:
    """What one run of a command reported, in its order; a name may occur several times."""

    reader: str
    """The name of the reader that read it: "pytest", "junit", …"""
    tests: tuple[TestResult, ...] = ()
    weak: bool = False
    """Whether it was read from printed text, which the product can print as well."""
    complete: bool = True
    """False where the report is cut, or tests are missing in it that nothing stands for."""
    looked: int = 0
    """How often the tool's own process was inspected; 0 where that is not possible."""
    exchanged: tuple[Exchanged, ...] = ()
    """What these inspections found, including what the tool's plug-ins replace."""
    moved: tuple[str, ...] = ()
    """Files of the tree that were written, replaced or removed during the run."""

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name occurs."""
        return Counter(test.name for test in self.tests)

    @cached_property
    def _by_name(self) -> dict[str, list[TestResult]]:
        found: dict[str, list[TestResult]] = {}
        for test in self.tests:
            found.setdefault(test.name, []).append(test)
        return found

    def named(self, name: str) -> list[TestResult]:
        return self._by_name.get(name, [])

    def passed(self, name: str) -> bool:
        """Whether a name is reported and every result of it passed."""
        found = self.named(name)
        return bool(found) and all(test.outcome == "passed" for test in found)

    @cached_property
    def all_named(self) -> bool:
        """Whether every test has a name here: the report is complete and all files were loaded."""
        return self.complete and not any(test.unloaded for test in self.tests)

    @property
    def red(self) -> tuple[TestResult, ...]:
        """The results that failed or broke."""
        return tuple(test for test in self.tests if test.red)


class Command(Struct, frozen=True):
    """A shell text, the folder of the tree that it runs in, and what reads the tree."""

    shell: str
    cwd: str
    read: ReadFile


class Instrumented(Struct, frozen=True):
    """A command that reports by name.

    The report is written below `place`, a folder of a random name that exists only for this run.
    """

    shell: str
    env: Mapping[str, str] = field(default_factory=dict)
    """Joined to the sandbox's own: folders in PYTHONPATH and PATH come before those that exist,
    options in NODE_OPTIONS, PYTEST_ADDOPTS and the like after them. `registry.instrument` turns
    these variables into shell text, and leaves nothing here."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Reporter files to write below `place` before the command starts, by relative path."""
    after: str = ""
    """Shell text that collects reports after the command has ended; its exit code is not used."""


class Ran(Struct, frozen=True):
    """A command that ran, as readers see it. All of its content is hostile."""

    place: Path
    """The report's folder on this host."""
    stdout: str
    stderr: str
    exit_code: int
    folder: str = ""
    """The folder that the command ran in, absolute in the sandbox; "" where it is not known."""
    cwd: str = "."
    """The same folder, relative to the repository."""
    paths: Collection[str] = ()
    """Files of the tree that it ran on, for tools that do not report where a test is defined."""
    source: ReadFile = _nothing
    """Reads these files."""
