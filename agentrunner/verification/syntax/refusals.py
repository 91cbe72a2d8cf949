"""What code refuses, whatever its language is: errors that it raises, answers that say no. Pure."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from itertools import accumulate

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.functions import functions_of
from agentrunner.verification.syntax.languages import language_of, parse, with_decorators
from agentrunner.verification.syntax.text_functions import TextFunction, text_functions
from agentrunner.verification.syntax.tokens import content, lexical_family, tokens

_NAMES = r"(?:(?:new|\\|\.|::) |[A-Za-z_]\w* (?=\.|::|\\))*+"
REFUSAL = lazy_regex(
    rf"\b(?:raise|throw) (?:{_NAMES}(?P<kind>[A-Z]\w*)|{_NAMES}TEXT)"
    r"|(?P<error>\b[A-Z]\w*(?:Error|Exception)) \("
    r"|(?:\b(?:Err \(|errors \. New|fmt \. Errorf|(?:bail|ensure) !))"
    r"|\bpanic !?|\b(?:die|croak) (?:\( )?TEXT"
    r"|\bexit (?:\( )?[1-9]\d*|\b(?:(?:sys|process) \. exit|os \. Exit)\b(?! \( (?:0 )?\))"
    r"|(?:(?<=[(,?] )|(?<=return )|(?<=abort )|(?<=halt )|(?<==> )|(?<=[sS]tatus )|(?<=[cC]ode )"
    r"|(?<=[sS]tatus [=:] )|(?<=[cC]ode [=:] )|(?<=: )(?=\d+ \)))4[0-2]\d\b"
    r"|(?P<number>\breturn - [1-9]\d*)|(?:\bset - \w*e)"
)
"""A refusal in the tokens of a source, whatever its language is: `TEXT` stands for each string."""
IN_C = frozenset("c h cc cpp cxx hpp hh hxx".split())
"""Endings of files in which a negative number says no; elsewhere it is an order or a place."""
UNWRITTEN = frozenset({"NotImplementedError"})
SHORTEST = 4
"""Shorter parts of a text are in any other, too."""


class Refusal(Struct, frozen=True):
    """A way in which code says no."""

    kind: str
    """The name of what it raises, its number, or what makes it: `Forbidden`, `404`, `exit 2`."""
    texts: tuple[str, ...] = ()
    """What it says, in the parts that stand in the source."""
    line: int = 0
    """Where it stands, counted from 0."""


def refusals_in(source: bytes, path: str) -> Iterator[Refusal]:
    """Yield the refusals in a file, or in a part of it."""
    family = lexical_family(path, source)
    found = tokens(source, family) if family is not None else ()
    words = ["TEXT" if one.kind == "string" else one.text for one in found]
    starts = list(accumulate((len(one) + 1 for one in words), initial=0))
    joined = " ".join(words)
    in_c = path.rpartition(".")[2] in IN_C and "return 1 ;" not in joined
    for hit in REFUSAL.finditer(joined):
        plain = re.sub(r" ([.!]) ?", r"\1", re.sub(r"[( ]*(TEXT)?$|(?<=-) ", "", hit[0]))
        kind = hit["kind"] or hit["error"] or plain
        if kind in UNWRITTEN or (hit["number"] and not in_c):
            continue
        first, last = bisect(starts, hit.start()) - 1, bisect(starts, hit.end()) + 3
        texts_of = [content(one.text) for one in found[first:last] if one.kind == "string"][:1]
        parts = [part for one in texts_of for part in re.split(r"[#$]?\{[^}]*\}|\$\w+|%\w|\n", one)]
        words_of = tuple(one for one in parts if len(one.strip()) >= SHORTEST)
        yield Refusal(kind, words_of, found[first].line - 1)


def bodies_of(path: str, source: bytes) -> dict[str, tuple[int, bytes]]:
    """The functions of a file by name: where they begin, -1 for several of one name, and their
    text with its head. A script of a shell is one by itself."""
    language, family = language_of(path), lexical_family(path, source)
    parsed = parse(source, language) if language else None
    if family == "shell":
        return {path: (0, source)}
    bodies: Iterable[tuple[str, int, bytes]] = ()
    if parsed is not None:
        nodes = [(one.name, with_decorators(one.node)) for one in functions_of(parsed)]
        bodies = ((n, one.start_byte, source[one.start_byte : one.end_byte]) for n, one in nodes)
    elif family is not None:
        found_in = ((one, _head(one, source)) for one in text_functions(source, family))
        bodies = ((one.name, at, source[at : one.start] + one.body) for one, at in found_in)
    found: dict[str, tuple[int, bytes]] = {}
    for name, at, text in bodies:
        start = len(source[:at].rstrip(b" \t"))  # all of its first line
        body = source[start:at] + text
        found[name] = (-1, found[name][1] + body) if name in found else (start, body)
    return found


def _head(function: TextFunction, source: bytes) -> int:
    """Where the line with the name of a function begins."""
    return source.rfind(b"\n", 0, source.rfind(to_bytes(function.name), 0, function.start)) + 1
