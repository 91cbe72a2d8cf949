"""What has to fail and does not: nothing of the work fails, or an error is only declared."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.verification.inputs.kept_tests import IMPORT_LINE
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.regions import without_regions
from agentrunner.verification.syntax.tokens import without_comments
from agentrunner.verification.syntax.words import identifiers

ONLY_DECLARED = "`{}` is declared, and nothing in the work raises or returns it; required is: {}"
IS_ERROR = lazy_regex(r"(?:Error|Exception|Fault|Failure)$|^Err[A-Z]|Err$")
MEMBER = lazy_regex(r"\b([A-Za-z_]\w*)(?:::|\.)([A-Z]\w*)")
"""A name that belongs to another one: `CalcError::Leftover`."""
DECLARES = (
    r"\b(?:class|struct|enum|interface|type|exception)\s+{0}\b"
    r"|\b(?:var|const|let|static)?\s*{0}\s*(?::[^=]+)?=\s*(?!=)"
    r"|^\s*(?:[\w:]*::)?{0}\b[^=]*=>"
    r"|^\s*(?:export\s*\{{|module\.exports\b|exports\.\w+\s*=|__all__\b)"
)
"""Lines that declare a name, hand it on or describe it, and do not raise it."""
DECLARES_MEMBER = DECLARES + r"|^\s*{0}\s*(?:[,({{].*)?$"

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


def only_declared(trees: BothTrees, asked: str) -> str:
    """What is wrong where a new error of the work is never raised or returned; else "". Blocks.

    What is caught counts as used: others may raise it.
    """
    wished = {
        name: " ".join(sentence.split())[:120]
        for sentence in sentences(asked, semicolons=True)
        for name in sorted(identifiers(sentence))
    }
    of_errors = {hit[2] for hit in MEMBER.finditer(asked) if IS_ERROR.search(hit[1])}
    lines = [line for path in trees.work for line in _lines(path, trees.read(path))]
    former = [line for path in trees.work for line in _lines(path, trees.read_old(path))]
    before = {word for line in former for word in _words(line)}
    for name, sentence in wished.items():
        if name in before:
            continue
        uses = [line for line in lines if name in _words(line)]
        declares = DECLARES_MEMBER if name in of_errors else DECLARES
        declared = re.compile(declares.format(re.escape(name)))
        if not (uses and (name in of_errors or _declares_an_error(name, uses))):
            continue
        if all(declared.search(line) or IMPORT_LINE.match(line) for line in uses):
            return ONLY_DECLARED.format(name, sentence)
    return ""


def _declares_an_error(name: str, lines: Collection[str]) -> bool:
    """Whether these lines make it an error: by its own name, or by what it is made of."""
    own = re.escape(name)
    made = re.compile(
        rf"\bclass\s+{own}\b.*(?:Error|Exception)|\b{own}\s*=\s*(?:errors\.|fmt\.Errorf)"
    )
    return any(map(made.search, lines)) or bool(IS_ERROR.search(name))


def _words(line: str) -> set[str]:
    return set(re.findall(r"\w+", line))


def _lines(path: str, source: bytes | None) -> list[str]:
    """Lines of code of a file, without comments and without tests inside."""
    language = language_of(path)
    if source is None or language is None:
        return []
    text = without_comments(path, without_regions(source, language))
    return [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
