"""Puts back into a new text what an old one had: a line with what stands around it, imports."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.edits import Edit

CATCHES = lazy_regex(rb"\b(?:except|catch|rescue)\b")
QUOTED = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`")
IMPORT = lazy_regex(
    rb"(?m)^(?:(?:import|from(?! __future__)|use|using|#include) [^\n(]*"
    rb"|(?:const|let|var) [^\n]*\brequire\(.*|\t(?:\w+ )?\"[\w./-]+\")$"
)
BEFORE_IMPORTS = lazy_regex(
    rb"(?m)^(?:package |namespace |declare\(|<\?php|#!|from __future__ ).*\n"
)
MOST_LINES = 1000
"""A function of more lines is put back as a whole only: comparing them takes too long."""
ENDS_A_BLOCK = lazy_regex(r"\s*(?:[})\]]|end\b|fi\b|$)")


class LostCode(Struct, frozen=True):
    """What a change lost, such as a way in which a function said no, or the value of a constant."""

    shown: str
    """A sentence for the person who is asked."""
    kind: str
    path: str
    restored: tuple[tuple[Edit, ...], ...] = ()
    """Each puts it back into the new file: the lines that its function lost, or all of that."""


def lost_imports(before: bytes, after: bytes, body: bytes) -> list[Edit]:
    """What puts back the imports of one line that a file has lost, and a function of it needs."""
    words = {*re.findall(rb"\w+", body)}.difference(re.findall(rb"\w+", after))
    lost = [one for one in IMPORT.findall(before) if words.intersection(re.findall(rb"\w+", one))]
    head = list(BEFORE_IMPORTS.finditer(after))
    at = head[-1].end() if head else 0
    lines = [b"import " + one.strip() if one[:1] == b"\t" else one for one in lost]
    text = b"".join(one + b"\n" for one in lines).decode("utf-8", "replace")
    return [Edit(at, at, text)] if lost else []


def put_back(before: bytes, after: bytes, line: int) -> str | None:
    """A new text with a line of the old one and what stands around it: lines that went with it, or
    of those that others stand for now the ones up to the end of its block. None where it stands."""
    old, new = (one.decode("utf-8", "replace").splitlines(True) for one in (before, after))
    if max(len(old), len(new)) > MOST_LINES:
        return None
    depths = [len(one) - len(one.lstrip()) for one in old]
    for kind, first, last, at, _ in SequenceMatcher(None, old, new, False).get_opcodes():
        if not (kind in ("delete", "replace") and first <= line < last):
            continue
        if kind == "replace":
            above = [n for n in range(first, line) if depths[n] < depths[line]]
            top = above[-1] if above and not ENDS_A_BLOCK.match(old[above[-1]]) else line
            end = top + 1
            while end < last and (depths[end] > depths[top] or ENDS_A_BLOCK.match(old[end])):
                end += 1
            last = end
        while last < len(old) and sum(map(_opens, old[first:last])) > 0:
            last += 1  # its last bracket stands for another one now
        return "".join([*new[:at], *old[first:last], *new[at:]])
    return None


def _opens(line: str) -> int:
    """How many more brackets a line opens than it closes."""
    return sum((one in "{[(") - (one in ")]}") for one in QUOTED.sub("", line))


def caught_again(before: bytes, after: bytes, line: int) -> str | None:
    """A new text that hands on what it catches, as a line of the old one did; None where it does
    not catch it in the same words."""
    old, new = (one.decode("utf-8", "replace").splitlines(True) for one in (before, after))
    heads = [one.strip() for one in old[:line] if CATCHES.search(to_bytes(one))]
    at = next((n for n, one in enumerate(new) if heads and one.strip() == heads[-1]), None)
    return (
        None if at is None else "".join([*new[: at + 1], f"{old[line].rstrip()}\n", *new[at + 1 :]])
    )
