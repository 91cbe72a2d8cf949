"""Reads PHPUnit: its JUnit XML, requested by a file that PHP loads first; else by an option."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import ReportFile, read_small, reports
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import below, made
from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.tools.base import Tool, added, join_reports
from agentrunner.verification.results.xml import ReportedCase, read_junit

PREPENDED, OPTION = range(2)
PROGRAMS = frozenset({"phpunit", "paratest", "pest", "artisan", "phpunit.phar"})


class PHPUnit(Tool):
    """Results by class and method, as in `Shop\\CartTest::testSums with data set #0`."""

    name = "phpunit"
    means = ("prepended", "option")
    named_by = ("--filter",)

    def matches(self, run: Run) -> bool:
        """`phpunit`, also as a script run by PHP."""
        if run.program in PROGRAMS:
            return True
        return run.program.startswith("php") and any(
            word.rsplit("/", 1)[-1] in PROGRAMS for word in run.words[1:4]
        )

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Add a PHP setting in a folder of ours; else the option itself."""
        if means == PREPENDED:
            setting = f'auto_prepend_file="{place}/php/agentrunner_prepend.php"\n'
            return Instrumented(
                command.shell,
                {"PHP_INI_SCAN_DIR": f"{place}/php"},
                {
                    "php/agentrunner.ini": setting,
                    "php/agentrunner_prepend.php": text_of("agentrunner_prepend.php"),
                },
            )
        options = ["--log-junit", f"{place}/phpunit-1.xml"]
        return self.with_options(command, options)

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read the XML; PHPUnit writes it at its end, so after a crash there is none."""

        def read_one(report: ReportFile) -> tuple[list[TestResult], bool]:
            where = read_small(ran.place, report.path.replace(".xml", ".cwd"))
            folder = below(where, ran.folder)
            return read_junit(report.content, lambda case: _case(case, folder, ran.folder))

        written = list(reports(ran.place, "phpunit-*.xml"))
        begun = {report.path for report in reports(ran.place, "phpunit-*.cwd")}
        ended = {report.path.replace(".xml", ".cwd") for report in written}
        results = join_reports(self.name, written, read_one, ran.exit_code)
        if begun <= ended:
            return results
        return Results(self.name, results.tests if results else (), complete=False)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by a regular expression."""
        methods = [re.escape(name.partition(": ")[2] or name).replace("/", r"\/") for name in names]
        return added(shell, run, ["--filter", f"/^({'|'.join(methods)})$/"])


def _case(case: ReportedCase, folder: str, started: str) -> TestResult:
    where = f"{case.classname}::" if case.classname else ""
    if case.suite and "::" in case.suite and not where:
        where = f"{case.suite.partition('::')[0]}::"
    where = re.sub(r"(?<=\w)\.(?=\w)", r"\\", where)
    prefix = f"{folder}: " if folder else ""
    file = below(case.file, started)
    return made(f"{prefix}{where}{case.name}", case.outcome, file, case.line, case.message)
