"""Reads behave: its own JSON, from a formatter beside the chosen ones; else its JUnit XML."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import ReportFile, reports, reports_below
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made
from agentrunner.verification.results.tools.base import (
    Tool,
    added,
    hooked,
    join_junit,
    join_reports,
)
from agentrunner.verification.results.xml import ReportedCase

FORMATTER, JUNIT = range(2)


class Behave(Tool):
    """Results by feature file and scenario."""

    name = "behave"
    by_path = True
    means = ("formatter", "junit")

    def matches(self, run: Run) -> bool:
        """`behave` and `python -m behave`."""
        python = run.python
        return run.program == "behave" or (python is not None and python[0] == "-m behave")

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """A hook that Python itself loads; else options."""
        if means == FORMATTER:
            return hooked(command.shell, place)
        options = ["--junit", f"--junit-directory={place}/behave"]
        return self.with_options(command, options)

    def read(self, ran: Ran, means: int) -> Results | None:
        """The JSON of each run, or the XML of each feature."""
        if means == FORMATTER:
            return join_reports("behave", reports(ran.place, "behave-*.json"), _json, ran.exit_code)
        return join_junit("behave", reports_below(ran.place, "behave"), _case)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by a regular expression for the scenario's name."""
        titles = [re.escape(name.partition(" > ")[2]).replace(r"\ ", " ") for name in names]
        return added(shell, run, [part for title in titles for part in ("-n", f"^{title}$")])


def _json(report: ReportFile) -> tuple[list[TestResult], bool]:
    found: list[TestResult] = []
    text = report.content.decode("utf-8", "replace").strip()
    try:
        # A run that was cut does not write the closing bracket.
        for feature in json.loads(text or "[]"):
            found += _feature(feature)
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
        return found, False
    return found, True


def _feature(feature: dict[str, Any]) -> list[TestResult]:
    found = []
    elements = list(feature.get("elements") or [])
    for rule in [each for each in elements if each.get("type") == "rule"]:
        elements += rule.get("elements") or []
    for element in elements:
        if element.get("type") not in ("scenario", "scenario_outline"):
            continue
        file, _, line = str(element.get("location") or feature.get("location") or "").rpartition(
            ":"
        )
        steps = [step.get("result") or {} for step in element.get("steps") or []]
        status = str(element.get("status") or "")
        bad = [step for step in steps if step.get("status") in ("failed", "error", "undefined")]
        outcome = {"passed": "passed", "failed": "failed", "skipped": "skipped"}.get(
            status, "error"
        )
        if status == "untested":
            outcome = "skipped"
        text = ""
        for step in bad:
            message = step.get("error_message")
            text = (
                "\n".join(message) if isinstance(message, list) else str(message or step["status"])
            )
        number = int(line) if line.isascii() and line.isdigit() else None
        found.append(made(f"{file} > {element.get('name') or ''}", outcome, file, number, text))
    return found


def _case(case: ReportedCase) -> TestResult:
    file = f"features/{case.classname.partition('.')[0]}.feature"
    return made(f"{file} > {case.name}", case.outcome, file, message=case.message)
