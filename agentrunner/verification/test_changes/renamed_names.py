"""Names in code that the work replaced by others everywhere, told from the code itself. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.context import definitions_in
from agentrunner.verification.syntax.functions import normal
from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.tokens import lexical_family, tokens

WORD = lazy_regex(r"[^\W\d]\w*")
TOKEN = lazy_regex(r"\w+|[^\w\s]")
SPEAKS_OF_NAMES = lazy_regex(r"(?i)\brenam|\bnames?\b|\bnaming\b|改名|リネーム|名前|名称")
MOST_BYTES = 500_000
"""Bytes of a file that are compared."""


def renamed_in_code(files: Mapping[str, tuple[bytes, bytes]], wanted: str) -> dict[str, str]:
    """Return new names by old ones, where the text speaks of renaming or of one of the names.

    `files` are the changed files of the product by path, before and after. Both names are declared
    there, the one before and the other after, and what they name is the same. Beside comments and
    texts the old name stands in none of these files any more, and the new one stood in none.
    """
    old = [one for path, (text, _) in files.items() for one in _declared(path, text)]
    new = [one for path, (_, text) in files.items() for one in _declared(path, text)]
    used_before = {name for path, (text, _) in files.items() for name in _names(path, text)}
    used_after = {name for path, (_, text) in files.items() for name in _names(path, text)}
    gone = {name for name, _ in old} - used_after
    come = used_after - used_before
    if not gone or not come:
        return {}
    found: dict[str, set[str]] = {}
    for before, after in files.values():
        for was, now in _exchanged(before[:MOST_BYTES], after[:MOST_BYTES]):
            if was in gone and now in come:
                found.setdefault(was, set()).add(now)
    one_each = {was: next(iter(now)) for was, now in found.items() if len(now) == 1}
    taken = Counter(one_each.values())
    speaks = SPEAKS_OF_NAMES.search(wanted) is not None
    asked = set(WORD.findall(wanted))
    renames = {
        was: now
        for was, now in one_each.items()
        if taken[now] == 1 and (speaks or was in asked or now in asked)
    }
    return {
        was: now
        for was, now in renames.items()
        if sorted(_renamed(text, renames) for name, text in old if name == was)
        == sorted(text for name, text in new if name == now)
    }


def _declared(path: str, source: bytes) -> list[tuple[str, str]]:
    """Names that a file declares, with the text of each declaration."""
    language = language_of(path)
    parsed = parse(source, language) if language else None
    if parsed is None:
        return []
    return [(name, normal(parsed, node)) for name, node in definitions_in(parsed)]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return WORD.sub(lambda hit: names.get(hit[0], hit[0]), text)


def _names(path: str, source: bytes) -> set[str]:
    family = lexical_family(path, source)
    found = tokens(source, family) if family else ()
    return {token.text for token in found if token.kind == "name"}


def _exchanged(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Words in whose place another one stands, in lines that differ by nothing but words."""
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "replace" or b - a != d - c:
            continue
        for was, now in zip(old[a:b], new[c:d], strict=True):
            first, second = TOKEN.findall(was), TOKEN.findall(now)
            if len(first) == len(second):
                yield from (pair for pair in zip(first, second, strict=True) if pair[0] != pair[1])
