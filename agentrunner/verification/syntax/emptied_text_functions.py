"""Make functions in Ruby, PHP and Perl do nothing. They are found by patterns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.text_functions import TextFunction, text_functions

FAMILIES = ("ruby", "php", "perl")
_RETURNS = lazy_regex(rb":\s*(\??[\w\\|]+)\s*\{\Z")
_ZEROS = {
    "void": "return",
    "string": "return ''",
    "int": "return 0",
    "float": "return 0.0",
    "bool": "return false",
    **dict.fromkeys(("array", "iterable"), "return []"),
    **dict.fromkeys(("", "mixed", "null"), "return null"),
}
_THROWS = "throw new \\Error('this function was emptied')"
_FIRST = {"ruby": "return {}", "php": "return ${};", "perl": "return $_[0];"}


def emptied_in_text(
    before: bytes | None, after: bytes, family: str, only: str = "", *, added: bool = False
) -> bytes | None:
    """Return `after` with functions that do nothing if they were added or altered.

    None if nothing was altered within functions. With `only` it is the functions of this name, with
    `added` only those of a new name. In PHP they return the zero value of their type, or throw.
    """
    known = {one.name for one in _functions(before or b"", family)} if added else set()
    edits = [
        _doing(after, one, _nothing(after, one))
        for one in _changed(before, after, family)
        if one.name not in known and (not only or one.name == only)
    ]
    return applied(after, edits) if edits else None


def changed_in_text(before: bytes | None, after: bytes, family: str) -> set[str]:
    """Return the names of functions that were added or altered."""
    return {one.name for one in _changed(before, after, family)}


def giving_back(before: bytes | None, after: bytes, family: str, name: str) -> bytes | None:
    """Return `after` with the one changed function of a name giving back what it is handed first.

    None where there is no such function, or where it is handed nothing.
    """
    found = [one for one in _changed(before, after, family) if one.name == name]
    if len(found) != 1 or not (found[0].parameters or family == "perl"):
        return None
    statement = _FIRST[family].format(*found[0].parameters[:1])
    return applied(after, [_doing(after, found[0], statement)])


def _functions(source: bytes, family: str) -> Iterator[TextFunction]:
    for one in text_functions(source, family):
        if not (family == "ruby" and source.startswith(b"=", one.start)):  # def name=(value)
            yield one


def _changed(before: bytes | None, after: bytes, family: str) -> list[TextFunction]:
    known = {(one.name, _text(one)) for one in _functions(before or b"", family)}
    return [one for one in _functions(after, family) if (one.name, _text(one)) not in known]


def _text(function: TextFunction) -> str:
    return " ".join(one.text for one in function.tokens)


def _nothing(source: bytes, function: TextFunction) -> str:
    if function.family == "ruby":
        return "return nil"
    if function.family == "perl":
        return "return;"
    found = _RETURNS.search(source[: function.start])
    kind = found[1].decode("latin-1").lower() if found else ""
    return f"{'return null' if kind.startswith('?') else _ZEROS.get(kind, _THROWS)};"


def _doing(source: bytes, function: TextFunction, statement: str) -> Edit:
    """The edit by which a function does this first, and so nothing else."""
    start = function.start
    if function.family != "ruby":
        return Edit(start, start, f" {statement}")
    if re.match(rb"[ \t]*=[^=]", source[start : start + 200]):  # def name(of) = …
        value = statement.removeprefix("return ")
        return Edit(start, start + len(function.body), f" = {value}")
    return Edit(start, start, f"\n{statement}\n")
