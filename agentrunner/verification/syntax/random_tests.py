"""Add failing tests with a random name next to the tests of a file, written the way they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tree_sitter import Node

from agentrunner.verification.syntax.edits import (
    Canary,
    Edit,
    canary_of,
    indent_of,
    line_indent,
    newline,
)
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    parameters_at,
    parse,
    parts_of,
    walk,
)
from agentrunner.verification.syntax.test_finder import attributes, standing
from agentrunner.verification.syntax.test_spans import Found

_NewTest = tuple[str, str, str, Edit]
"""The name within the file, the kind, the failing statement (for messages), and the edit."""


def random_tests(source: bytes, language: str, path: str, name: str) -> list[Canary]:
    """Return copies of a test file, each with one more test that has to fail.

    There is one of each usual kind: a bare assertion, the framework's own equality if the file uses
    it, and an exception. `name` consists of ASCII letters, digits and underscores and becomes part
    of the test names; each canary holds its name within the file. `combined` merges several into
    one source. Empty if the file has no test to add to. `path` is used in messages only.
    """
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    parsed = parse(source, language)
    if parsed is None:
        return []
    tests = standing(parsed)
    canaries: list[Canary] = []
    for own, kind, statement, edit in _WRITERS[language](parsed, tests, word) if tests else ():
        line = source[: edit.start].count(b"\n") + 1
        description = f"a test {own} in {path} that fails by `{statement}`"
        canary = canary_of(parsed, own, kind, [edit], description, line)
        canaries += [canary] if canary is not None else []
    return canaries


# Python -------------------------------------------------------------------------------------------


def _python(parsed: Parsed, tests: list[Found], word: str) -> Iterator[_NewTest]:
    plain = [one for one in tests if len(one.span.parts) == 1]
    last = (plain or tests)[-1]
    line = newline(parsed.source)
    indent = (indent_of(parsed, last.whole) or "") if not plain else ""
    case = not plain and "self.assert" in parsed.text(last.whole.parent or last.whole)
    case = case or (not plain and b"TestCase" in parsed.source)
    at = last.whole.end_byte
    for kind, statement in (
        ("assert", 'assert False, "made to fail"'),
        (
            "equality",
            'self.assertEqual("made", "to fail")' if case else 'assert "made" == "to fail"',
        ),
        ("exception", 'raise RuntimeError("made to fail")'),
    ):
        own = f"test_{word}_{kind}"
        taken = "" if plain else "self"
        takes_self = bool(parameters_at(last.function))
        static = "" if plain or takes_self else f"{line}{indent}@staticmethod"
        taken = "" if static else taken
        text = f"{line}{line}{static}{line}{indent}def {own}({taken}):{line}{indent}    {statement}"
        name = "::".join((*last.span.parts[:-1], own))
        yield name, kind, statement, Edit(at, at, text)


# JavaScript and TypeScript ------------------------------------------------------------------------


def _script(parsed: Parsed, tests: list[Found], word: str) -> Iterator[_NewTest]:
    last = next((one for one in reversed(tests) if not _is_within_test(one, tests)), tests[-1])
    if last.call is None:
        return
    line, indent = newline(parsed.source), line_indent(parsed, last.whole)
    caller = _caller(parsed, last.call)
    at = last.whole.end_byte
    for kind, statement in _script_failures(parsed):
        own = f"{word}_{kind}"
        body = f"{{{line}{indent}  {statement}{line}{indent}}}"
        text = f';{line}{indent}{caller}("{own}", () => {body});'
        name = " > ".join((*last.span.parts[:-1], own))
        yield name, kind, statement, Edit(at, at, text)


def _is_within_test(found: Found, tests: list[Found]) -> bool:
    return any(
        other.span.start < found.span.start and found.span.end <= other.span.end for other in tests
    )


def _caller(parsed: Parsed, call: Node) -> str:
    """Return the function that another test is declared with, without its table of cases."""
    node = field(call, "function")
    while node is not None and node.type != "identifier":
        text = parsed.text(node)
        if "each" not in text and parsed.text(node, "property") in ("only", "test", "it"):
            return text
        node = field(node, "function") or field(node, "object")
    return parsed.text(node) or "test"


def _script_failures(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Yield each usual kind of failing statement that fits the names in the file."""
    text = parsed.source.decode("utf-8", "replace")
    names = {parsed.text(node) for node in walk(parsed.root) if node.type == "identifier"}
    if "assert" in names:
        bare = "assert.ok(false)" if re.search(r"\bassert\.ok\(", text) else "assert(false)"
        bare = "assert.ok(false)" if re.search(r"\*\s*as\s+assert\b", text) else bare
        yield "assert", f"{bare};"
    if "expect" in names:
        chai = re.search(r"\.to\.(equal|be|eql|have|deep|throw)\b", text)
        yield "equality", f"expect(1).{'to.equal' if chai else 'toBe'}(2);"
    elif re.search(r"\bassert\.(\w*[eE]qual)\(", text):
        used = re.search(r"\bassert\.(strictEqual|equal|deepStrictEqual|deepEqual)\(", text)
        yield "equality", f"assert.{used.group(1) if used else 'equal'}(1, 2);"
    yield "exception", 'throw new Error("made to fail");'


