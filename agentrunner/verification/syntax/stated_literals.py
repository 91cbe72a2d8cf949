"""Find the values that a program's lines expect and change each to another, in any language. Pure.

Two forms are found by patterns: a comparison with a literal (`[ "$sum" = 15 ] || failed=1`), and a
call of a function of the same file that compares a parameter (`check("sum", total(), 15)`). Places
of the same form are one kind: if changing one of them turns the program red, changing any other
that is reached has to do so as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.failing_assertions import Failing
from agentrunner.verification.syntax.word_tests import changed_value

LITERAL = lazy_regex(r"""'[^'\\$\n]*'|"[^"\\$\n]*"|(?<![\w.$#])-?\d+(?:\.\d+)?(?![\w.])""")
SAME = r"(?:[!=]==?|<>|~=|-eq|-ne|\beq\b|\bne\b|(?<![=!<>+*/-])=(?![=~>]))"
BEHIND = lazy_regex(rf"{SAME}\s*$")
BEFORE = lazy_regex(rf"\s*{SAME}")
NOT_BEFORE = lazy_regex(
    r"\s*(?:[}#*]|//|--|else\b|elif\b|elsif\b|elseif\b|case\b|when\b|import\b|from\b|use\b|require"
    r"|include\b|return\b|const\b|let\b|var\b|local\b|my\b|our\b|for\b|while\b)"
)
"""How lines begin that no statement can precede, or that expect nothing."""
ASSIGNS = lazy_regex(r"\s*(?:(?:int|long|auto|float|double|bool|char)\s+)?[$@]?[\w.]+\s*=(?!=)")
ENDS_OPEN = lazy_regex(r"[,(\\+&|=\[]\s*$")
CALLED = lazy_regex(r"(?:^|[;{&|]|\bthen\b|\bdo\b)\s*([\w.]+)")
"""The first word of a statement."""
_MODIFIERS = (
    r"(?:(?:async|static|inline|local|export|pub|public|private|protected|final|default)\s+)*"
)
DEFINES = lazy_regex(
    r"(?m)^[ \t]*(?:#\s*define\s+(?P<macro>\w+)\((?P<ofmacro>[^)]*)\)"
    rf"|{_MODIFIERS}(?:function|def|sub|fn|func|void|int|bool|boolean)\s+"
    r"(?:self\.)?(?P<name>\w+)\s*(?:<[^>\n]*>)?\s*(?:\((?P<of>[^)\n]*)\)|(?=\{)))"
    r"|^[ \t]*(?P<shell>\w+)\s*\(\)\s*\{"
    r"|^[ \t]*(?:(?:export\s+)?(?:const|let|var)\s+|(?:module\.)?exports\.)(?P<arrow>\w+)\s*=\s*"
    r"(?:async\s*)?(?:function\s*\w*\s*)?\((?P<ofarrow>[^)\n]*)\)\s*(?:=>|\{)"
)
REACTS = lazy_regex(
    r"(?i)\+\+|\+=|\+ ?1\b|=\s*(?:1|false)\b"
    r"|\b(?:exit|return|throw|raise|die|abort|error|fail|push|append|panic|assert|ok\()"
)
MOST = 200
"""The most places of one file."""


class _Helper(Struct, frozen=True):
    """A function that compares some of its parameters, given by their positions."""

    name: str
    places: tuple[int, ...]
    counts: bool
    """Whether it reacts to a difference: counts it, exits or throws."""


def other_expectations(source: bytes, kill: str) -> list[Failing]:
    """Return the places of a program with another value expected; `kill` is a statement to end it.

    Only calls that react to a difference are sure. Which other places matter is learned by running.
    """
    text = source.decode("latin-1")  # one character per byte, so offsets are those of the source
    helpers = {one.name: one for one in _helpers(text)}
    found: list[Failing] = []
    start, before = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        can_state = not NOT_BEFORE.match(line) and not ENDS_OPEN.search(before)
        if can_state and line.strip():
            for kind, at, end, sure in _places(line, helpers):
                edit = Edit(start + at, start + end, changed_value(line[at:end]))
                indent = line[: len(line) - len(line.lstrip())]
                ends = Edit(start, start, f"{indent}{kill};\n")
                found.append(Failing(kind, sure, number, (edit,), (ends,)))
        start += len(line) + 1
        before = line if line.strip() else before
    return found[:MOST]


def defined_functions(text: str) -> frozenset[str]:
    """Return the names of a file's functions, in any language."""
    return frozenset(
        hit["macro"] or hit["name"] or hit["shell"] or hit["arrow"]
        for hit in DEFINES.finditer(text)
    )


def comparing_functions(text: str, only: Collection[str] | None = None) -> set[str]:
    """Return the names of a file's functions that compare a parameter and react to a difference.

    With `only`, those of these names; others are not looked at.
    """
    return {one.name for one in _helpers(text, only) if one.counts}


def functions_of_two(text: str, only: Collection[str] | None = None) -> set[str]:
    """Return the names of a file's functions that compare two of their parameters.

    With `only`, those of these names; others are not looked at.
    """
    return {name for name, given, body in _functions(text, only) if _compares_two(given, body)}


