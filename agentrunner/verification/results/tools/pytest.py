"""Reads pytest: by a plug-in of ours; else its JUnit XML; else its output with -v or -rA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import reports
from agentrunner.verification.results.lines import read_lines
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made, test_of_case, uncoloured
from agentrunner.verification.results.shell import quoted
from agentrunner.verification.results.tools.base import (
    Tool,
    added,
    hooked,
    join_junit,
    plain_words,
    printed,
    replaced_words,
)
from agentrunner.verification.results.xml import ReportedCase

PLUG_IN, JUNIT, TEXT = range(3)
VALUED = frozenset(
    "-k -m -c -p -o -n -W -r --maxfail --rootdir --confcutdir --ignore --deselect --tb --durations"
    " --cov-config --junitxml --basetemp --timeout --dist --numprocesses --color --log-level"
    " --override-ini --import-mode --capture --reruns --ignore-glob --log-cli-level --verbosity"
    " --rcfile --ds --durations-min --show-capture --log-file".split()
)
"""Options whose value may be the next word."""
WORDS = {
    "PASSED": "passed", "FAILED": "failed", "ERROR": "error", "SKIPPED": "skipped",
    "XFAIL": "xfailed", "XPASS": "xpassed",
}  # fmt: skip
SUMMARY = " short test summary info "
"""Above such lines, of which those about files that cannot be collected have no `::`."""
VERBOSE = lazy_regex(
    r"^(?:\[gw\d+\] \[ *\d+%\] )?(?P<first>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (?P<name>\S.*)$"
    r"|^(?P<id>[^\s:][^\n]*?::\S.*?) (?P<last>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
    r"(?: \(.*\))?(?: +\[ *\d+%\])?$"
)


class Pytest(Tool):
    """Results by node id, relative to the folder that the command runs in."""

    name = "pytest"
    by_path = True
    means = ("plug-in", "junit", "text")
    named_by = ("-k",)

    def matches(self, run: Run) -> bool:
        """`pytest`, `py.test`, `python -m pytest`, and Python scripts that may call it."""
        if run.program in ("pytest", "py.test"):
            return True
        python = run.python
        return python is not None and (
            python[0] in ("-m pytest", "-m py.test") or not python[0].startswith("-m ")
        )

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Add a plug-in that Python itself loads; as weaker means options in the environment."""
        if means == PLUG_IN:
            return hooked(command.shell, place)
        if means == JUNIT:
            options = f"--junitxml={place}/pytest.xml -o junit_family=xunit1"
            return Instrumented(command.shell, {"PYTEST_ADDOPTS": options})
        return Instrumented(command.shell, {"PYTEST_ADDOPTS": "-vv -rA"})

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read what the plug-in wrote, or the XML, or the text."""
        if means == PLUG_IN:
            return read_lines(ran.place, "pytest", ran.folder)
        if means == JUNIT:
            return _junit(ran)
        return _text(ran)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by node ids, which replace the paths in the command.

        A sub-test has none of its own.
        """
        names = list(dict.fromkeys(map(test_of_case, names)))
        if run.direct:
            return _replaced(shell, run, names)
        return added(shell, run, names)


def _replaced(shell: str, run: Run, names: Sequence[str]) -> str | None:
    python = run.python
    if python is not None and "pytest" not in python[0]:
        return None
    first = run.position + (python[1] if python else 0) + 1
    paths = plain_words(run.outer.words[first:], VALUED) if run.outer else ()
    return replaced_words(shell, run, paths, " ".join(quoted(name) for name in names))


def _junit(ran: Ran) -> Results | None:
    written = reports(ran.place, "pytest*.xml")
    results = join_junit("pytest", written, _case)
    ended = ran.exit_code in (0, 1)
    return results if results is None or ended else replace(results, complete=False)


def _of_collection(test: TestResult) -> TestResult:
    """The same; one of a whole file, which could not be collected, stands for its tests."""
    return replace(test, unloaded=test.outcome == "error" and "::" not in test.name)


def _case(case: ReportedCase) -> TestResult:
    """A result named as the plug-in would, as far as the XML allows."""
    outcome = case.outcome
    if outcome == "skipped" and case.kind == "pytest.xfail":
        outcome = "xfailed"
    dotted = case.file.removesuffix(".py").replace("/", ".")
    rest = case.classname.removeprefix(dotted).strip(".").replace(".", "::")
    if not case.file or not case.classname:
        # For a collection error this is a module's name, and maybe its file.
        name = case.file or (case.classname or case.name).replace(".", "/") + ".py"
        return _of_collection(made(name, outcome, name, message=case.message))
    name = "::".join(part for part in (case.file, rest, case.name) if part)
    line = None if case.line is None else case.line + 1
    return made(name, outcome, case.file, line, case.message)


def _text(ran: Ran) -> Results | None:
    """Read lines of -v and of the -rA summary; a name counts once for each of the two."""
    lists: tuple[list[TestResult], list[TestResult]] = ([], [])
    for line in ran.stdout.replace("\r", "").splitlines():
        hit = VERBOSE.match(uncoloured(line))
        if hit is None:
            continue
        word = hit["first"] or hit["last"]
        name = hit["id"] or hit["name"]
        if "::" not in name and not (word == "ERROR" and SUMMARY in ran.stdout):
            continue  # a line of another program: pytest's tests are called `file::name`
        if hit["id"] is None and not line.startswith("["):
            if word == "SKIPPED":
                continue  # `SKIPPED [1] file:line: reason` has no name.
            name, _, message = name.partition(" - ")
            found = made(name, WORDS[word], name.partition("::")[0], message=message)
            lists[1].append(_of_collection(found))
        else:
            lists[0].append(made(name, WORDS[word], name.partition("::")[0]))
    tests = list(lists[0] if len(lists[0]) >= len(lists[1]) else lists[1])
    verbose = {test.name for test in tests}
    tests += [test for test in lists[1] if test.red and test.name not in verbose]
    return printed("pytest", tests, complete=ran.exit_code in (0, 1))