# Go -----------------------------------------------------------------------------------------------


def _go(parsed: Parsed, tests: list[Found], word: str) -> Iterator[_NewTest]:
    plain = [one for one in tests if one.function.type == "function_declaration"]
    given = (each for one in plain for each in parts_of(one.function, "parameters"))
    kinds = (parsed.text(one, "type") for one in given)
    kind_of_t = next((kind for kind in kinds if kind.endswith(".T")), None)
    if kind_of_t is None:
        return
    line, at = newline(parsed.source), len(parsed.source)
    camel = "".join(part[:1].upper() + part[1:] for part in word.split("_"))
    statements = [("assert", 't.Error("made to fail")'), ("exception", 't.Fatalf("made to fail")')]
    used = re.search(rb"\b(assert|require)\.Equal\(t\b", parsed.source)
    if used:
        statements.insert(1, ("equality", f"{used.group(1).decode()}.Equal(t, 1, 2)"))
    for kind, statement in statements:
        own = f"Test{camel}{kind.capitalize()}"
        text = f"{line}{line}func {own}(t {kind_of_t}) {{{line}\t{statement}{line}}}{line}"
        yield own, kind, statement, Edit(at, at, text)


# Rust ---------------------------------------------------------------------------------------------


def _rust(parsed: Parsed, tests: list[Found], word: str) -> Iterator[_NewTest]:
    plain = [one for one in tests if "#[test]" in map(parsed.text, attributes(one.whole))]
    last = (plain or tests)[-1]
    line, indent, at = newline(parsed.source), line_indent(parsed, last.whole), last.whole.end_byte
    for kind, statement in (
        ("assert", 'assert!("made".is_empty(), "to fail");'),
        ("equality", 'assert_eq!("made", "to fail");'),
        ("exception", 'panic!("made to fail");'),
    ):
        own = f"{word.lower()}_{kind}"
        body = f"{{{line}{indent}    {statement}{line}{indent}}}"
        text = f"{line}{line}{indent}#[test]{line}{indent}fn {own}() {body}"
        yield "::".join((*last.span.parts[:-1], own)), kind, statement, Edit(at, at, text)


# Java ---------------------------------------------------------------------------------------------


def _java(parsed: Parsed, tests: list[Found], word: str) -> Iterator[_NewTest]:
    marked = [one for one in tests if _java_mark(parsed, one) is not None]
    last = (marked or tests)[-1]
    mark = _java_mark(parsed, last) or ""
    line, indent, at = newline(parsed.source), line_indent(parsed, last.whole), last.whole.end_byte
    statements = [
        # The keyword does nothing where the JVM is started without -ea.
        ("assert", 'throw new AssertionError("made to fail");'),
        ("exception", 'throw new IllegalStateException("made to fail");'),
    ]
    used = re.search(rb"\b((?:\w+\.)?assertEquals)\s*\(", parsed.source)
    if used:
        statements.insert(1, ("equality", f'{used.group(1).decode()}("made", "to fail");'))
    for kind, statement in statements:
        own = f"test{word[:1].upper()}{word[1:]}{kind.capitalize()}"
        lead = f"{mark}{line}{indent}" if mark else ""
        body = f"{{{line}{indent}    {statement}{line}{indent}}}"
        text = f"{line}{line}{indent}{lead}public void {own}() {body}"
        yield ".".join((*last.span.parts[:-1], own)), kind, statement, Edit(at, at, text)


def _java_mark(parsed: Parsed, found: Found) -> str | None:
    match = re.match(r"[^{]*?(@(?:[\w.]+\.)?Test)\b", parsed.text(found.whole))
    return match.group(1) if match else None


_WRITERS: dict[str, Callable[[Parsed, list[Found], str], Iterator[_NewTest]]] = {
    "python": _python,
    "go": _go,
    "rust": _rust,
    "java": _java,
    **dict.fromkeys(SCRIPTS, _script),
}
