"""The base for Jest, Vitest and Mocha: a hook in NODE_OPTIONS adds a report to their options."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import ReportFile, reports
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import below, made, unloaded
from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.shell import edited, quoted
from agentrunner.verification.results.tools.base import Tool, join_reports

HOOK, OPTIONS = range(2)
NAMES = ("agentrunner_hook.cjs", "agentrunner_mocha.cjs", "agentrunner_look.cjs")
STATES = {"passed": "passed", "failed": "failed", "pending": "skipped", "skipped": "skipped",
          "todo": "skipped", "disabled": "skipped", "focused": "passed"}  # fmt: skip


class JavaScript(Tool):
    """A tool that Node runs."""

    means: Sequence[str] = ("hook", "options")
    by_path = True
    programs: frozenset[str] = frozenset()

    def matches(self, run: Run) -> bool:
        """The tool by its name, or its file as an argument of Node."""
        return run.tool(self.programs) is not None

    def options(self, place: str) -> list[str]:
        """The option added to the command where the hook does not reach the tool."""
        raise NotImplementedError

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Add the hook; or options, where a recipe sets NODE_OPTIONS itself or as weaker means."""
        runs = self.runs(command)
        hidden = [
            run for run in runs if any(each.startswith("NODE_OPTIONS=") for each in run.assignments)
        ]
        if means == HOOK and all(run.direct for run in hidden):
            env = {"NODE_OPTIONS": f"--require={place}/node/agentrunner_hook.cjs"}
            files = {f"node/{name}": text_of(name) for name in NAMES}
            return Instrumented(_joined(command.shell, hidden, env["NODE_OPTIONS"]), env, files)
        return self.with_options(command, self.options(place))

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read the JSON, which has Jest's form."""

        def read_one(report: ReportFile) -> tuple[list[TestResult], bool]:
            try:
                content = json.loads(report.content.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                return [], False
            return _suites(content, ran.folder) if isinstance(content, dict) else ([], False)

        return join_reports(self.name, reports(ran.place, f"{self.name}*.json"), read_one)


def _joined(shell: str, runs: list[Run], option: str) -> str:
    """The command, with our option before those that it sets itself."""
    edits = []
    for run in runs:
        words = (*run.outer.assignments, *run.outer.words) if run.outer else ()
        for word in words:
            if word.text.startswith("NODE_OPTIONS="):
                at = shell.index("=", word.start) + 1
                edits.append((at, at, quoted(f"{option} ")))
    return edited(shell, list(dict.fromkeys(edits)))


def _suites(content: dict[str, Any], started: str) -> tuple[list[TestResult], bool]:
    """The tests of all files, and whether none is missing."""
    found: list[TestResult] = []
    whole = not content.get("wasInterrupted")
    suites = _dicts(content.get("testResults"))
    for suite in suites:
        path = str(suite.get("name") or "")
        file = below(path, started) or posixpath.basename(path)
        tests = list(_dicts(suite.get("assertionResults")))
        for test in tests:
            titles = [str(each) for each in _list(test.get("ancestorTitles")) if each]
            name = " > ".join([file, *titles, str(test.get("title") or "")])
            state = STATES.get(str(test.get("status")), "error")
            location = test.get("location")
            line = location.get("line") if isinstance(location, dict) else None
            message = "\n".join(str(each) for each in _list(test.get("failureMessages")))
            found.append(made(name, state, file, line if isinstance(line, int) else None, message))
        red = any(test.get("status") == "failed" for test in tests)
        if suite.get("status") == "failed" and not red:
            found.append(unloaded(file, file, message=str(suite.get("message") or "")))
    total = content.get("numTotalTestSuites")
    run = content.get("numPassedTests"), content.get("numFailedTests")
    if content.get("success") is False and not any(test.red for test in found) and any(run):
        whole = False
    return found, whole and not (isinstance(total, int) and not found and total)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    return (each for each in _list(value) if isinstance(each, dict))