def _places(line: str, helpers: dict[str, _Helper]) -> Iterator[tuple[str, int, int, bool]]:
    """Yield the kind, start and end of what a line expects, and whether it has to matter."""
    called = [hit for hit in CALLED.finditer(line) if hit[1] in helpers]
    for hit in called:
        helper, arguments = helpers[hit[1]], _arguments(line, hit.end())
        for place in helper.places:
            if place < len(arguments) and LITERAL.fullmatch(line, *arguments[place]):
                at, end = arguments[place]
                yield f"{hit[1]}, argument {place + 1}", at, end, helper.counts
    first = re.match(r"\s*([\w.]+|\[+|\S)", line)
    word = first[1] if first else ""
    if called:
        return
    if ASSIGNS.match(line):
        return
    for hit in LITERAL.finditer(line):
        behind = line[hit.end() :]
        if BEHIND.search(line[: hit.start()]) or BEFORE.match(behind):
            rest = LITERAL.sub("?", behind).strip()
            if word not in ("if", "unless", "until") or re.search(r"\w", rest):
                yield f"{word} … {rest}"[:80], hit.start(), hit.end(), False
                return


def _helpers(text: str, only: Collection[str] | None = None) -> Iterator[_Helper]:
    """Yield the functions of the file that compare a parameter."""
    for name, names, body in _functions(text, only):
        if places := _compared(body, names):
            yield _Helper(name, places, bool(REACTS.search(body)))


def _functions(
    text: str, only: Collection[str] | None = None
) -> Iterator[tuple[str, list[str], str]]:
    """Yield the functions of the file: name, parameter names, and body."""
    starts = list(DEFINES.finditer(text))
    for index, hit in enumerate(starts):
        name = hit["macro"] or hit["name"] or hit["shell"] or hit["arrow"]
        if only is not None and name not in only:
            continue
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        body = text[hit.end() : min(end, hit.end() + 2_000)]
        given = hit["ofmacro"] or hit["of"] or hit["ofarrow"]
        first = re.match(r"\s*func\b", hit[0]) is not None
        yield name, _names(given, first=first) if given else _positional_parameters(body), body


def _compares_two(names: Sequence[str], body: str) -> bool:
    def bare(name: str) -> str:
        return rf"(?<![\w.])\(*(?:[\w.]+\(\s*)*[$@]?{re.escape(name)}(?![\w.\[])[)\s]*"

    return any(
        re.search(rf"{bare(one)}(?:{SAME}|-)\s*{bare(other)}", body)
        for one in names[:6]
        for other in names[:6]
        if one and other and one != other
    )


def _names(parameters: str, *, first: bool = False) -> list[str]:
    """Return parameter names without what surrounds them; with `first` they precede their types."""
    found = []
    for one in parameters.split(","):
        words = re.findall(r"\w+", one.split(":")[0].split("=")[0])
        found.append(words[0 if first else -1] if words else "")
    return found


def _positional_parameters(body: str) -> list[str]:
    """Return parameters that a body takes by position: `my ($name, $got) = @_`, `$2` in a shell."""
    if hit := re.search(r"my\s*\(([^)]*)\)\s*=\s*@_", body):
        return _names(hit[1])
    return [str(number) for number in range(1, 10)] if re.search(r"\$\{?[1-9]", body) else []


def _compared(body: str, names: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the names that stand next to a comparison."""
    found = []
    for place, name in enumerate(names):
        # A macro often assigns a parameter to a local name first: `int got_ = (got);`
        local = bool(name) and not name.isdecimal()
        alias = re.search(rf"(\w+)\s*=\s*\(?{re.escape(name)}\)?\s*[,;]", body) if local else None
        if alias and re.search(rf"{SAME}\s*{alias[1]}(?!\w)|(?<!\w){alias[1]}\s*{SAME}", body):
            found.append(place)
            continue
        sign = r"\$" if name.isdecimal() else r"\$?"  # `failed=1` has nothing to do with `$1`
        one = rf"[\"'(]*{sign}\{{?{re.escape(name)}\}}?[\"')]*"
        beside = rf"{SAME}\s*{one}(?![\w(.])|(?<![\w.]){one}\s*{SAME}"
        if name and re.search(beside, body):
            found.append(place)
    return tuple(found)


def _arguments(line: str, at: int) -> list[tuple[int, int]]:
    """Return the spans of a call's arguments, in brackets or as words of a shell command."""
    brackets = line[at : at + 1] == "("
    spans, depth, quote = [], 0, ""
    start = at + 1
    for index in range(start, len(line)):
        char = line[index]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif (char in ")]}" or (char in ";|&" and not brackets)) and depth == 0:
            spans.append((start, index))
            break
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0 and char == ("," if brackets else " "):
            spans.append((start, index))
            start = index + 1
    else:
        spans.append((start, len(line)))
    trimmed = []
    for begin, end in spans:
        text = line[begin:end]
        left = begin + len(text) - len(text.lstrip())
        trimmed.append((left, left + len(text.strip())))
    return [(left, right) for left, right in trimmed if right > left or brackets]
