"""What a language has for telling its own tools and its own runtime to say nothing. Pure.

Comments that do so are known to no language: any tool has its own. These here are code, as the
languages define it: a pragma, an attribute, an escape from types, a stream that is thrown away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit, only_new
from agentrunner.verification.syntax.functions import RETURN_TYPE, Function, functions_of
from agentrunner.verification.syntax.languages import field, language_of, parse
from agentrunner.verification.syntax.tokens import LARGEST, comments, lexical_family, tokens

ANYTHING = lazy_regex(r":?\s*(?:typing\.)?(?:Any|any)")
TYPED = ("python", "typescript", "tsx")
OPTIONAL = b"?"
"""Between a parameter of TypeScript and its type."""


class SilencedWarning(Struct, frozen=True):
    """A place that silences, and the edit that takes it out."""

    line: int
    """Counted from 1."""
    text: str
    edit: Edit


_CALL = r"\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"
_ANNOTATION = rf"@(?:[\w.]+\.)?Suppress(?:Warnings|Lint)?\b(?:{_CALL})?"
_FORMS: dict[str, tuple[tuple[str, str], ...]] = {
    "python": (
        (rf"\bwarnings\.(?:simplefilter|filterwarnings|resetwarnings){_CALL}", "None"),
        (rf"\b(?:simplefilter|filterwarnings){_CALL}", "None"),
        (r"@(?:typing\.)?no_type_check\b", ""),
        (r"(?<=:) ?(?:typing\.)?Any\b(?=\s*[=,)\n])", " object"),
        (r"\b(?:typing\.)?cast\(\s*(?:typing\.)?Any\s*,", "("),
    ),
    "c": (
        (r"^[ \t]*#[ \t]*pragma[ \t]+(?!once\b|pack\b|omp\b|comment\b)[^\n]*", ""),
        (rf"\b_Pragma\s*{_CALL}", ""),
        (_ANNOTATION, ""),
    ),
    "rust": ((r"#!?\[\s*(?:allow|expect)\s*\([^\]]*\)\s*\]", ""),),
    "script": (
        (r"\(\s*([\w.\[\]]+)\s+as\s+any\s*\)", r"\1"),
        (r"\bas\s+(?:any|unknown\s+as\s+[\w.<>\[\]|& ]+?)(?=\s*[)\],;}\n.])", ""),
        (r"(?<=[\w)\]])!(?=\s*[.;,)\]\[])", ""),
        (r"(?<=:) ?any\b(?=\s*[=,;){])", " unknown"),
        (r"\bprocess\.noDeprecation\s*=\s*true\b", "0"),
        (r"\bprocess\.removeAllListeners\(\s*[\"']warning[\"']\s*\)", "0"),
    ),
    "php": (
        (rf"\berror_reporting{_CALL}", "null"),
        (rf"\bini_set\(\s*[\"']display_errors[\"']{_CALL[2:]}", "null"),
        (r"(?<![\w'\"$])@(?=[a-zA-Z_\\$])", ""),
    ),
    "perl": ((r"\bno\s+warnings\b[^;\n]*;", ""),),
    "ruby": (
        (r"\$VERBOSE\s*=\s*nil\b", "nil"),
        (r"\bWarning\[[^\]\n]*\]\s*=\s*false\b", "nil"),
    ),
    "shell": (
        (r"(?:2|&)>\s*/dev/null\b|2>&-", ""),
        (r"\bset\s+\+e\b", ":"),
    ),
}
"""By family: a pattern, and what takes its place."""
_COMPILED = {
    family: [(lazy_regex(pattern, re.MULTILINE), text) for pattern, text in forms]
    for family, forms in _FORMS.items()
}
_TYPED = (".ts", ".tsx", ".mts", ".cts")
_NOISE = r"(?:warning|error|lint|deprecat|message|noise|output|diagnostic|stderr|check|rule)\w*"
WANTS_SILENCE = lazy_regex(
    r"(?i)\bwithout (?:a |any )?(?:warning|noise|error message|output)"
    r"|\b(?:suppress|silenc|hush|mut(?:e|ing)|quiet|filter|ignor|disabl|hid(?:e|ing)|discard"
    rf"|turn(?:ed)? off|switch(?:ed)? off|allow|swallow)\w*\b[^.\n]{{0,60}}\b{_NOISE}"
    rf"|\b{_NOISE}\b[^.\n]{{0,40}}\b(?:suppress|silenc|ignor|hidden|discard|swallow)\w*"
    r"|(?:警告|エラー|出力).{0,12}(?:抑制|抑止|無視|隠)"
)
"""Words of a text that asks for silence."""


def silenced_warnings(path: str, source: bytes) -> list[SilencedWarning]:
    """Return the places of a source that silence, in order; none in comments and strings."""
    family = lexical_family(path, source)
    if family not in _COMPILED or len(source) > LARGEST:
        return []
    text = source.decode("latin-1")
    plain = bytearray(source)
    for start, one in comments(source, family):
        plain[start : start + len(one)] = b" " * len(one)
    strings = [(t.start, t.end) for t in tokens(source, family) if t.kind in ("string", "regex")]
    found: list[SilencedWarning] = []
    for pattern, instead in _COMPILED[family]:
        if (
            family == "script"
            and PurePosixPath(path).suffix not in _TYPED
            and "process" not in pattern.pattern
        ):
            continue
        for hit in pattern.finditer(plain.decode("latin-1")):
            if any(start <= hit.start() < end for start, end in strings):
                continue
            line = text.count("\n", 0, hit.start()) + 1
            shown = text[hit.start() : hit.end()].strip() or hit[0]
            found.append(
                SilencedWarning(line, shown, Edit(hit.start(), hit.end(), hit.expand(instead)))
            )
    return sorted(found, key=lambda one: one.edit.start)


def added_silenced_warnings(path: str, before: bytes, after: bytes) -> list[SilencedWarning]:
    """Return those that only the new text of a file has."""
    old, new = silenced_warnings(path, before), silenced_warnings(path, after)
    return only_new(old, new, lambda one: one.text)


def lost_types(path: str, before: bytes, after: bytes) -> list[SilencedWarning]:
    """Return the places where a function of a source had a type, and the edit that puts it back.

    A type checker does not look into a function without types, so taking them away silences it. So
    does the type that takes anything.
    """
    language = language_of(path)
    old, new = (parse(source, language or "") for source in (before, after))
    if language not in TYPED or old is None or new is None:
        return []
    known = {one.name: one for one in functions_of(old)}
    return [
        SilencedWarning(
            one.node.start_point.row + 1, f"{one.name} without {edit.text.strip()}", edit
        )
        for one in functions_of(new)
        if (was := known.get(one.name)) is not None
        for edit in _edits(was, one)
    ]


def _edits(was: Function, now: Function) -> Iterator[Edit]:
    types = _types(was)
    for name, (node, end) in _places(now).items():
        if name in types and (end is None or ANYTHING.fullmatch(now.parsed.text(end))):
            at = node.end_byte
            at += now.parsed.source.startswith(OPTIONAL, at)
            yield Edit(at, end.end_byte if end is not None else at, types[name])


def _types(function: Function) -> dict[str, str]:
    """The types of its parameters, by name, and of what it returns (""), with their signs."""
    source = function.parsed.source
    return {
        name: source[node.end_byte : end.end_byte].removeprefix(OPTIONAL).decode("utf-8", "replace")
        for name, (node, end) in _places(function).items()
        if end is not None
    }


def _places(function: Function) -> dict[str, tuple[Node, Node | None]]:
    """By parameter, and "" for what is returned: where its type stands, and the type, if any."""
    parameters = field(function.node, "parameters")
    if parameters is None:
        return {}
    language = function.parsed.language
    returned = field(function.node, RETURN_TYPE.get(language, "return_type"))
    found: dict[str, tuple[Node, Node | None]] = {"": (parameters, returned)}
    for one in parameters.named_children:
        name = field(one, "name") or field(one, "pattern") or one
        if name is one and one.type == "typed_parameter":
            name = one.named_children[0]
        if name.type == "identifier":
            found[function.parsed.text(name)] = (name, field(one, "type"))
    return found
