"""Reads CTest: its JUnit XML, through a shim; else its text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import reports
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
    join_junit,
    printed,
    shimmed,
)
from agentrunner.verification.results.xml import ReportedCase

JUNIT, TEXT = range(2)
LINE = lazy_regex(
    r"^ *\d+/\d+ Test +#\d+: (.+?) \.+(?: +|\*\*\*)(Passed|Failed|Skipped|Exception: \S+|Timeout"
    r"|Not Run(?: \(Disabled\))?|Could not find executable.*?|Required regular expression.*?)"
    r"(?: +[\d.]+ sec.*| *)$",
    re.MULTILINE,
)
TOTAL = lazy_regex(r"tests? failed out of (\d+)")


class CTest(Tool):
    """Results by the names that `add_test` gives."""

    name = "ctest"
    means = ("junit", "text")
    named_by = ("-R",)

    def matches(self, run: Run) -> bool:
        """`ctest`, and build tools told to run a target called test, which may start it."""
        if run.program == "cmake":
            return "--build" in run.words and bool({"test", "check"} & set(run.words))
        return run.program == "ctest" or (run.program == "ninja" and "test" in run.words)

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Put a `ctest` before the real one."""
        return shimmed(command.shell, place, "ctest") if means == JUNIT else None

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read the XML; the text where CTest was started by its full path, as by CMake targets."""
        written = reports(ran.place, "ctest-*.xml") if means == JUNIT else ()
        return join_junit("ctest", written, _case) or _text(ran)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by a regular expression."""
        if run.program != "ctest":
            return None
        return added(shell, run, ["-R", f"^({'|'.join(re.escape(name) for name in names)})$"])


def _case(case: ReportedCase) -> TestResult:
    # Nobody skipped a test whose program does not exist.
    gone = case.outcome == "skipped" and "Unable to find executable" in case.message + case.kind
    return made(case.name, "error" if gone else case.outcome, message=case.message)


def _text(ran: Ran) -> Results | None:
    found = []
    for name, word in LINE.findall(ran.stdout):
        skipped = word == "Skipped" or "Disabled" in word
        outcome = "passed" if word == "Passed" else "skipped" if skipped else "failed"
        found.append(made(name, "error" if word in ("Not Run",) else outcome))
    total = TOTAL.search(ran.stdout)
    complete = total is not None and int(total[1]) <= len(found)
    return printed("ctest", found, complete=complete)
