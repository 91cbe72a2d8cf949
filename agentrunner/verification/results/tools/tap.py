"""Reads prove and other users of Perl's test harness: the TAP that it keeps; else printed TAP."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import ReportFile, reports_below
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made
from agentrunner.verification.results.shell import quoted
from agentrunner.verification.results.tap import parse, read_tap
from agentrunner.verification.results.tools.base import (
    Tool,
    join_reports,
    plain_words,
    replaced_words,
)

KEPT, TEXT = range(2)
PROGRAM = lazy_regex(
    r"^(\S+) \.+ *(?:$|ok$|skipped|(Dubious|Failed|No subtests run|Parse errors).*)"
)


class Tap(Tool):
    """Results by program and description, or number where a test has none."""

    name = "tap"
    by_path = True
    means = ("kept", "text")

    def matches(self, run: Run) -> bool:
        """prove, Perl's builders and their makefiles, and programs that print TAP themselves."""
        words = run.words
        return bool(
            run.program in ("prove", "yath", "bats")
            or run.tool(("tape", "tap"))
            or words[0] in ("./Build",)
            or (run.program == "perl" and any(w.endswith((".t", "Build.PL")) for w in words))
        )

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Make the harness keep each program's TAP in a folder; else make it print all of it."""
        if means == KEPT:
            return Instrumented(command.shell, {"PERL_TEST_HARNESS_DUMP_TAP": f"{place}/tap"})
        return Instrumented(command.shell, {"HARNESS_VERBOSE": "1"})

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read one kept stream for each program, or what was printed."""
        if means == KEPT:
            return join_reports("tap", reports_below(ran.place, "tap"), _kept, ran.exit_code)
        return _printed(ran)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow to the programs of these tests; single tests cannot be selected."""
        if run.program != "prove" or not run.direct or run.outer is None:
            return None
        programs = list(dict.fromkeys(name.partition(" > ")[0] for name in names))
        valued = ("-I", "-e", "--exec", "-j", "-a", "-P", "--state", "-M", "--ext", "--harness")
        given = plain_words(run.outer.words[run.position + 1 :], valued)
        return replaced_words(shell, run, given, " ".join(quoted(program) for program in programs))


def _kept(report: ReportFile) -> tuple[list[TestResult], bool]:
    stream = parse(report.content.decode("utf-8", "replace").splitlines(), report.path)
    if stream.complete and not report.cut:
        return [*stream.tests], True
    why = "its TAP is cut, or does not say for sure which of its tests failed"
    cut = made(report.path, "error", report.path, message=why)
    return [*stream.tests, cut], False


def _printed(ran: Ran) -> Results | None:
    """Read the output of `prove -v`: a line `t/a.t ..` before the TAP of each program."""
    found: list[TestResult] = []
    complete, program, any_program = True, "", False
    lines: list[str] = []
    for line in [*ran.stdout.splitlines(), " .. "]:
        if (hit := PROGRAM.match(line)) or line == " .. ":
            if program:
                stream = parse(lines, program)
                found += stream.tests
                complete &= stream.complete
            program, lines = (hit[1] if hit else ""), []
            any_program = any_program or bool(hit)
        else:
            lines.append(line)
    if not any_program:
        return read_tap(ran.stdout, "tap", ran.exit_code)
    if ran.exit_code and not any(test.red for test in found):
        complete = False
    return Results("tap", tuple(found), weak=True, complete=complete)
