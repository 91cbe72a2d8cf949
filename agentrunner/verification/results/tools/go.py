"""Reads go test: its JSON events; else its text with -v."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import reports
from agentrunner.verification.results.lines import CUT_SHORT
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    ReadFile,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import MOST_MESSAGE, made, unloaded
from agentrunner.verification.results.shell import edited
from agentrunner.verification.results.tools.base import Tool, added, join_reports, printed, shimmed

EVENTS, TEXT = range(2)
CRASHED = lazy_regex(r"^(?:fatal error|panic): .*(?s:.*?)^goroutine \d+ \[", re.MULTILINE)
"""What Go writes where the code under test ends the program: a race that it sees, a deadlock."""
FINAL = {"pass": "passed", "fail": "failed", "skip": "skipped"}
BROKEN = lazy_regex(r"^FAIL\t(\S+)(?: \[(?:build|setup) failed\])?")
VERBOSE = lazy_regex(r"^ *--- (PASS|FAIL|SKIP): (\S+) \(")
PACKAGE = lazy_regex(r"^(?:ok  |FAIL|\?   )\t(\S+)(?:\t| \[)")
WORDS = {"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
MODULE = lazy_regex(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
FUNCTION = lazy_regex(r"^func\s+(\w+)\s*\(", re.MULTILINE)
OF_TEST = lazy_regex(r"\.(?=(?:Test|Fuzz|Example|Benchmark)(?![a-z]))")
"""The dot between a package and a test."""


class Go(Tool):
    """Results by package and test, as in `example.com/shop/cart.TestSum/two`."""

    name = "go"
    means = ("events", "text")
    named_by = ("-run",)

    def matches(self, run: Run) -> bool:
        """`go test`."""
        return run.program == "go" and "test" in run.words[1:2]

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Put a `go` before the real one; else the option -v into its environment."""
        if means == EVENTS:
            return shimmed(command.shell, place, "go")
        return Instrumented(command.shell, {"GOFLAGS": "-v"})

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read the events or the text; add the file of each test, which Go does not report."""
        results = _events(ran) if means == EVENTS else _text(ran)
        return _with_files(results, ran) if results is not None else None

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by `-run` with the outermost names, and by the packages that have them."""
        packages: set[str] = set()
        tests: dict[str, None] = {}
        for name in names:
            package, test = package_and_test(name)
            packages.add(package)
            tests[test.partition("/")[0]] = None
        if not all(tests):
            return None
        pattern = f"^({'|'.join(re.escape(test) for test in tests)})$"
        if run.direct and run.outer is not None:
            words = run.outer.words[run.position + 2 :]
            edits = [(w.start, w.end, "") for w in words if re.match(r"\.{1,2}/|\.$", w.text)]
            at = run.outer.words[run.position + 1].end
            text = f" -run '{pattern}' " + " ".join(sorted(packages))
            return edited(shell, [*edits, (at, at, text)])
        return added(shell, run, ["-run", pattern])


def package_and_test(name: str) -> tuple[str, str]:
    """The package and the test in a name; "" for the test in the name of a package."""
    hit = OF_TEST.search(name)
    return (name[: hit.start()], name[hit.end() :]) if hit else (name, "")


def _with_files(results: Results, ran: Ran) -> Results:
    """The same, with the file of each test where it is found in the tree."""
    sources = GoSources(ran.paths, ran.source)
    tests = []
    for test in results.tests:
        if test.unloaded:
            files = (posixpath.relpath(path, ran.cwd) for path in sources.files_of(test.name))
            tests.append(replace(test, files=tuple(files)))
            continue
        path = "" if test.file else sources.file_of(*package_and_test(test.name))
        file = posixpath.relpath(path, ran.cwd) if path else test.file
        tests.append(replace(test, file=file))
    return replace(results, tests=tuple(tests))


class _Package(Struct):
    running: dict[str, list[str]] = field(default_factory=dict)
    final: str = ""
    red: bool = False
    output: list[str] = field(default_factory=list)
    broken: bool = False


def _events(ran: Ran) -> Results | None:
    written = reports(ran.place, "go-*.jsonl")
    return join_reports("go", written, lambda report: _one(report.content, ran.stderr))


