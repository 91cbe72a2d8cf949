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
)
from agentrunner.verification.syntax.regions import regions_of_tests
from agentrunner.verification.syntax.scripts import FUNCTIONS
from agentrunner.verification.syntax.test_finder import around, fitting, standing
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
    if parsed is None:
        return None
    found = fitting(parsed, name)
    return _writer(parsed).text(found) if found else None


def definitions(source: bytes, language: str) -> dict[str, str]:
    """Return the texts of all tests of a file, as `definition` makes them, by their name in it."""
    parsed = parse(source, language)
    if parsed is None:
        return {}
    writer = _writer(parsed)
    by_name: dict[str, list[Found]] = {}
    for found in standing(parsed):
        by_name.setdefault(found.span.name, []).append(found)
    return {name: writer.text(found) for name, found in by_name.items()}


@once_per_file
def _writer(parsed: Parsed) -> _Writer:
    return _Writer(parsed)


class _Writer:
    """Writes the texts of one file's tests; each part is made only once."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self._context = context_of(parsed)
        self._imports = imports_in(parsed)
        self._texts: dict[int, str] = {}

    def text(self, found: list[Found]) -> str:
        """Return the tests with what they depend on, one part per line."""
        lines: list[str] = []
        for one in found:
            set_up = self._context.set_up(one)
            own = [one.whole]
            if not inside(one.whole, one.function):
                own.append(one.function)
            helpers = self._context.followed([*own, *self._bases(one), *set_up], _LEVELS)
            if self._is_in_test_module(one.whole):  # the product surrounds such a module
                helpers = [helper for helper in helpers if self._is_in_test_module(helper)]
            nodes = [*set_up, *own, *(one for one in helpers if not self._is_require(one))]
            used: set[str] = set()
            for node in nodes:
                used |= names_at(self._parsed, node)
            lines += [f"from {self._imports[name]}" for name in sorted(used & self._imports.keys())]
            lines += self._heads(one) + self._marks(one)
            lines += [self._normal(node) for node in nodes]
        return "\n".join(dict.fromkeys(lines))

    def _is_require(self, node: Node) -> bool:
        """Whether a node is `{ a, b } = require("./a")`: where each name is from is said above.

        One with a value of its own (`{ a = 3 }`) is not.
        """
        names = required(self._parsed, node) if node.type == "variable_declarator" else {}
        return bool(names) and all(name.isidentifier() for name in names)

    def _is_in_test_module(self, node: Node) -> bool:
        """Whether a node is in a module of tests within a product file."""
        regions = regions_of_tests(self._parsed.source, self._parsed.language)
        return any(one.kind == "module" and one.holds(node.start_byte) for one in regions)

    def _bases(self, found: Found) -> list[Node]:
        outer = around(found.whole, "class_definition", "class_declaration")
        bases = [field(one, "superclasses") or field(one, "superclass") for one in outer]
        return [one for one in bases if one is not None]

    def _heads(self, found: Found) -> list[str]:
        """Return what precedes the body of each class, module or suite around a test."""
        if self._parsed.language in SCRIPTS:
            return [self._suite_head(call) for call in found.suites]
        heads = []
        kinds = ("class_definition", "class_declaration", "mod_item")
        for outer in around(found.whole, *kinds):
            body = field(outer, "body")
            decorated = outer.parent if outer.parent else outer
            whole = decorated if decorated.type == "decorated_definition" else outer
            if body is not None:
                heads.append(normal(self._parsed, whole, frozenset({body.id})))
        return heads

    def _suite_head(self, call: Node) -> str:
        parts = [
            field(call, "function"),
            *(one for one in arguments_of(call) if one.type not in FUNCTIONS),
        ]
        return " ".join(normal(self._parsed, one) for one in parts if one is not None)

    def _marks(self, found: Found) -> list[str]:
        """Return the Rust attributes, which precede the item."""
        if self._parsed.language != "rust":
            return []
        start, end = found.span.start, found.whole.start_byte
        return [" ".join(self._parsed.source[start:end].decode("utf-8", "replace").split())]

    def _normal(self, node: Node) -> str:
        if node.id not in self._texts:
            self._texts[node.id] = normal(self._parsed, node)
        return self._texts[node.id]
