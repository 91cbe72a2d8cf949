"""Make functions in C and C++ return at once. They are found by patterns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit, applied

ENDINGS = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp")
_BLANK = lazy_regex(
    rb"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|(?m:^[ \t]*#(?:\\\n|[^\n])*)",
    re.DOTALL,
)
"""Text that holds no code (comments, strings, characters), and preprocessor lines."""
_HEAD = lazy_regex(r"(?P<type>\w[\w\s*]*?[\s*])(?P<name>\w+)\s*\([^(){}]*\)\s*$")
MEMORY = 4096
_STORAGE = lazy_regex(r"\b(?:static|inline|extern|const|volatile|register|_Noreturn)\b")


class _Function(Struct, frozen=True):
    name: str
    type: str
    """The return type."""
    body: int
    """The offset at which its body begins, after the brace."""
    head: bytes
    text: bytes


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
    known = {one.name for one in _functions(before or b"")} if added else set()
    for one in _changed(before, after):
        if (only and one.name != only) or one.name in known:
            continue
        zero = f" static {one.type} agentrunner_zero; return agentrunner_zero;"
        if memory and one.type.endswith("*"):
            zero = f" return ({one.type}) __builtin_calloc(1, {MEMORY});"
        edits.append(Edit(one.body, one.body, " return;" if one.type == "void" else zero))
    return applied(after, edits) if edits else None


def changed_in_c(before: bytes | None, after: bytes) -> set[str]:
    """Return the names of functions that were added or altered, without `main`."""
    return {one.name for one in _changed(before, after)}


def offered_in_c(source: bytes) -> set[str]:
    """Return the names of functions that other files can call, without `main`."""
    found = (one for one in _functions(source) if not re.search(rb"\bstatic\b", one.head))
    return {one.name for one in found} - {"main"}


def _changed(before: bytes | None, after: bytes) -> list[_Function]:
    known = {one.name: one.text for one in _functions(before or b"")}
    found = [one for one in _functions(after) if known.get(one.name) != one.text]
    return [one for one in found if one.name != "main"]


def _functions(source: bytes) -> Iterator[_Function]:
    """Yield the top-level functions of a file whose heads can be read."""
    bare = _BLANK.sub(lambda hit: re.sub(rb"[^\n]", b" ", hit[0]), source)
    depth, start, begun = 0, 0, 0
    head: re.Match[str] | None = None
    written = b""
    for hit in re.finditer(rb"[{};]", bare):
        if hit[0] == b"{":
            if not depth:
                written = bare[start : hit.start()].lstrip()
                head = _HEAD.search(written.decode("latin-1"))
                begun = hit.end()
            depth += 1
        elif hit[0] == b"}":
            depth = max(depth - 1, 0)
            if not depth and head is not None:
                kind = " ".join(_STORAGE.sub(" ", head["type"]).split())
                text = b" ".join(bare[start : hit.start()].split())
                yield _Function(head["name"], kind, begun, written, text)
        if not depth:
            start = hit.end()
            head = None
