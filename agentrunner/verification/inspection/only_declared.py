"""Errors that the requirements name, and that the work only declares.

What is caught counts as used: others may raise it.
"""

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


def only_declared(trees: BothTrees, asked: str) -> str:
    """What is wrong where a new error of the work is never raised or returned; else "". Blocks."""
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
