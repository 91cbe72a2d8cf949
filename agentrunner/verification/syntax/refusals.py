"""What code refuses, whatever its language is: errors that it raises, answers that say no. Pure."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.functions import functions_of
from agentrunner.verification.syntax.languages import language_of, parse, with_decorators
from agentrunner.verification.syntax.text_functions import TextFunction, text_functions
from agentrunner.verification.syntax.tokens import (
    content,
    lexical_family,
    tokens,
    without_comments,
)

_NAMES = r"(?:(?:new|\\|\.|::) |[A-Za-z_]\w* (?=\.|::|\\))*+"
_STATUS = "|".join(
    "[_ ]?".join(re.findall(r"[A-Za-z]+", one.phrase)) for one in HTTPStatus if 400 <= one < 430
)
REFUSAL = lazy_regex(
    rf"\b(?:raise|throw|fail) (?:{_NAMES}(?P<kind>[A-Z]\w*)|{_NAMES}TEXT)"
    r"|\b(?P<again>raise|throw) (?:;|\$?[a-z]\w*+(?! (?:[(.\[]|::|->)))"
    r"|(?<!class )(?P<error>\b[A-Z]\w*(?:Error|Exception)) \("
    rf"|(?i:\b(?:status|SC_|HTTP_(?:\d+_)?|HttpResponse|(?>\w*status)\w*+ (?:\.|::) "
    rf"|(?:head|status|abort) (?:[(:] )*: )(?P<status>{_STATUS})\b)"
    r"|(?:\b(?:Err \(|errors \. New|fmt \. Errorf|(?:bail|ensure) !))"
    r"|\bpanic !?|\b(?:die|croak|abort) (?:\( )?TEXT|\bexit \( TEXT|\blog \. Fatal\w*"
    r"|\bexit (?:\( )?[1-9]\d*|\b(?:(?:sys|process) \. exit|os \. Exit)\b(?! \( (?:0 )?\))"
    r"|(?:(?<=[(,?] )|(?<=return )|(?<=abort )|(?<=halt )|(?<==> )|(?<=[sS]tatus )|(?<=[cC]ode )"
    r"|(?<=[sS]tatus [=:] )|(?<=[cC]ode [=:] )|(?<=: )(?=\d+ \)))4[0-2]\d\b"
    r"|(?P<number>\breturn - [1-9]\d*)|(?:\bset - \w*e)"
)
"""A refusal in the tokens of a source, whatever its language is: `TEXT` stands for each string."""
UNSET = lazy_regex(rb"\$\{\w+:?\?")
"""By which a shell ends where a variable is not set."""
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
    again: bool = False
    """Whether it hands on what it caught."""


def refusals_in(source: bytes, path: str) -> Iterator[Refusal]:
    """Yield the refusals in a file, or in a part of it."""
    family = lexical_family(path, source)
    found = tokens(source, family) if family is not None else ()
    for unset in UNSET.finditer(without_comments(path, source)) if family == "shell" else ():
        yield Refusal(unset[0].decode(), (), source.count(b"\n", 0, unset.start()))
    words = ["TEXT" if one.kind == "string" else one.text for one in found]
    for at, word in enumerate(found):
        if word.text in ("raise", "throw") and all(
            word.line < behind.line for behind in found[at + 1 : at + 2]
        ):
            words[at] += " ;"
    starts = list(accumulate((len(one) + 1 for one in words), initial=0))
    joined = " ".join(words)
    in_c = path.rpartition(".")[2] in IN_C and "return 1 ;" not in joined
    outer: tuple[int, Refusal] | None = None
    for hit in REFUSAL.finditer(joined):
        plain = re.sub(r" ([.!]) ?", r"\1", re.sub(r"[( ]*(TEXT)?$|(?<=-) ", "", hit[0]))
        kind = hit["kind"] or hit["error"] or hit["again"] or hit["status"] or plain
        if kind in UNWRITTEN or (hit["number"] and not in_c):
            continue
        first, last = bisect(starts, hit.start()) - 1, bisect(starts, hit.end()) + 3
        texts_of = [content(one.text) for one in found[first:last] if one.kind == "string"][:1]
        parts = [part for one in texts_of for part in re.split(r"[#$]?\{[^}]*\}|\$\w+|%\w|\n", one)]
        words_of = tuple(one for one in parts if len(one.strip()) >= SHORTEST)
        if outer is not None:
            at, one = outer
            if _is_open(joined[at : hit.start()]):  # `raise HttpError(403)` is one
                outer = (at, replace(one, texts=(*one.texts, kind, *words_of)))
                continue
            yield one
        one = Refusal(kind, words_of, found[first].line - 1, bool(hit["again"]))
        outer = (len(joined[: hit.end()].rstrip("( ")), one)
    if outer is not None:
        yield outer[1]


def _is_open(text: str) -> bool:
    """Whether a text begins with a bracket that it does not close."""
    depths = accumulate(1 if one == "(" else -1 for one in re.findall(r"[()]", text))
    return text.lstrip()[:1] == "(" and all(depths)


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
