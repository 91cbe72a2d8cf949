"""Make functions in Ruby, PHP, Perl, C and C++ do nothing. They are found by patterns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.text_functions import TextFunction, text_functions
from agentrunner.verification.syntax.tokens import lexical_family

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


def family_of_functions(path: str, source: bytes = b"") -> str | None:
    """The family of languages of a file whose functions can be made to do nothing here."""
    family = lexical_family(path, source)
    return family if family in FAMILIES or path.endswith(C_ENDINGS) else None


def emptied_in_text(
    before: bytes | None,
    after: bytes,
    family: str,
    only: str = "",
    *,
    added: bool = False,
    memory: bool = False,
) -> bytes | None:
    """Return `after` with functions that do nothing if they were added or altered.

    None if nothing was altered within functions. With `only` it is the functions of this name, with
    `added` only those of a new name. In PHP they return the zero value of their type, or throw; in
    C zero, or with `memory` fresh memory full of zeros where they return a pointer.
    """
    known = {one.name for one in _functions(before or b"", family)} if added else set()
    edits = [
        _doing(after, one, nothing)
        for one in _changed(before, after, family)
        if one.name not in known
        and (not only or one.name == only)
        and (nothing := _nothing(after, one, memory=memory))
    ]
    return applied(after, edits) if edits else None


def changed_in_text(before: bytes | None, after: bytes, family: str) -> set[str]:
    """Return the names of functions that were added or altered."""
    return {one.name for one in _changed(before, after, family)}


def offered_in_c(source: bytes) -> set[str]:
    """Return the names of functions that other files can call, without `main`."""
    found = (one for one in _functions(source, "c") if not re.search(rb"\bstatic\b", one.head))
    return {one.name for one in found}


def giving_back(before: bytes | None, after: bytes, family: str, name: str) -> bytes | None:
    """Return `after` with the one changed function of a name giving back what it is handed first.

    None where there is no such function, or where it is handed nothing.
    """
    found = [one for one in _changed(before, after, family) if one.name == name]
    if family not in _FIRST or len(found) != 1 or not (found[0].parameters or family == "perl"):
        return None
    statement = _FIRST[family].format(*found[0].parameters[:1])
    return applied(after, [_doing(after, found[0], statement)])


def _functions(source: bytes, family: str) -> Iterator[TextFunction]:
    for one in text_functions(source, family):
        is_setter = family == "ruby" and source.startswith(b"=", one.start)  # def name=(value)
        in_class = family == "c" and one.head[:1].isspace()
        if not (is_setter or in_class or (family == "c" and one.name == "main")):
            yield one


def _changed(before: bytes | None, after: bytes, family: str) -> list[TextFunction]:
    known = {(one.name, _text(one)) for one in _functions(before or b"", family)}
    return [one for one in _functions(after, family) if (one.name, _text(one)) not in known]


def _text(function: TextFunction) -> str:
    return " ".join(one.text for one in function.tokens)


def _nothing(source: bytes, function: TextFunction, *, memory: bool) -> str:
    if function.family == "ruby":
        return "return nil"
    if function.family == "perl":
        return "return;"
    if function.family == "c":
        return _zero_in_c(function, memory=memory)
    found = _RETURNS.search(source[: function.start])
    kind = found[1].decode("latin-1").lower() if found else ""
    return f"{'return null' if kind.startswith('?') else _ZEROS.get(kind, _THROWS)};"


def _zero_in_c(function: TextFunction, *, memory: bool) -> str:
    """The statement by which a function gives zero; "" for one that gives a reference."""
    before = function.head.decode("latin-1").partition("(")[0].rstrip()
    kind = " ".join(_STORAGE.sub(" ", before.removesuffix(function.name)).split())
    if kind == "void":
        return "return;"
    if memory and kind.endswith("*"):
        return f"return ({kind}) __builtin_calloc(1, {MEMORY});"
    return "" if "&" in kind else f"static {kind} agentrunner_zero; return agentrunner_zero;"


def _doing(source: bytes, function: TextFunction, statement: str) -> Edit:
    """The edit by which a function does this first, and so nothing else."""
    start = function.start
    if function.family != "ruby":
        return Edit(start, start, f" {statement}")
    if re.match(rb"[ \t]*=[^=]", source[start : start + 200]):  # def name(of) = …
        value = statement.removeprefix("return ")
        return Edit(start, start + len(function.body), f" = {value}")
    return Edit(start, start, f"\n{statement}\n")
