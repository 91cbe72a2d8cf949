"""Whether a change of a file leaves some of its functions as they were, with all that they use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.context import (
    NAMES,
    definitions_in,
    imports_in,
    names_at,
    required,
)
from agentrunner.verification.syntax.functions import NESTED, functions_of, normal
from agentrunner.verification.syntax.languages import Parsed, field, inside, is_comment, parse, walk
from agentrunner.verification.syntax.plain_code import PlainCode, uses_in, written
from agentrunner.verification.syntax.values import is_literal

WORD = lazy_regex(r"[^\W\d]\w*")
CLASSES = frozenset(
    "class_definition class_declaration abstract_class_declaration impl_item".split()
)
HOLDS = lazy_regex(r"export_statement|expression_statement|\w*declaration|var_spec_list")
"""Statements that declare something, or have one definition in them."""
BARE = lazy_regex(r"len|cap|bool|byte|rune|string|u?int\d*|float\d\d|complex\d+")
"""Types of Go that have no methods, and functions that call none."""
BESIDES = lazy_regex(r"modifiers|\w*type\w*|dimensions|visibility_modifier")
"""What stands in such a statement beside what it declares."""


def is_beside(before: bytes, after: bytes, language: str, names: Collection[str]) -> bool:
    """Whether nothing that changed can be felt by the functions of these names.

    They and the functions, types and constants of the file that they use stay as they are. New and
    changed code consists of definitions that reach nothing but what they are given, what the file
    has and harmless functions of the language (`PlainCode`), and an import may bring more of what
    was imported. Comments and docstrings are felt by nobody. Not if one of the versions has no
    syntax tree.
    """
    was, now = parse(before, language), parse(after, language)
    if was is None or now is None or now.root.has_error:
        return False
    old, new = _File(was), _File(now)
    felt = old.words_from(names)
    kept = felt & (old.defined.keys() | new.defined.keys())
    if kept.isdisjoint(old.defined) or old.defining(kept) != new.defining(kept):
        return False
    if not _are_imports_extended(old.imports, new.imports, felt):
        return False
    gone, come = old.without(new), new.without(old)
    if not all(
        one.node.type == "future_import_statement" or old.defines(one) or old.imports_some(one)
        for one in gone
    ):
        return False
    plain = PlainCode(
        now, new.defined, felt, kept, new.fixed(new.defined), new.imports, old.imports, uses_in(was)
    )  # fmt: skip
    calls_methods = old.calls_methods(kept)
    return not new.touches(come, kept) and all(
        one.node.type == "future_import_statement"
        or new.imports_some(one)
        or (
            new.defines(one)
            and plain.is_plain(one.node, one.body)
            and not (calls_methods and any(map(_brings_methods, walk(one.node))))
        )
        for one in come
    )


def _are_imports_extended(
    old: Mapping[str, str], new: Mapping[str, str], felt: Collection[str]
) -> bool:
    """Whether nothing is imported from elsewhere than before, and nothing anew that is felt."""
    modules = [
        {origin.rpartition(" ")[0] or origin for origin in one.values()} for one in (old, new)
    ]
    return modules[0] == modules[1] and all(
        old.get(one) == new.get(one) for one in (*felt, "__builtins__")
    )


class _Unit(Struct, frozen=True):
    """A statement of a file or of a class in it; of the class itself only its head."""

    place: str
    """The classes around it."""
    text: str
    node: Node
    body: Node | None = None


class _File:
    """One version of the file."""

    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.units = list(_units(parsed))
        self.imports = imports_in(parsed)
        self.defined: dict[str, list[Node]] = {}
        for function in functions_of(parsed):
            self.defined.setdefault(function.name.rpartition(".")[2], []).append(function.node)
        for name, node in definitions_in(parsed):
            self.defined.setdefault(name, []).append(node)
        self._definitions = {one.id for nodes in self.defined.values() for one in nodes}

    def without(self, other: _File) -> list[_Unit]:
        """Return the statements that the other version does not have."""
        left = Counter((one.place, one.text) for one in other.units)
        found = []
        for one in self.units:
            left[one.place, one.text] -= 1
            if left[one.place, one.text] < 0:
                found.append(one)
        return found

    def words_from(self, names: Collection[str]) -> set[str]:
        """Return the words of these functions, and of all in the file that these words lead to."""
        found, todo = set(names), list(names)
        while todo:
            for node in self.defined.get(todo.pop(), ()):
                new = set(WORD.findall(normal(self.parsed, node))) - found
                found |= new
                todo += new
        return found

    def defining(self, kept: Collection[str]) -> list[str]:
        """Return the statements that define some of these names, in their order."""
        nodes = [node for name in kept for node in self.defined.get(name, ())]
        return [one.text for one in self.units if any(inside(one.node, node) for node in nodes)]

    def fixed(self, kept: Collection[str]) -> set[str]:
        """Those of the names that stand for a number, a text or the like."""
        values = {name: [_value(one) for one in self.defined.get(name, ())] for name in kept}
        return {
            name for name, found in values.items()
            if found and all(one is not None and is_literal(one) for one in found)
        }  # fmt: skip

    def touches(self, units: Collection[_Unit], kept: Collection[str]) -> bool:
        """Whether something that these statements lead to gives another value to what is kept.

        Or has hold of it, where it is a value that can be changed.
        """
        values = {
            name for name in kept
            if any(_value(one) is not None for one in self.defined.get(name, ()))
        } - self.fixed(kept)  # fmt: skip
        reached = self.words_from({word for one in units for word in WORD.findall(one.text)})
        return any(
            (one.type in NAMES and self.parsed.text(one) in values)
            or any(self.parsed.text(target) in kept for target in written(one))
            for name in reached.difference(kept)
            for node in self.defined.get(name, ())
            for one in walk(node)
        )

    def calls_methods(self, kept: Collection[str]) -> bool:
        """Whether in Go functions may hand values that have methods to code elsewhere.

        It may call methods like `Error` or `MarshalJSON` of them without naming them.
        """
        nodes = [one for name in kept for node in self.defined.get(name, ()) for one in walk(node)]
        called = {
            self.parsed.text(field(one, "function") or one)
            for one in nodes
            if one.type == "call_expression"
        }
        types = [one for one in nodes if one.type in ("type_identifier", "interface_type")]
        return (
            self.parsed.language == "go"
            and any(one not in self.defined and not BARE.fullmatch(one) for one in called)
            and any(not BARE.fullmatch(self.parsed.text(one)) for one in types)
        )

    def imports_some(self, unit: _Unit) -> bool:
        """Whether a statement imports certain names."""
        node = unit.node
        if "import" in node.type or node.type == "use_declaration":
            return "*" not in unit.text and not names_at(self.parsed, node).isdisjoint(self.imports)
        return bool(node.named_children) and all(
            one.type == "variable_declarator" and required(self.parsed, one)
            for one in node.named_children
        )

    def defines(self, unit: _Unit) -> bool:
        """Whether a statement is a definition, or declares some."""
        if unit.body is not None:
            return field(_inner(unit.node), "trait") is None
        return self._declares(unit.node)

    def _declares(self, node: Node) -> bool:
        if node.id in self._definitions or node.type.endswith("field_definition"):
            return True
        parts = [
            one for one in node.named_children
            if one.id in self._definitions or not (is_comment(one) or BESIDES.fullmatch(one.type))
        ]  # fmt: skip
        return bool(HOLDS.fullmatch(node.type) and parts) and all(map(self._declares, parts))


def _units(parsed: Parsed) -> Iterator[_Unit]:
    todo = [(one, "") for one in reversed(parsed.root.named_children)]
    while todo:
        node, place = todo.pop()
        body = field(_inner(node), "body") if _inner(node).type in CLASSES else None
        text = normal(parsed, node, frozenset({body.id} if body is not None else ()))
        if text not in ("", "pass"):
            yield _Unit(place, text, node, body)
        inner = body.named_children if body is not None else []
        todo += [(one, f"{place}\n{text}") for one in reversed(inner)]


def _inner(node: Node) -> Node:
    """The definition in a statement that exports or decorates it."""
    return field(node, "definition") or field(node, "declaration") or node


def _brings_methods(node: Node) -> bool:
    """Whether in Go a type gets a method, or all those of a type that it embeds."""
    embeds = node.type == "field_declaration" and field(node, "name") is None
    return embeds or node.type == "method_declaration"


def _value(node: Node) -> Node | None:
    """What a definition gives to a name, unless it is a function."""
    value = field(node, "value") or field(node, "right")
    if value is not None and value.type == "expression_list" and value.named_child_count == 1:
        value = value.named_children[0]
    return None if value is None or value.type in NESTED else value
