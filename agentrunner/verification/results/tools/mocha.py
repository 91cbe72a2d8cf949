"""Reads Mocha: by a reporter of ours that also runs the chosen one; else its JSON reporter."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import ReportFile, reports
from agentrunner.verification.results.lines import read_lines
from agentrunner.verification.results.model import Ran, Results, TestResult
from agentrunner.verification.results.names import below, made
from agentrunner.verification.results.tools.base import added, join_reports
from agentrunner.verification.results.tools.javascript import JavaScript
from agentrunner.verification.results.tools.jest import title_pattern

OUTCOMES = (("passes", "passed"), ("failures", "failed"), ("pending", "skipped"))


class Mocha(JavaScript):
    """Results by file and titles."""

    name = "mocha"
    programs = frozenset({"mocha", "_mocha"})
    named_by = ("-g", "--grep", "-f", "--fgrep")

    def options(self, place: str) -> list[str]:
        """The options that write JSON into a file, instead of the usual report."""
        return ["--reporter=json", f"--reporter-option=output={place}/mocha.json"]

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read what our reporter wrote, else the JSON."""
        written = reports(ran.place, "mocha.json")
        return read_lines(ran.place, "mocha", ran.folder) or join_reports(
            "mocha", written, lambda report: _json(report, ran.folder)
        )

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by a pattern of titles."""
        if self.is_narrow(run):
            return None
        return added(shell, run, ["--grep", title_pattern(names)])


def _json(report: ReportFile, started: str) -> tuple[list[TestResult], bool]:
    found: list[TestResult] = []
    try:
        content = json.loads(report.content.decode("utf-8", "replace"))
        for key, outcome in OUTCOMES:
            for test in content[key]:
                file = below(str(test.get("file") or ""), started)
                name = " > ".join(part for part in (file, str(test["fullTitle"])) if part)
                message = str((test.get("err") or {}).get("message") or "")
                found.append(made(name, outcome, file, message=message))
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return [], False
    return found, True
