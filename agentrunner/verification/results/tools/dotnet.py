"""Reads dotnet test: its TRX files, which a shim requests."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.verification.results import xml
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import reports_below
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made
from agentrunner.verification.results.tools.base import Tool, added, join_reports, shimmed

WORDS = {
    "Passed": "passed", "Failed": "failed", "NotExecuted": "skipped", "Inconclusive": "skipped",
    "PassedButRunAborted": "passed", "Pending": "skipped", "Warning": "passed",
}  # fmt: skip
"""Everything else (Error, Timeout, Aborted, Disconnected, …) is an error."""


class Dotnet(Tool):
    """Results by the test's full name."""

    name = "dotnet"
    means = ("trx",)
    named_by = ("--filter",)

    def matches(self, run: Run) -> bool:
        """`dotnet test`."""
        return run.program == "dotnet" and run.words[1:2] == ("test",)

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Put a `dotnet` before the real one."""
        return shimmed(command.shell, place, "dotnet")

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read one TRX file for each project and framework."""
        found = reports_below(ran.place, "", "*.trx")
        ours = (report for report in found if report.path.startswith("dotnet-"))
        return join_reports("dotnet", ours, lambda report: read_trx(report.content), ran.exit_code)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by full names, without the arguments of parametrised tests."""
        wanted = dict.fromkeys(name.partition("(")[0] for name in names)
        return added(
            shell, run, ["--filter", "|".join(f"FullyQualifiedName={name}" for name in wanted)]
        )


def read_trx(content: bytes) -> tuple[list[TestResult], bool]:
    """The tests of one TRX document, and whether it is complete and its run was not aborted."""
    rows: list[tuple[str, str, str, list[str]]] = []
    classes: dict[str, str] = {}
    state = {"id": "", "outcome": ""}

    def opened(path: list[xml.Element]) -> None:
        element = path[-1]
        if element.tag == "UnitTest":
            state["id"] = element.get("id")
        elif element.tag == "TestMethod" and state["id"]:
            classes[state["id"]] = element.get("className").partition(",")[0]
        elif element.tag == "ResultSummary":
            state["outcome"] = element.get("outcome")
        elif element.tag == "UnitTestResult":
            rows.append(
                (element.get("testId"), element.get("testName"), element.get("outcome"), [])
            )

    def closed(path: list[xml.Element]) -> None:
        element = path[-1]
        if element.tag == "Message" and rows and path[-2].tag == "ErrorInfo":
            rows[-1][3].append(element.text)

    whole = xml.parse(content, opened, closed)
    found = []
    for test, name, outcome, message in rows:
        where = classes.get(test, "")
        full = name if not where or name.startswith(where) else f"{where}.{name}"
        found.append(made(full, WORDS.get(outcome, "error"), message="\n".join(message)))
    return found, whole and state["outcome"] not in ("Aborted", "Error", "Timeout", "Disconnected")
