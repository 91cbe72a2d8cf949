"""Results of tests by name, and what can make a runner report them. Pure.

A `Reader` knows one test tool: how its command is made to write a report, how the report is read,
and how the command is narrowed to a few tests. Readers know nothing of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol

ReadFile = Callable[[str], bytes | None]
"""A file of the tree under judgement by its path, None where there is none."""


def _nothing(path: str) -> bytes | None:
    return None


TestOutcomeKind = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
"""`error` broke outside of the test (set-up, collection); `xfailed` failed as expected."""


@dataclass(frozen=True)
class TestResult:
    """One test of one run."""

    __test__ = False

    name: str
    """Full and stable: with its package, file or program, as in `tests/test_a.py::test_x[1]`."""
    outcome: TestOutcomeKind
    file: str = ""
    """The file it is defined in, relative to the folder the command ran in; "" where not told."""
    line: int | None = None
    message: str = ""
    """Of a red one: its assertion or error, at most 2,000 characters."""

    @property
    def red(self) -> bool:
        """Whether it says no."""
        return self.outcome in ("failed", "error")


@dataclass(frozen=True)
class Exchanged:
    """A function of the test tool that is another one than before the project's code ran."""

    what: str
    """As in `unittest.case.TestCase.assertEqual`."""
    test: str = ""
    """At which test it was seen first; "" where that was before or after all of them."""


@dataclass(frozen=True)
class Results:
    """What one run of a command reported, in its order; one name may stand in it several times."""

    reader: str
    """Which one read it: "pytest", "junit", …"""
    tests: tuple[TestResult, ...] = ()
    weak: bool = False
    """Read off printed text, which the product can print as well."""
    complete: bool = True
    """False where the report is cut, or says that tests are missing in it."""
    looked: int = 0
    """How often the tool's own process was looked into; 0 where that is not possible."""
    exchanged: tuple[Exchanged, ...] = ()
    """What those looks found. What the tool's plug-ins exchange stands in it as well."""

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name stands in it."""
        return Counter(test.name for test in self.tests)

    @cached_property
    def _by_name(self) -> dict[str, list[TestResult]]:
        found: dict[str, list[TestResult]] = {}
        for test in self.tests:
            found.setdefault(test.name, []).append(test)
        return found

    def named(self, name: str) -> list[TestResult]:
        """All results of one name."""
        return self._by_name.get(name, [])

    def passed(self, name: str) -> bool:
        """Whether a name is there and every result of it passed."""
        found = self.named(name)
        return bool(found) and all(test.outcome == "passed" for test in found)

    @property
    def red(self) -> tuple[TestResult, ...]:
        """Those that say no."""
        return tuple(test for test in self.tests if test.red)


@dataclass(frozen=True)
class Instrumented:
    """A command that reports by name.

    The report is written below `place`, a folder of a random name that exists only for this run.
    """

    shell: str
    env: Mapping[str, str] = field(default_factory=dict)
    """Joined to the sandbox's own: folders of PYTHONPATH and PATH come before what is there,
    options in NODE_OPTIONS, PYTEST_ADDOPTS and the like after it. `registry.instrument` turns
    them into shell text, and leaves nothing here."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Written below `place` before the command starts: relative path to text (reporters)."""
    after: str = ""
    """Shell text that collects reports when the command has ended; its exit code is not used."""


@dataclass(frozen=True)
class Ran:
    """A command that ran, as readers see it. All of it is hostile."""

    place: Path
    """The report's folder on this host."""
    stdout: str
    stderr: str
    exit_code: int
    folder: str = ""
    """The folder that the command ran in, absolute in the sandbox; "" where it is not known."""
    cwd: str = "."
    """The same, seen from the repository."""
    paths: Collection[str] = ()
    """Files of the tree that it ran on, for tools that do not say where a test stands."""
    source: ReadFile = _nothing
    """Reads them."""


class Reader(Protocol):
    """One test tool."""

    @property
    def name(self) -> str:
        """Short, as in "pytest"."""

    @property
    def means(self) -> Sequence[str]:
        """How it can learn results, the strongest first, as in "plug-in", "junit", "text"."""

    def fits(self, shell: str, cwd: str, read: ReadFile) -> bool:
        """Whether this command runs this tool, seen from the folder `cwd` of the tree.

        Followed through `make`, `just`, `npm`, `tox` and the like as far as that is plain.
        """

    def instrument(
        self, shell: str, cwd: str, read: ReadFile, place: str, means: int = 0
    ) -> Instrumented | None:
        """The command that writes its report below `place`, an absolute path in the sandbox.

        None where these means want nothing of the command, as where its text is read. Exit code,
        selection and order of the tests must stay what they are. `means` is a place in that list.
        """

    def read(self, ran: Ran, means: int = 0) -> Results | None:
        """What was reported; None where nothing can be made of it. Never raises."""

    def select(self, shell: str, names: Sequence[str], cwd: str, read: ReadFile) -> str | None:
        """The command narrowed to these tests; None where the tool cannot."""
