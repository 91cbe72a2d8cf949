"""What has to fail and where nothing of the work does, and tests that the work leaves out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from agentrunner.text.sentences import sentences
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.proof.case import Case
from agentrunner.verification.results.names import own_name
from agentrunner.verification.target import in_repo

NOT_FAILING = (
    "nothing in the work raises an error and no test of it asks for one, and the requirements"
    " say: {}"
)
LEFT_OUT = "{}, a test of the work itself, is left out: it says what is not done"
HAS_TO_FAIL = re.compile(
    r"(?i)\b(?:must|should|shall|has to|have to)\s+(?:\w+\s+)?(?:reject|throw|raise|panic"
    r"|be\s+(?:rejected|refused)\s+with)\b|(?:例外|エラー)を(?:投げる|送出する|発生させる)(?:こと|べき)"
)
"""Without a "must" it may be what goes wrong: "`load('')` raises an IndexError"."""
DENIED = re.compile(
    r"(?i)\b(?:not|never|no|without|instead of|currently|now|at the moment)\b|n't\b|ない"
)
FAILS = re.compile(
    r"(?i)\b(?:rais\w*|throw\w*|reject\w*|panic\w*|die|croak|abort|exit|fail\w*|err|errs?|error\w*"
    r"|\w*(?:error|exception)s?|bail|ensure|unwrap\w*|expect_\w+|to_?throw\w*|assert_?raises\w*"
    r"|should_panic|is_err|throws_ok|dies_ok)\b|例外"
)
ASKS_TO_FAIL = re.compile(
    r"(?i)\b(?:rejects|to_?throw\w*|(?:assert_?)?(?:throws|raises)\w*|assert_raise\w*|raise_error"
    r"|should_panic|is_err|\w+_err|expectException\w*|throws_ok|dies_ok|catch|except|rescue|err)\b"
)
"""What tests say that await a failure."""
CONDITION = re.compile(
    r"(?i)skip_?(?:if|unless)|platform|GOOS|\bif\b|\bunless\b|cfg|importorskip|requires_\w|enabled\w*on"
    r"|\bskip:\s*(?!true|[\"'])"
    r"|assum(?:e|ing)"
)
"""What says when a test is left out."""
AROUND = 400
"""So many characters before and after a test's name are searched for that."""
IDLE = frozenset({"skipped", "xfailed"})


def nothing_fails(
    product: Collection[str], tests: Collection[str], read_old: ReadFile, read: ReadFile, asked: str
) -> str:
    """What is wrong where something has to fail and nothing of the work does; else "". Blocks.

    `product` and `tests` are the changed files.
    """
    parts = sentences(asked, semicolons=True)
    wish = next((one for one in parts if HAS_TO_FAIL.search(one) and not DENIED.search(one)), None)
    if wish is None:
        return ""
    for path in (*product, *tests):
        pattern = ASKS_TO_FAIL if path in tests else FAILS
        before, after = (
            pattern.findall((one(path) or b"").decode("latin-1")) for one in (read_old, read)
        )
        if len(after) > len(before):
            return ""
    return NOT_FAILING.format(" ".join(wish.split())[:120])


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
