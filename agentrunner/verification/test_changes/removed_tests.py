"""Finds tests that are gone as a PRD wants: by name, or with the code that they are tests of. Pure.

Of the latter a test counts only if it uses such code, and if the product defines this code no more.
What is left of its file has to be as it was.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher
from types import MappingProxyType

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.file_names import has_word
from agentrunner.verification.inputs.kept_tests import IMPORT_LINE
from agentrunner.verification.inputs.wanted_removals import (
    removed_names,
    removed_options,
    removes_deprecated,
)
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.calls import names_called, names_declared
from agentrunner.verification.syntax.context import definitions_in
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.imports import (
    imported,
    nameless_imports,
    places_of_imports,
    without_imports,
)
from agentrunner.verification.syntax.languages import Parsed, language_of, parse, walk
from agentrunner.verification.syntax.regions import regions_of_tests, without_regions
from agentrunner.verification.syntax.test_finder import all_tests, find_test
from agentrunner.verification.test_changes.moves import renamed_in
from agentrunner.verification.test_changes.renamed_names import NAME, QUOTED, with_part
from agentrunner.verification.trees import Changes

COMMENT = lazy_regex(rb"(?<![ \t])[ \t]*(?:(?<!/)//|(?<!#)#)[^\n]*\n\Z")
BLANK = lazy_regex(rb"(?<![ \t])[ \t]*\n\Z")

DEPRECATED = lazy_regex(r"(?i)(?<!not )(?<!not yet )deprecat|非推奨")
NESTED = ("function_", "method_", "class_", "decorated_")
REMARKS = ("comment", "line_comment", "block_comment", "attribute_item")
AROUND = ("export_statement", "lexical_declaration", "variable_declaration")
OPENS = lazy_regex(r"[rubf]*(?:\"\"\"|'''|\"|')\s*[^\n]*")
"""The first line of a text."""

WORD = lazy_regex(r"\w+")
VALUE = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|(?<![\w.])-?\d[\w.]*")
"""A text in quotes, or a number."""
OPTION = lazy_regex(rb"[\"'`](--[a-z][\w-]*)[\"'`=]")
"""An option of a command line, in quotes."""
ASKS_TO_REMOVE = lazy_regex(r"(?i)\b(remov|delet|drop|obsolete|get rid)|削除|取り除|廃止")
ASKS_TO_KEEP = lazy_regex(r"(?i)\b(do not|don't|never|without|must not|keep)\b|しない|せず|ないで")


def removed_code(
    wanted: str, total: Changes, tests: Collection[str], was: ReadFile, now: ReadFile
) -> tuple[set[str], set[str]]:
    """Names of code that the PRD wants removed and that is removed; and those that are left.

    `tests` are files that are no product.
    """
    names = removed_names(wanted) | set(removed_options(wanted))
    product = [path for path in total.all if path not in tests]
    if removes_deprecated(wanted):
        for path in product:
            if (language := language_of(path)) is not None:
                names |= deprecated_names(was(path) or b"", language)
    if not names:
        return set(), set()
    before = {name for path in product for name in _declared(path, was(path))}
    after = {name for path in product for name in _declared(path, now(path))}
    return names & before - after, after


def deprecated_names(source: bytes, language: str) -> set[str]:
    """Return names whose definition says that they are deprecated.

    It does in a comment or attribute before it, a decorator or annotation, the first line of a text
    in it, as documentation is, or in a text that has its name, as a warning does.
    """
    parsed = parse(source, language)
    if parsed is None:
        return set()
    return {name for name, node in definitions_in(parsed) if _says_so(parsed, name, node)}


def _says_so(parsed: Parsed, name: str, node: Node) -> bool:
    outer = node
    while outer.parent is not None and outer.parent.type in AROUND:
        outer = outer.parent
    beside = outer.prev_named_sibling
    while beside is not None and beside.type in REMARKS:
        line = parsed.source[: beside.start_byte].rpartition(b"\n")[2]
        if not line.strip() and DEPRECATED.search(parsed.text(beside)):
            return True
        beside = beside.prev_named_sibling
    body = node.child_by_field_name("definition") or node
    inner = body.child_by_field_name("body")
    head = parsed.source[node.start_byte : inner.start_byte if inner else node.end_byte]
    if DEPRECATED.search(head.decode("utf-8", "replace")):
        return True
    of_own = walk(inner, lambda one: not one.type.startswith(NESTED)) if inner else ()
    texts = [parsed.text(one) for one in of_own if "string" in one.type]
    first = OPENS.match(texts[0]) if texts and parsed.language == "python" else None
    return bool(first and DEPRECATED.search(first[0])) or any(
        has_word(name, text) and DEPRECATED.search(text) for text in texts
    )


def _declared(path: str, source: bytes | None) -> set[str]:
    language = language_of(path)
    if language is None or source is None:
        return set()
    code = without_regions(source, language)
    return names_declared(code, language) | {hit.decode() for hit in OPTION.findall(code)}


def tests_gone_with(
    path: str,
    names: Collection[str],
    before: bytes,
    after: bytes | None,
    alive: AbstractSet[str],
) -> set[str]:
    """Names in the file of its tests that are gone and used one of `names`.

    New tests count as nothing. `alive` are names that changed code still has: what a test asks of
    it, another one of the file has to ask that stays. Empty if anything else of the file's tests
    changed, or if another test is gone as well.
    """
    language = language_of(path)
    if language is None or not names:
        return set()
    rest = without_new_tests(before, after, language) if after is not None else None
    more, after = rest != after, rest
    old, new = definitions(before, language), definitions(after or b"", language)
    lost = old.keys() - new.keys()
    if not lost or any(new.get(name, text) != text for name, text in old.items()):
        return set()
    if after is not None and (
        new.keys() - old.keys() or not _only_lost(_tests(before, language), _tests(after, language))
    ):
        return set()
    stays = "\n".join(new.values())
    if all(_goes_with(before, language, name, names, alive, stays, more=more) for name in lost):
        return lost
    return set()


def _goes_with(
    source: bytes,
    language: str,
    test: str,
    names: Collection[str],
    alive: AbstractSet[str],
    stays: str,
    *,
    more: bool,
) -> bool:
    """Whether a test itself uses what is removed, and nothing that no other test would ask then.

    Where it also asks code that stays and others come in its place (`more`), or an option goes, the
    tests that stay (`stays`) have to have its values.
    """
    found = find_test(source, language, test)
    if found is None:
        return False
    whole = source[found.span.start : found.span.end]
    text = QUOTED.sub("", whole.decode("utf-8", "replace"))
    own = names_called(found) & set(WORD.findall(text))
    options = {hit.decode() for hit in OPTION.findall(whole)}
    own |= options
    if (more and own & alive) or options:
        values = _values(whole.decode("utf-8", "replace")) - _values(stays)
        if any(one.strip("\"'`") not in (*names, *options, "") for one in values):
            return False
    return bool(own & set(names)) and own.isdisjoint(alive - set(WORD.findall(stays)))


def _values(text: str) -> set[str]:
    return set(VALUE.findall(text))


def asks_to_remove(wanted: str, name: str) -> bool:
    """Whether a sentence of the PRD asks for a test of this name to be removed."""
    last = re.escape(own_name(name))
    for sentence in sentences(wanted, points=False):
        if re.search(rf"(?<!\w){last}(?!\w)", sentence) and ASKS_TO_REMOVE.search(sentence):
            return not ASKS_TO_KEEP.search(sentence)
    return False


def lost_as_asked(wanted: str, path: str, before: bytes, after: bytes) -> bool:
    """Whether a file of tests only lost tests that the PRD names and wants removed."""
    language = language_of(path)
    if language is None:
        return False
    old, new = definitions(before, language), definitions(after, language)
    lost = old.keys() - new.keys()
    same = all(text == new.get(name, text) for name, text in old.items())
    return bool(lost) and same and all(asks_to_remove(wanted, name) for name in lost)


def _tests(source: bytes, language: str) -> str:
    """The tests of a product file with tests inside, else the whole file."""
    regions = [one for one in regions_of_tests(source, language) if one.kind == "module"]
    parts = [source[one.start : one.end] for one in regions] or [source]
    return b"\n".join(parts).decode("utf-8", "replace")


def _only_lost(before: str, after: str) -> bool:
    """Whether lines are only gone, apart from imports, which may import less."""
    old, new = ([one for one in text.splitlines() if one.strip()] for text in (before, after))
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("equal", "delete"):
            continue
        if tag == "insert" or not all(map(IMPORT_LINE.match, new[c:d])):
            return False
        imports = [_names_in(line) for line in old[a:b] if IMPORT_LINE.match(line)]
        for right in map(_names_in, new[c:d]):
            if not any([word for word in left if word in right] == right for left in imports):
                return False
    return True


def _names_in(line: str) -> list[str]:
    return re.findall(r"[\w./@-]+", line)


def without_new_tests(
    before: bytes, after: bytes, language: str, renames: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """`after` without its tests whose names `before` does not have, and without what they import.

    A test that is called as `renames` says is not new. An import stays that the rest uses, or that
    `before` has.

    What is left can be compared with the file as it was.
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
    used = set(NAME.findall(new.decode("utf-8", "replace")))
    for name in used & now.keys():
        forms = {name, *(one for one, other in renames.items() if other == name)}
        origins = {_origin(was[one], renames) for one in forms & was.keys()}
        if origins and _origin(now[name], renames) not in origins:
            return None
        if not origins and name in NAME.findall(old.decode("utf-8", "replace")):
            return None  # it was the file's own before
    return old.lstrip(b"\n"), new.lstrip(b"\n")


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
    used = set(NAME.findall(bare.decode("utf-8", "replace"))) | imported(before, language).keys()
    edits = []
    for start, end, text in places:
        names = imported(to_bytes(text), language).keys()
        if names and not names & used:
            edits.append(Edit(start, end + (source[end : end + 1] == b"\n"), ""))
    return applied(source, edits)
