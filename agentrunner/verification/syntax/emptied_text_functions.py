"""Make functions in Ruby, PHP, Perl, C and C++ do nothing. They are found by patterns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.text_functions import TextFunction, text_functions

C_ENDINGS = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp")
MEMORY = 4096
_STORAGE = lazy_regex(r"\b(?:static|inline|extern|const|volatile|register|_Noreturn)\b")


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


def emptied_in_c(
    before: bytes | None,
    after: bytes,
    only: str = "",
    *,
    added: bool = False,
    memory: bool = False,
) -> bytes | None:
    """Return `after` with functions that return zero at once if they were added or altered.

    None if nothing was altered within functions. With `only` it is the function of this name; with
    `added`, only new ones. With `memory`, those that return a pointer return fresh memory full of
    zeros. `main` stays as it is.
    """
    edits = []
    known = {one.name for one in _functions_in_c(before or b"")} if added else set()
    for one in _changed_in_c(before, after):
        kind = _type_in_c(one)
        if (only and one.name != only) or one.name in known or "&" in kind:
            continue
        zero = f"static {kind} agentrunner_zero; return agentrunner_zero;"
        if memory and kind.endswith("*"):
            zero = f"return ({kind}) __builtin_calloc(1, {MEMORY});"
        edits.append(_doing(after, one, "return;" if kind == "void" else zero))
    return applied(after, edits) if edits else None


def changed_in_c(before: bytes | None, after: bytes) -> set[str]:
    """Return the names of functions that were added or altered, without `main`."""
    return {one.name for one in _changed_in_c(before, after)}


def offered_in_c(source: bytes) -> set[str]:
    """Return the names of functions that other files can call, without `main`."""
    found = (one for one in _functions_in_c(source) if not re.search(rb"\bstatic\b", one.head))
    return {one.name for one in found} - {"main"}


def _changed_in_c(before: bytes | None, after: bytes) -> list[TextFunction]:
    known = {_whole(one) for one in _functions_in_c(before or b"")}
    found = (one for one in _functions_in_c(after) if _whole(one) not in known)
    return [one for one in found if one.name != "main"]


def _whole(function: TextFunction) -> tuple[bytes, str]:
    return b" ".join(function.head.split()), _text(function)


def _type_in_c(function: TextFunction) -> str:
    """The type of what a function gives."""
    before = function.head.decode("latin-1").partition("(")[0].rstrip()
    return " ".join(_STORAGE.sub(" ", before.removesuffix(function.name)).split())


def _functions_in_c(source: bytes) -> Iterator[TextFunction]:
    """Yield the functions of a file that stand in no class."""
    return (one for one in text_functions(source, "c") if not one.head[:1].isspace())
