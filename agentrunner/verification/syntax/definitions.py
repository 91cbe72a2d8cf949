"""The text of a test with everything it depends on in its file, to compare with another version."""

from __future__ import annotations

from tree_sitter import Node

from agentrunner.verification.syntax.context import context_of, imports_in, names_at, required
from agentrunner.verification.syntax.functions import normal
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    arguments_of,
    field,
    inside,
    once_per_file,
    parse,
    with_decorators,
)
from agentrunner.verification.syntax.regions import regions_of_tests
from agentrunner.verification.syntax.scripts import FUNCTIONS
from agentrunner.verification.syntax.test_finder import all_tests, around, fitting
from agentrunner.verification.syntax.test_spans import Found

_LEVELS = 8
"""How many levels of helpers of helpers are followed."""


def definition(source: bytes, language: str, name: str) -> str | None:
    """Return the text of the test that a reported name refers to, comments removed.

    White space is normalised. It contains the test with its decorators, attributes or annotations;
    the heads of the surrounding classes or suites and their set-up; fixtures and helpers of the
    file that it uses, and those that they use; and the origin of the imported names. If a file
    defines a name several times, it contains all definitions. None if the file has no such test.
    """
    parsed = parse(source, language)
    found = fitting(parsed, name) if parsed is not None else []
    return _text(found) if found else None


def definitions(source: bytes, language: str) -> dict[str, str]:
    """Return the texts of all tests of a file, as `definition` makes them, by their name in it."""
    by_name: dict[str, list[Found]] = {}
    for found in all_tests(source, language):
        by_name.setdefault(found.span.name, []).append(found)
    return {name: _text(found) for name, found in by_name.items()}


def _text(found: list[Found]) -> str:
    """Return tests of one file with what they depend on, one part per line."""
    parsed = found[0].parsed
    context, imports, texts = context_of(parsed), imports_in(parsed), _texts(parsed)
    lines: list[str] = []
    for one in found:
        set_up = context.set_up(one)
        own = [one.whole]
        if not inside(one.whole, one.function):
            own.append(one.function)
        helpers = context.followed([*own, *_bases(one), *set_up], _LEVELS)
        if _is_in_test_module(parsed, one.whole):  # the product surrounds such a module
            helpers = [helper for helper in helpers if _is_in_test_module(parsed, helper)]
        nodes = [*set_up, *own, *(one for one in helpers if not _is_require(parsed, one))]
        used: set[str] = set()
        for node in nodes:
            used |= names_at(parsed, node)
            if node.id not in texts:
                texts[node.id] = normal(parsed, node)
        lines += [f"from {imports[name]}" for name in sorted(used & imports.keys())]
        lines += _heads(one) + _marks(one)
        lines += [texts[node.id] for node in nodes]
    return "\n".join(dict.fromkeys(lines))


@once_per_file
def _texts(_: Parsed) -> dict[int, str]:
    """The texts of nodes, each of which is made only once."""
    return {}


def _is_require(parsed: Parsed, node: Node) -> bool:
    """Whether a node is `{ a, b } = require("./a")`: where each name is from is said above.

    One with a value of its own (`{ a = 3 }`) is not.
    """
    names = required(parsed, node) if node.type == "variable_declarator" else {}
    return bool(names) and all(name.isidentifier() for name in names)


def _is_in_test_module(parsed: Parsed, node: Node) -> bool:
    """Whether a node is in a module of tests within a product file."""
    regions = regions_of_tests(parsed.source, parsed.language)
    return any(one.kind == "module" and one.holds(node.start_byte) for one in regions)


def _bases(found: Found) -> list[Node]:
    outer = around(found.whole, "class_definition", "class_declaration")
    bases = [field(one, "superclasses") or field(one, "superclass") for one in outer]
    return [one for one in bases if one is not None]


def _heads(found: Found) -> list[str]:
    """Return what precedes the body of each class, module or suite around a test."""
    parsed = found.parsed
    if parsed.language in SCRIPTS:
        return [_suite_head(parsed, call) for call in found.suites]
    outside = around(found.whole, "class_definition", "class_declaration", "mod_item")
    return [
        normal(parsed, with_decorators(outer), frozenset({body.id}))
        for outer in outside
        if (body := field(outer, "body")) is not None
    ]


def _suite_head(parsed: Parsed, call: Node) -> str:
    given = [one for one in arguments_of(call) if one.type not in FUNCTIONS]
    parts = [field(call, "function"), *given]
    return " ".join(normal(parsed, one) for one in parts if one is not None)


def _marks(found: Found) -> list[str]:
    """Return the Rust attributes, which precede the item."""
    if found.parsed.language != "rust":
        return []
    start, end = found.span.start, found.whole.start_byte
    return [" ".join(found.parsed.source[start:end].decode("utf-8", "replace").split())]