def _one(content: bytes, stderr: str) -> tuple[list[TestResult], bool]:
    found: list[TestResult] = []
    packages: dict[str, _Package] = {}
    complete = True
    built = _compiled(stderr)
    for event in _parsed(content):
        name, test = str(event.get("Package") or ""), str(event.get("Test") or "")
        action, output = event.get("Action"), event.get("Output")
        if event.get("FailedBuild") and action == "fail":
            packages.setdefault(name, _Package()).broken = True
        if action == "build-output" and isinstance(output, str):
            path = str(event.get("ImportPath") or "").partition(" ")[0]
            built[path] = (built.get(path, "") + output)[:MOST_MESSAGE]
        if not name or action in ("build-output", "build-fail"):
            continue
        package = packages.setdefault(name, _Package())
        if action == "output" and isinstance(output, str):
            _keep_output(package, test, output)
        elif test and action == "run":
            package.running[test] = []
        elif test and action in FINAL:
            message = "".join(package.running.pop(test, []))
            package.red |= action == "fail"
            found.append(made(f"{name}.{test}", FINAL[str(action)], message=_message(message)))
        elif action in FINAL:
            package.final = str(action)
    for name, package in packages.items():
        for test, lines in package.running.items():
            output = "".join(lines)
            crashed = CRASHED.search(output) is not None
            package.red |= crashed
            outcome, message = ("failed", _message(output)) if crashed else ("error", CUT_SHORT)
            found.append(made(f"{name}.{test}", outcome, message=message))
        if (package.final == "fail" and not package.red) or package.broken:
            message = built.get(name, "") or "".join(package.output)[-MOST_MESSAGE:]
            found.append(unloaded(name, message=message))
        complete &= bool(package.final or package.broken) and not package.running
    return found, complete


def _compiled(stderr: str) -> dict[str, str]:
    """What the compiler said of each package. Before Go 1.24 it is no event."""
    parts = re.split(r"(?m)^# (\S+)(?: \[\S+\])?$", stderr)
    return {
        name: text.strip()[:MOST_MESSAGE]
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def _keep_output(package: _Package, test: str, output: str) -> None:
    if test:
        lines = package.running.setdefault(test, [])
        if sum(len(line) for line in lines[-50:]) < 2 * MOST_MESSAGE:
            lines.append(output)
    elif len(package.output) < 200:
        package.output.append(output)
    if output.startswith("panic: ") or re.match(r"exit status (?!1\n)|signal: ", output):
        package.broken = True


def _message(output: str) -> str:
    lines = output.splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith(("=== ", "--- ")))


def _parsed(content: bytes) -> Iterator[dict[str, Any]]:
    """Each event; other lines are go's own messages, such as `FAIL pkg [build failed]`."""
    for line in content.split(b"\n"):
        text = line.decode("utf-8", "replace")
        if text.startswith("{"):
            try:
                event = json.loads(text)
            except (ValueError, RecursionError):
                yield {"Action": "output", "Package": "?", "Output": ""}
                continue
            if isinstance(event, dict):
                yield event
        elif hit := BROKEN.match(text):
            yield {"Action": "fail", "Package": hit[1]}


def _text(ran: Ran) -> Results | None:
    """Read text with -v: the tests of a package come before its line."""
    found: list[TestResult] = []
    waiting: list[tuple[str, str]] = []
    built = _compiled(ran.stderr)
    for line in ran.stdout.splitlines():
        if hit := VERBOSE.match(line):
            waiting.append((hit[2], WORDS[hit[1]]))
        elif hit := PACKAGE.match(line):
            found += [made(f"{hit[1]}.{test}", outcome) for test, outcome in waiting]
            if line.startswith("FAIL") and not any(outcome == "failed" for _, outcome in waiting):
                found.append(unloaded(hit[1], message=built.get(hit[1], "")))
            waiting = []
    return printed("go", found, complete=not waiting)


class GoSources:
    """The modules and test files of one tree, read on demand."""

    def __init__(self, paths: Collection[str], read: ReadFile) -> None:
        self._read = read
        self._modules = {
            hit[1]: posixpath.dirname(path)
            for path in paths
            if posixpath.basename(path) == "go.mod"
            and (hit := MODULE.search(self._text(path))) is not None
        }
        self._files: dict[str, list[str]] = {}
        for path in paths:
            if path.endswith("_test.go"):
                self._files.setdefault(posixpath.dirname(path) or ".", []).append(path)
        self._functions: dict[str, dict[str, str]] = {}

    def file_of(self, package: str, test: str) -> str:
        """The file of a test, or of a subtest's outer test; "" where it is not found."""
        folder = self._folder_of(package)
        if folder not in self._functions:
            self._functions[folder] = {
                hit[1]: path
                for path in self._files.get(folder, ())
                for hit in FUNCTION.finditer(self._text(path))
            }
        return self._functions[folder].get(test.partition("/")[0], "")

    def files_of(self, package: str) -> tuple[str, ...]:
        """All test files of a package; () where it is not found."""
        return tuple(self._files.get(self._folder_of(package), ()))

    def _folder_of(self, package: str) -> str:
        """The folder of a package; "" where no module of the tree has it."""
        for module in sorted(self._modules, key=len, reverse=True):
            if package == module or package.startswith(f"{module}/"):
                below = package[len(module) + 1 :]
                return posixpath.normpath(posixpath.join(self._modules[module], below))
        return ""

    def _text(self, path: str) -> str:
        return (self._read(path) or b"").decode("utf-8", "replace")
