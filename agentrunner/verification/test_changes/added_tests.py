"""Takes away what a changed file of tests only has besides: new tests, and imports for these. Pure.

What is left can be compared with the file as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.imports import (
    imported,
    nameless_imports,
    places_of_imports,
    without_imports,
)
from agentrunner.verification.syntax.test_finder import all_tests
from agentrunner.verification.test_changes.moves import renamed_in, with_part

WORD = lazy_regex(r"[^\W\d]\w*")
COMMENT = lazy_regex(rb"[ \t]*(?://|#)[^\n]*\n\Z")
BLANK = lazy_regex(rb"[ \t]*\n\Z")


def without_new_tests(
    before: bytes, after: bytes, language: str, renames: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """`after` without its tests whose names `before` does not have, and without what they import.

    A test that is called as `renames` says is not new. An import stays that the rest uses, or that
    `before` has.
    """
    known = {one.span.name for one in all_tests(before, language)}
    known |= {with_part(name, *names) for name in known for names in renames.items()}
    spans = [one.span for one in all_tests(after, language) if one.span.name not in known]
    edits = [Edit(_start(after, span.start), span.end, "") for span in spans]
    return _without_unused_imports(before, applied(after, edits), language)


def bare_tests(
    before: bytes, after: bytes, language: str, renames: Mapping[str, str]
) -> tuple[bytes, bytes] | None:
    """Both texts without imports and `after` without new tests, too, to compare the rest.

    None where the rest uses a name that comes from elsewhere than before, other than as renamed.
    """
    rest = without_new_tests(before, after, language, renames)
    old, new = without_imports(before, language), without_imports(rest, language)
    if old is None or new is None:
        return None
    if nameless_imports(before, language) != nameless_imports(after, language):
        return None
    was, now = imported(before, language), imported(rest, language)
    used = set(WORD.findall(new.decode("utf-8", "replace")))
    for name in used & now.keys():
        forms = {name, *(one for one, other in renames.items() if other == name)}
        origins = {_origin(was[one], renames) for one in forms & was.keys()}
        if origins and _origin(now[name], renames) not in origins:
            return None
        if not origins and name in WORD.findall(old.decode("utf-8", "replace")):
            return None  # it was the file's own before
    return old, new


def _origin(text: str, renames: Mapping[str, str]) -> str:
    """Where an imported name comes from, with all names as they are now."""
    for names in renames.items():
        text = renamed_in(text, names)
    return text


def _start(source: bytes, start: int) -> int:
    """Where a test begins with the comments above it and the empty lines above these."""
    start = source.rfind(b"\n", 0, start) + 1
    for pattern in (COMMENT, BLANK):
        while hit := pattern.search(source[source.rfind(b"\n", 0, max(start - 1, 0)) + 1 : start]):
            start -= len(hit[0])
    return start


def _without_unused_imports(before: bytes, source: bytes, language: str) -> bytes:
    """A text without imports of names that it does not use and that `before` does not import."""
    bare = without_imports(source, language)
    places = places_of_imports(source, language)
    if bare is None or not places:
        return source
    used = set(WORD.findall(bare.decode("utf-8", "replace"))) | imported(before, language).keys()
    edits = []
    for start, end, text in places:
        names = imported(to_bytes(text), language).keys()
        if names and not names & used:
            edits.append(Edit(start, end + (source[end : end + 1] == b"\n"), ""))
    return applied(source, edits)
