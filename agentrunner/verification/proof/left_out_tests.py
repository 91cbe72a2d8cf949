"""New tests that the work itself leaves out."""

from __future__ import annotations

from collections.abc import Iterable

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.target import in_repo
from agentrunner.verification.proof.case import Case
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import own_name

LEFT_OUT = "{}, a test of the work itself, is left out: it says what is not done"
CONDITION = lazy_regex(
    r"(?i)skip_?(?:if|unless)|platform|GOOS|\bif\b|\bunless\b|cfg|importorskip|requires_\w|enabled\w*on"
    r"|\bskip:\s*(?!true|[\"'])"
    r"|assum(?:e|ing)"
)
"""What says when a test is left out."""
AROUND = 400
"""So many characters before and after a test's name are searched for that."""
IDLE = frozenset({"skipped", "xfailed"})


def left_out(cases: Iterable[Case], read: ReadFile) -> str:
    """A new test that is skipped or expected to fail, whatever is around it; else "". Blocks.

    A check that runs one test by its name skips all others; one that passes anywhere is run.
    """
    cases = list(cases)
    run = {name for case in cases if case.now for name in case.now.names if case.now.passed(name)}
    for case in cases:
        for test in case.now.tests if case.now and case.before else ():
            assert case.before is not None
            if test.outcome not in IDLE or test.name in run or case.before.named(test.name):
                continue
            path = in_repo(test.file, case.target.cwd)
            text = (read(path) or b"").decode("utf-8", "replace") if path else ""
            place = text.find(own_name(test.name))
            if place < 0 or CONDITION.search(text[max(place - AROUND, 0) : place + AROUND]):
                continue
            return LEFT_OUT.format(test.name)
    return ""
