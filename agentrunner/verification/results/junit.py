"""Reads JUnit XML, which pytest, CTest, PHPUnit, Maven and Gradle write, each a bit differently."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from agentrunner.verification.results import xml
from agentrunner.verification.results.model import TestOutcomeKind, TestResult
from agentrunner.verification.results.names import MOST_MESSAGE, made

MOST_TESTS = 500_000
OUTCOME_OF_TAG: dict[str, TestOutcomeKind] = {
    "failure": "failed", "error": "error", "skipped": "skipped", "rerunFailure": "failed",
    "rerunError": "error",
}  # fmt: skip
OUTCOME_OF_STATUS: dict[str, TestOutcomeKind] = {
    "fail": "failed", "failed": "failed", "disabled": "skipped", "notrun": "skipped",
}  # fmt: skip


class ReportedCase(Struct):
    """One `testcase` of a report."""

    name: str
    classname: str
    file: str = ""
    line: int | None = None
    outcome: TestOutcomeKind = "passed"
    kind: str = ""
    """The type that a failure or skip states."""
    message: str = ""
    suite: str = ""
    problems: list[TestOutcomeKind] = field(default_factory=list)


def dotted(case: ReportedCase) -> str:
    """`classname#name`, as Maven accepts it."""
    return f"{case.classname}#{case.name}" if case.classname else case.name


def read_junit(
    content: bytes, named: Callable[[ReportedCase], TestResult | None] | None = None
) -> tuple[list[TestResult], bool]:
    """The tests of one document in their order, and whether it was complete.

    `named` makes a result of each test; None leaves the test out.
    """
    found: list[TestResult] = []
    current: list[ReportedCase] = []
    totals = [0]

    def opened(path: list[xml.Element]) -> None:
        element = path[-1]
        if element.tag == "testcase":
            current.append(_case(element, path))
        elif current and path[-2].tag == "testcase" and element.tag in OUTCOME_OF_TAG:
            _add_problem(current[-1], element)

    def closed(path: list[xml.Element]) -> None:
        element = path[-1]
        if current and path[-2:-1] and path[-2].tag == "testcase" and element.tag in OUTCOME_OF_TAG:
            case = current[-1]
            case.message = _joined_message(case.message, element.get("message"), element.text)
        elif current and element.tag == "system-out" and path[-2].tag == "testcase":
            # CTest reports what went wrong only here.
            case = current[-1]
            case.message = case.message or element.text[-MOST_MESSAGE:]
        elif element.tag == "testcase" and current:
            totals[0] += 1
            result = (named or _plain)(current.pop())
            if result is not None and totals[0] <= MOST_TESTS:
                found.append(result)

    whole = xml.parse(content, opened, closed)
    return found, whole and totals[0] <= MOST_TESTS


def _case(element: xml.Element, path: list[xml.Element]) -> ReportedCase:
    suites = [each.get("name") for each in path[:-1] if each.tag == "testsuite"]
    files = [each.get("file") for each in (*path[:-1], element) if each.get("file")]
    line = element.get("line")
    return ReportedCase(
        element.get("name"),
        element.get("classname") or element.get("class"),
        files[-1] if files else "",
        int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None,
        OUTCOME_OF_STATUS.get(element.get("status"), "passed"),
        suite=suites[-1] if suites else "",
    )


def _add_problem(case: ReportedCase, element: xml.Element) -> None:
    outcome = OUTCOME_OF_TAG[element.tag]
    if not element.tag.startswith("rerun"):
        case.problems.append(outcome)
        case.kind = element.get("type") or case.kind
    # A test that failed stays failed when something outside of it broke, too.
    for wanted in ("failed", "error", "skipped"):
        if wanted in case.problems:
            case.outcome = wanted
            break


def _joined_message(message: str, *more: str) -> str:
    parts = [message] if message else []
    for text in more:
        if text.strip() and not any(text.strip() in part for part in parts):
            parts.append(text.strip())
    return "\n".join(parts)[: 2 * MOST_MESSAGE]


def _plain(case: ReportedCase) -> TestResult:
    return made(dotted(case), case.outcome, case.file, case.line, case.message)
