"""Reads JUnit's own launcher (ConsoleLauncher): the XML that an option requests, by a shim."""

from __future__ import annotations

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import reports_below
from agentrunner.verification.results.junit import Case, dotted, read_junit
from agentrunner.verification.results.model import Instrumented, Ran, ReadFile, Results, TestResult
from agentrunner.verification.results.names import made
from agentrunner.verification.results.tools.base import Tool, join_reports
from agentrunner.verification.results.tools.java_sources import Sources
from agentrunner.verification.results.tools.shims import shimmed

LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
FILE = "junit-platform-console"


class Console(Tool):
    """Results by class and method, as in `shop.CartTest#sums()`."""

    name = "console"
    means = ("junit",)

    def matches(self, run: Run) -> bool:
        """`java` with the launcher's class, or its file behind -jar."""
        files = [word for at, word in enumerate(run.words) if run.words[at - 1] == "-jar"]
        return run.program == "java" and (
            LAUNCHER in run.words or any(FILE in file.rsplit("/", 1)[-1] for file in files)
        )

    def instrument(
        self, shell: str, cwd: str, read: ReadFile, place: str, means: int = 0
    ) -> Instrumented | None:
        """Put a `java` before the real one."""
        return shimmed(shell, place, "java")

    def read(self, ran: Ran, means: int = 0) -> Results | None:
        """Read one file per JUnit engine, written when that engine has run its tests."""
        sources = Sources(ran.paths, ran.cwd)

        def named(case: Case) -> TestResult:
            file = sources.file_of(case.classname)
            return made(dotted(case), case.outcome, file, message=case.message)

        found = reports_below(ran.place, "", "TEST-*.xml")
        ours = (report for report in found if report.path.startswith("java-"))
        return join_reports(
            "console", ours, lambda report: read_junit(report.content, named), ran.exit_code
        )
