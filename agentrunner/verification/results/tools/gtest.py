"""Reads GoogleTest: its XML, which its programs write where a variable says; else its text.

Tests that CTest discovers have their names from CTest: programs that it runs side by side would
write over each other's XML.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import ReportFile, reports_below
from agentrunner.verification.results.lines import CUT_SHORT
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    ReadFile,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import below, made
from agentrunner.verification.results.tools.base import Tool, added, join_reports, printed
from agentrunner.verification.results.xml import ReportedCase, read_junit

XML, TEXT = range(2)
BUILT_BY = ("CMakeLists.txt", "Makefile", "meson.build", "BUILD", "BUILD.bazel")
FOLDER = lazy_regex(r"\b(?:add_subdirectory|subdir)\s*\(\s*[\"']?([\w./-]+)")
KIT = lazy_regex(r"gtest|googletest", re.I)
MOST_READ = 200
"""Build files that are searched for the name of GoogleTest."""
ENDINGS = (".cc", ".cpp", ".cxx", ".c++", ".cu", ".h", ".hpp")
DECLARED = lazy_regex(rb"\b(?:TYPED_)?TEST(?:_F|_P)?\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
MOST_SOURCES = 2_000
"""Files that are read; those with a test-like name first."""
BEGINS = lazy_regex(r"^\[=+\] Running \d+ tests? from ", re.M)
LINE = lazy_regex(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] ([^\s,(]+)(?:,.*)?(?: \(\d+ ms\))?$")
WORDS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


class GTest(Tool):
    """Results by suite and name, as in `CartTest.Sums` and `Many/CartTest.Sums/0`."""

    name = "gtest"
    means = ("xml", "text")

    def runs(self, command: Command) -> list[Run]:
        """Programs that are built in the tree, where their build files name GoogleTest."""
        every, read = super().runs(command), command.read
        found = [run for run in every if not _is_script(read(_at(run.folder, run.words[0])))]
        asks = KIT.search(command.shell) or any(
            any(KIT.search(text) for text in _built(run, read)) for run in found
        )
        return found if asks else []

    def matches(self, run: Run) -> bool:
        """A program by its path."""
        return "/" in run.words[0] and not run.words[0].startswith("/")

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Set the variable to a folder, in which each program chooses its own file name."""
        variable = {"GTEST_OUTPUT": f"xml:{place}/gtest/"}
        return Instrumented(command.shell, variable) if means == XML else None

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read the XML, which is written when a program ends; the text of one that crashed."""
        results = (_xml(ran) if means == XML else None) or _text(ran)
        return _with_files(results, ran) if results is not None else None

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        return added(shell, run, [f"--gtest_filter={':'.join(names)}"])


def _is_script(content: bytes | None) -> bool:
    return content is not None and content.startswith(b"#!")


def _at(folder: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(folder, path))


def _built(run: Run, read: ReadFile) -> Iterator[str]:
    folders = [posixpath.normpath(run.folder)]
    while folders[-1] not in (".", "/", "..", ""):
        folders.append(posixpath.dirname(folders[-1]) or ".")
    for looked, folder in enumerate(folders):
        if looked > MOST_READ:
            return
        for name in BUILT_BY:
            if content := read(_at(folder, name)):
                text = content[:200_000].decode("utf-8", "replace")
                yield text
                more = [_at(folder, hit) for hit in FOLDER.findall(text)]
                folders += [one for one in dict.fromkeys(more) if one not in folders]


def _xml(ran: Ran) -> Results | None:
    written = [*reports_below(ran.place, "gtest", "*.xml")]

    def read_one(report: ReportFile) -> tuple[list[TestResult], bool]:
        return read_junit(report.content, lambda case: _case(case, ran.folder))

    found = join_reports("gtest", written, read_one, ran.exit_code)
    missing = len(BEGINS.findall(ran.stdout)) > len(written)
    return replace(found, complete=False) if found is not None and missing else found


def _case(case: ReportedCase, started: str) -> TestResult:
    name = f"{case.classname}.{case.name}" if case.classname else case.name
    file = below(case.file, started) if case.file.startswith("/") else ""
    return made(name, case.outcome, file, case.line, case.message)


def _text(ran: Ran) -> Results | None:
    """Read what is printed of each test; the last test of a program that died is an error."""
    found: list[TestResult] = []
    running, lines = "", list[str]()
    for line in [*ran.stdout.splitlines(), ""]:
        hit = LINE.match(line)
        if hit is None:
            lines += [line] if running else []
        elif hit[1] == "RUN":
            running, lines = hit[2], []
        elif hit[2] == running:
            found.append(made(running, WORDS[hit[1]], message="\n".join(lines)))
            running = ""
    if running:
        found.append(made(running, "error", message=CUT_SHORT))
    complete = not running and not (ran.exit_code and not any(test.red for test in found))
    return printed("gtest", found, complete=complete)


def _with_files(results: Results, ran: Ran) -> Results:
    """The same, with the file of each test where it is found in the tree.

    Older versions of the kit name none, and some builds name one from a folder of their own.
    """
    sources = GtestSources(ran.paths, ran.source)
    tests = []
    for test in results.tests:
        path = "" if test.file else sources.file_of(test.name)
        file = posixpath.relpath(path, ran.cwd or ".") if path else test.file
        tests.append(replace(test, file=file))
    return replace(results, tests=tuple(tests))


class GtestSources:
    """The tests that a tree declares, read on demand."""

    def __init__(self, paths: Collection[str], read: ReadFile) -> None:
        self._paths = sorted(
            (path for path in paths if path.lower().endswith(ENDINGS)),
            key=lambda path: ("test" not in path.lower(), path),
        )
        self._read = read
        self._files: dict[tuple[str, str], str] | None = None

    def file_of(self, name: str) -> str:
        """The file of `Suite.Name`, also of `Many/Suite.Name/0`; "" where it is not found."""
        if self._files is None:
            self._files = {}
            for path in self._paths[:MOST_SOURCES]:
                for suite, test in DECLARED.findall(self._read(path) or b""):
                    self._files.setdefault((suite.decode(), test.decode()), path)
        suite, _, test = name.partition(".")
        own = test.partition("/")[0]
        found = (self._files.get((part, own)) for part in suite.split("/"))
        return next((path for path in found if path), "")
