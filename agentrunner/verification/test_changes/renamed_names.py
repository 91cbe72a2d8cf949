"""Names of code that are others now, and tests that only follow them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.asserts import asserted_by
from agentrunner.verification.syntax.context import definitions_in
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.functions import normal
from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.tokens import lexical_family, tokens

NAME = lazy_regex(r"[^\W\d]\w*")
TOKEN = lazy_regex(r"\w+|[^\w\s]")
SPEAKS_OF_NAMES = lazy_regex(r"(?i)\brenam|\bnames?\b|\bnaming\b|改名|リネーム|名前|名称")
MOST_BYTES = 500_000
"""Bytes of a file that are compared."""
WORD = lazy_regex(r"\w+|\W")
QUOTED = lazy_regex(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`")
SAYS = lazy_regex(r"\.(?:Error|Fatal|Log|Skip)f?\(\s*\Z")
"""Before a text: a test of Go hands it to its kit, as a message."""


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
    asked = set(NAME.findall(wanted))
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
    return NAME.sub(lambda hit: names.get(hit[0], hit[0]), text)


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


def names_follow(
    path: str,
    before: bytes,
    after: bytes,
    renames: Mapping[str, str],
    in_code_alone: Collection[str] = (),
) -> bool:
    """Whether a file differs only by names in code that changed as `renames` says.

    Names of its tests may contain them: `TestTotal` becomes `TestSum` with `Total`. Variables may
    be called as a class is now. Quoted text
    stays as it was, apart from calls that it quotes and from messages: `Total() = %d`. What is a
    name in code alone, and that no text of the product has, can be quoted as nothing else:
    `patch("shop.cart.total")`.
    """
    old_text, new_text = (text.decode("utf-8", "replace") for text in (before, after))
    if not renames:
        return False
    names = {old: new for old, new in renames.items() if old in in_code_alone}
    old_quotes, new_quotes = (list(QUOTED.finditer(one)) for one in (old_text, new_text))
    if len(old_quotes) != len(new_quotes) or any(
        new[0]
        not in (
            old[0],
            _text_renamed(old[0], renames, is_message=_is_message(old)),
            _text_renamed(old[0], names, is_message=not _is_key(old)),
        )
        for old, new in zip(old_quotes, new_quotes, strict=True)
    ):
        return False
    old_words, new_words = WORD.findall(old_text), WORD.findall(new_text)
    changed = {pair for pair in zip(old_words, new_words, strict=False) if pair[0] != pair[1]}
    if len(old_words) != len(new_words) or not changed:
        return False
    others = changed - set(renames.items()) - _of_variables(renames, old_words)
    if others and not others <= _tests_renamed(path, before, after, renames):
        return False
    if (language := language_of(path)) is None:
        return family_of(path) != "shell" and all(_is_in_code(old, old_text) for old, _ in changed)
    # `t.Errorf` belongs to the tests' kit, though the product may have something of that name.
    return asserted_by(before, language) == asserted_by(after, language)


def _of_variables(renames: Mapping[str, str], known: Collection[str]) -> set[tuple[str, str]]:
    """Old and new names of variables called as a class is: `acct` of an `Acct`. No new one may
    stand for something else already."""
    forms = (
        [one[:1].lower() + one[1:] for one in pair]
        for pair in renames.items()
        if pair[0][:1].isupper()
    )
    return {(was, now) for was, now in forms if now not in known}


def _is_in_code(name: str, text: str) -> bool:
    """Whether a name stands in a text without a grammar as code has it alone, and nowhere as a key,
    a symbol or a plain word: these may be data.
    """
    plain = name.islower() and "_" not in name
    for hit in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", QUOTED.sub('""', text)):
        before, behind = hit.string[: hit.start()].rstrip(), hit.string[hit.end() :].lstrip()
        used = behind.startswith("(") or BEFORE_NAMES.search(before[-12:])
        if not used and (plain or before.endswith(":") or behind.startswith(":")):
            return False
    return True


BEFORE_NAMES = lazy_regex(r"(?:\.|->|::|\b(?:def|function|class|module|new|struct|enum))$")
"""What stands before the name of a function, a method or a type."""


def _is_key(quoted: re.Match[str]) -> bool:
    """Whether a quoted text is a key, or the first or last of a list."""
    text, start, end = quoted.string, quoted.start(), quoted.end()
    before, after = text[max(start - 9, 0) : start].rstrip(), text[end : end + 9].lstrip()
    return before.endswith("[") or after.startswith(("]", ":"))


def _is_message(quoted: re.Match[str]) -> bool:
    """Whether a quoted text is what a test of Go says when it fails: nothing compares it."""
    return bool(SAYS.search(quoted.string, 0, quoted.start()))


def _text_renamed(text: str, renames: Mapping[str, str], *, is_message: bool) -> str:
    """A quoted text in which calls have their new names, and a message all that it names."""
    ends = r"(?!\w)" if is_message else r"(?=\()"
    for old, new in renames.items():
        text = re.sub(rf"(?<!\w){re.escape(old)}{ends}", new, text)
    return text


def _tests_renamed(
    path: str, before: bytes, after: bytes, renames: Mapping[str, str]
) -> set[tuple[str, str]]:
    """Old and new names of tests that contain a name that changed, each still a test of its own.

    A new name that the file knew before would hide what had it.
    """
    language = language_of(path)
    known, words = (set(WORD.findall(one.decode("utf-8", "replace"))) for one in (before, after))
    was, now = (
        {own_name(name) for name in definitions(one, language)} if language else all_of
        for one, all_of in ((before, known), (after, words))
    )
    return {
        (name, new)
        for name in was - now
        for form in renames.items()
        if (new := with_part(name, *form)) in now - known
    }


def with_part(name: str, old: str, new: str) -> str:
    """A name in which a part has its new form: `TestTotal` or `test_total`, not `subtotal`."""
    forms = {old: new, old[:1].upper() + old[1:]: new[:1].upper() + new[1:]}
    for part, form in forms.items():
        start = "(?<![A-Za-z])" if part[:1].islower() else "(?<![A-Z])"
        name = re.sub(rf"{start}{re.escape(part)}(?![a-z])", form, name)
    return name
