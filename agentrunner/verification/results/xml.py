"""Parses XML of hostile origin as a stream, and reads JUnit reports by it.

There are no entities and no DTD; depth and text are bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.parsers import expat

from msgspec import Struct, field

from agentrunner.verification.results.model import TestOutcomeKind, TestResult
from agentrunner.verification.results.names import MOST_MESSAGE, made

MOST_DEPTH = 50
MOST_TEXT = 8_000
"""Characters of one element's text; what is longer is cut."""
STEP = 1 << 20


class _RefusedError(Exception):
    """The document is not one that a test tool writes."""


class Element(Struct):
    """One open or closed element, without the elements inside it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def get(self, name: str) -> str:
        """An attribute; "" where there is none."""
        return self.attributes.get(name, "")


def parse(
    content: bytes,
    opened: Callable[[list[Element]], None],
    closed: Callable[[list[Element]], None],
) -> bool:
    """Go through a document; return whether it was complete, well-formed and harmless.

    `opened` and `closed` get the path of elements from the root to the one that begins or ends; its
    text is there when it ends. Namespaces are cut off tags.
    """
    path: list[Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(path) >= MOST_DEPTH:
            raise _RefusedError
        path.append(Element(tag.rpartition("}")[2], attributes))
        opened(path)

    def text(piece: str) -> None:
        if path and path[-1].size < MOST_TEXT:
            path[-1].parts.append(piece)
            path[-1].size += len(piece)

    def end(_tag: str) -> None:
        path[-1].text = "".join(path[-1].parts)[:MOST_TEXT]
        closed(path)
        path.pop()

    def refuse(*_: object) -> Any:
        raise _RefusedError

    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        for position in range(0, len(content), STEP):
            parser.Parse(content[position : position + STEP], False)
        parser.Parse(b"", True)
    except (expat.ExpatError, _RefusedError, ValueError, LookupError, RecursionError):
        return False
    return True


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

    def opened(path: list[Element]) -> None:
        element = path[-1]
        if element.tag == "testcase":
            current.append(_case(element, path))
        elif current and path[-2].tag == "testcase" and element.tag in OUTCOME_OF_TAG:
            _add_problem(current[-1], element)

    def closed(path: list[Element]) -> None:
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

    whole = parse(content, opened, closed)
    return found, whole and totals[0] <= MOST_TESTS


def _case(element: Element, path: list[Element]) -> ReportedCase:
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


def _add_problem(case: ReportedCase, element: Element) -> None:
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
