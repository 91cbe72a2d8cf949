"""Find the tests in a file, and the one that a name in a test report refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tree_sitter import Node

from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    arguments_of,
    enclosing,
    field,
    is_comment,
    once_per_file,
    parse,
    walk,
    with_decorators,
)
from agentrunner.verification.syntax.scripts import script_tests
from agentrunner.verification.syntax.test_spans import Found, Title, literal_title

_RUST_ITEMS = (
    "source_file",
    "mod_item",
    "impl_item",
    "declaration_list",
    "expression_statement",
)
"""Node types that can contain Rust items. The last one holds a macro call at the top of a file."""
_LONGEST = 4_000
"""How many characters are read, counted from the end of a name."""
_CASES = 2
"""How many trailing parts of a reported name may be cases of a test instead of tests themselves."""


def all_tests(source: bytes, language: str) -> list[Found]:
    """Return all tests of a file in source order."""
    parsed = parse(source, language)
    return standing(parsed) if parsed is not None else []


def find_test(source: bytes, language: str, name: str) -> Found | None:
    """Return the test that a reported name refers to, None if no test of the file can be it.

    Names are matched from their innermost part outwards. Whatever stands between or before the
    parts is ignored, and so are parameters (`[1]`, `(int)`). If several tests match equally well,
    Python takes the last one, which hides the others; other languages take the first. For a subtest
    in Go the span covers the surrounding function, but the body is the subtest's own.
    """
    parsed = parse(source, language)
    return next(iter(fitting(parsed, name)), None) if parsed is not None else None


def fitting(parsed: Parsed, name: str) -> list[Found]:
    """Return the tests that match a reported name best, the one that actually runs first."""
    found, name = candidates(parsed), name[-_LONGEST:]
    fits = _best(found, name, parsed.language)
    for _ in range(_CASES if parsed.language == "rust" else 0):
        if fits:
            break
        # The innermost part of a name can be a case made by a macro (`::case_1`).
        name = "::".join(name_parts(name, parsed.language)[:-1])
        if not name:
            break
        fits = _best([one for one in found if one.is_test], name, parsed.language)
    return fits


def _best(found: list[Found], name: str, language: str) -> list[Found]:
    score: Callable[[Found, str], tuple[int, ...] | None] = _SCORES.get(language, _plain_score)
    for only_tests in (True, False):
        scored = [
            (points, candidate)
            for candidate in found
            if (candidate.is_test or not only_tests)
            and (points := score(candidate, name)) is not None
        ]
        if scored:
            most = max(points for points, _ in scored)
            fits = [candidate for points, candidate in scored if points == most]
            return fits[::-1] if language == "python" else fits
    return []


@once_per_file
def standing(parsed: Parsed) -> list[Found]:
    """Return the tests that are definitions of their own (no Go subtests), in source order."""
    return [found for found in candidates(parsed) if found.is_test and not found.inner]


@once_per_file
def candidates(parsed: Parsed) -> list[Found]:
    """Return everything that a reported name could refer to, in source order."""
    if parsed.language in SCRIPTS:
        return list(script_tests(parsed))
    return list(_FINDERS[parsed.language](parsed))


# Python -------------------------------------------------------------------------------------------


def _python(parsed: Parsed) -> Iterator[Found]:
    todo: list[tuple[Node, tuple[str, ...], bool]] = [(parsed.root, (), False)]
    while todo:
        node, outer, nested = todo.pop()
        name = field(node, "name")
        if node.type == "function_definition" and name is not None:
            parts = (*outer, parsed.text(name))
            body = field(node, "body")
            if body is not None:
                whole = with_decorators(node)
                test = parts[-1].startswith("test") and not nested
                yield _found(parsed, "::", parts, whole, node, body, test)
            outer, nested = parts, True
        elif node.type == "class_definition" and name is not None:
            outer = (*outer, parsed.text(name))
        todo.extend((child, outer, nested) for child in reversed(node.named_children))


# Go -----------------------------------------------------------------------------------------------


def _go(parsed: Parsed) -> Iterator[Found]:
    for node in parsed.root.named_children:
        name, body = field(node, "name"), field(node, "body")
        if name is None or body is None:
            continue
        if node.type not in ("function_declaration", "method_declaration"):
            continue
        own = parsed.text(name)
        test = bool(re.match(r"(Test|Fuzz|Example)(?![a-z])", own))
        yield _found(parsed, "/", (own,), node, node, body, test)
        if test:
            yield from _go_subtests(parsed, node, own)


def _go_subtests(parsed: Parsed, outer: Node, own: str) -> Iterator[Found]:
    """Yield a match for every `t.Run(name, func(t *testing.T) {…})` of a function."""
    for call in walk(outer):
        if call.type != "call_expression":
            continue
        called, given = parsed.text(call, "function", "field"), arguments_of(call)
        if called != "Run" or len(given) != 2:
            continue
        body = field(given[1], "body")
        if given[1].type == "func_literal" and body is not None:
            title = literal_title(parsed, given[0])
            pieces = tuple(piece.replace(" ", "_") for piece in title.pieces)
            titles = (Title.plain(own), Title(title.text.replace(" ", "_"), pieces))
            found = Found.of(parsed, "/", titles, outer, given[1], body, True)
            yield replace(found, inner=True)


def _go_score(found: Found, name: str) -> tuple[int, ...] | None:
    own = found.span.parts[0]
    match = re.search(rf"(?:^|\W){re.escape(own)}(?:/(.*))?$", name, re.DOTALL)
    if match is None:
        return None
    if len(found.span.parts) == 1:
        return (1, 0)
    first = (match.group(1) or "").replace(" ", "_")
    title = found.titles[1]
    return (2, title.literal) if first and title.start_in(first) is not None else None


# Rust ---------------------------------------------------------------------------------------------


def attributes(node: Node) -> list[Node]:
    """Return the attributes before a Rust item, in source order."""
    found: list[Node] = []
    before = node.prev_named_sibling
    while before is not None and (before.type == "attribute_item" or is_comment(before)):
        if before.type == "attribute_item":
            found.append(before)
        before = before.prev_named_sibling
    return found[::-1]


def attribute_path(parsed: Parsed, item: Node) -> str:
    """Return the path of a Rust attribute: "cfg", "tokio::test"."""
    match = re.match(r"#\s*\[\s*([\w:]+)", parsed.text(item))
    return match.group(1) if match else ""


def _rust(parsed: Parsed) -> Iterator[Found]:
    todo: list[tuple[Node, tuple[str, ...]]] = [(parsed.root, ())]
    while todo:
        node, outer = todo.pop()
        name, body = field(node, "name"), field(node, "body")
        if node.type == "function_item" and name is not None and body is not None:
            marks = attributes(node)
            test = any("test" in attribute_path(parsed, mark).split("::")[-1] for mark in marks)
            parts = (*outer, parsed.text(name))
            yield _found(parsed, "::", parts, node, node, body, test, marks[0] if marks else None)
            continue
        if node.type == "macro_invocation":
            yield from _rust_macro_tests(parsed, node, outer)
        if node.type == "mod_item" and name is not None:
            outer = (*outer, parsed.text(name))
        if node.type in _RUST_ITEMS:
            todo.extend((child, outer) for child in reversed(node.named_children))


def _rust_macro_tests(parsed: Parsed, call: Node, outer: tuple[str, ...]) -> Iterator[Found]:
    """Yield what `test!(name, …);` declares. It counts as a test only if a report has that name."""
    tokens = next((one for one in call.named_children if one.type == "token_tree"), None)
    given = [one for one in tokens.children[1:-1] if not is_comment(one)] if tokens else []
    if tokens is not None and len(given) > 1 and given[0].type == "identifier":
        yield _found(parsed, "::", (*outer, parsed.text(given[0])), call, call, tokens, False)


# Java ---------------------------------------------------------------------------------------------


def marks_of(parsed: Parsed, node: Node) -> list[str]:
    """Return the simple names of the annotations on a Java declaration."""
    return [
        parsed.text(mark, "name").split(".")[-1]
        for child in node.named_children
        if child.type == "modifiers"
        for mark in child.named_children
        if mark.type.endswith("annotation")
    ]


def _java(parsed: Parsed) -> Iterator[Found]:
    todo: list[tuple[Node, tuple[str, ...], bool]] = [(parsed.root, (), False)]
    while todo:
        node, outer, cases = todo.pop()
        name, body = field(node, "name"), field(node, "body")
        if node.type == "method_declaration" and name is not None and body is not None:
            parts = (*outer, parsed.text(name))
            marked = any("Test" in mark for mark in marks_of(parsed, node))
            test = marked or (cases and parts[-1].startswith("test"))
            yield _found(parsed, ".", parts, node, node, body, test)
            continue
        if node.type in ("class_declaration", "record_declaration") and name is not None:
            outer = (*outer, parsed.text(name))
            cases = "TestCase" in parsed.text(node, "superclass")
        if node.type != "block":
            todo.extend((child, outer, cases) for child in reversed(node.named_children))


# Names --------------------------------------------------------------------------------------------


def name_parts(name: str, language: str) -> list[str]:
    """Split a reported name into its parts, innermost last, without parameters."""
    match = re.match(r"(\w+) \(([^()]+)\)", name)
    if match and language == "python":  # unittest: test_y (tests.test_a.TestX[.test_y])
        own, path = match.groups()
        name = path if path.endswith("." + own) else f"{path}.{own}"
    cut = re.search(r"[\[(]", name)
    if cut and cut.start() and language in ("python", "java"):
        name = name[: cut.start()]
    return [part for part in re.split(r"::|[./\\$#>›\s]+", name) if part]


def _plain_score(found: Found, name: str) -> tuple[int, ...] | None:
    parts = name_parts(name, found.parsed.language)
    same = 0
    for part, other in zip(reversed(found.span.parts), reversed(parts), strict=False):
        if part != other:
            break
        same += 1
    return (same, -abs(len(found.span.parts) - same)) if same else None


def _script_score(found: Found, name: str) -> tuple[int, ...] | None:
    """Return how well a name matches: all titles match, number of fixed characters, titles matched.

    Larger is better. Titles are compared from the innermost outwards. Of tests that match equally
    well that one is meant around which more texts stand that occur in the name, too.
    """
    rest, matched, letters = name.strip(), 0, 0
    for title in reversed(found.titles):
        at = title.start_in(rest)
        if at is None or not rest:
            break
        if " > " in rest[at:] and not any(" > " in piece for piece in title.pieces):
            break  # text filled in at run time never spans several parts
        before = rest[:at].rstrip()
        if not matched and " > " in rest and before and not before.endswith(">"):
            return None  # the name's last part begins elsewhere
        rest = before.rstrip(">›»|:/ ")
        matched, letters = matched + 1, letters + title.literal
    if not matched:
        return None
    others = {title.text for title in found.titles[: len(found.titles) - matched]}
    seen = sum(len(text) for text in others.union(found.around) if text in rest)
    return int(matched == len(found.titles)), letters, matched, seen


_SCORES: dict[str, Callable[[Found, str], tuple[int, ...] | None]] = {
    "go": _go_score,
    **dict.fromkeys(SCRIPTS, _script_score),
}
_FINDERS: dict[str, Callable[[Parsed], Iterator[Found]]] = {
    "python": _python,
    "go": _go,
    "rust": _rust,
    "java": _java,
}


def _found(
    parsed: Parsed, separator: str, parts: tuple[str, ...], whole: Node, function: Node,
    body: Node, test: bool, first: Node | None = None,
) -> Found:  # fmt: skip
    titles = [Title.plain(part) for part in parts]
    return Found.of(parsed, separator, titles, whole, function, body, test, first)


def around(node: Node, *kinds: str) -> list[Node]:
    """Return the nodes of the given types that enclose a node, outermost first."""
    return [one for one in enclosing(node) if one.type in kinds][::-1]
