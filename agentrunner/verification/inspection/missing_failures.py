"""What has to fail, and where nothing of the work does."""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.verification.inspection.both_trees import BothTrees

NOT_FAILING = (
    "nothing in the work raises an error and no test of it asks for one, and the requirements"
    " say: {}"
)
HAS_TO_FAIL = lazy_regex(
    r"(?i)\b(?:must|should|shall|has to|have to)\s+(?:\w+\s+)?(?:reject|throw|raise|panic"
    r"|be\s+(?:rejected|refused)\s+with)\b|(?:例外|エラー)を(?:投げる|送出する|発生させる)(?:こと|べき)"
)
"""Without a "must" it may be what goes wrong: "`load('')` raises an IndexError"."""
DENIED = lazy_regex(
    r"(?i)\b(?:not|never|no|without|instead of|currently|now|at the moment)\b|n't\b|ない"
)
FAILS = lazy_regex(
    r"(?i)\b(?:rais\w*|throw\w*|reject\w*|panic\w*|die|croak|abort|exit|fail\w*|err|errs?|error\w*"
    r"|\w*(?:error|exception)s?|bail|ensure|unwrap\w*|expect_\w+|to_?throw\w*|assert_?raises\w*"
    r"|should_panic|is_err|throws_ok|dies_ok)\b|例外"
)
ASKS_TO_FAIL = lazy_regex(
    r"(?i)\b(?:rejects|to_?throw\w*|(?:assert_?)?(?:throws|raises)\w*|assert_raise\w*|raise_error"
    r"|should_panic|is_err|\w+_err|expectException\w*|throws_ok|dies_ok|catch|except|rescue|err)\b"
)
"""What tests say that await a failure."""


def nothing_fails(trees: BothTrees, asked: str) -> str:
    """What is wrong where something has to fail and nothing of the work does; else "". Blocks."""
    parts = sentences(asked, semicolons=True)
    wish = next((one for one in parts if HAS_TO_FAIL.search(one) and not DENIED.search(one)), None)
    if wish is None:
        return ""
    for path in (*trees.work, *trees.tests):
        pattern = ASKS_TO_FAIL if path in trees.tests else FAILS
        before, after = (
            pattern.findall((read(path) or b"").decode("latin-1"))
            for read in (trees.read_old, trees.read)
        )
        if len(after) > len(before):
            return ""
    return NOT_FAILING.format(" ".join(wish.split())[:120])
