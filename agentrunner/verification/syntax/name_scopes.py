"""What the names of a source stand for: the program's own, or what is outside of it; and which of
them other code can reach. Pure.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec import field as dataclass_field
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.functions import functions_of
from agentrunner.verification.syntax.languages import (
    Parsed,
    enclosing,
    field,
    is_comment,
    parse,
    walk,
)

HANDED = ("parameters", "parameter", "receiver")
LOOP = lazy_regex(r"while|range_clause|for_|do_statement|loop")
NAMES = frozenset(
    "identifier type_identifier shorthand_property_identifier"
    " shorthand_property_identifier_pattern".split()
)
OBJECTS = frozenset({"self", "this", "super", "crate"})
"""Nodes that stand for what is the program's own."""
MEMBERS = ("attribute", "property", "field", "name")
"""Fields that hold the name of a member, beside one that holds what it is a member of."""
OWNERS = ("object", "operand", "value", "argument", "path", "scope")
BINDS = ("left", "name", "pattern", "alias", "declarator", "parameters", "parameter")
GO_NAMES = frozenset("len cap true false nil string int byte rune".split())
"""Names of Go that no import brings; others are those of another file of the package."""
PYTHON_NAMES = frozenset((*dir(builtins), "__file__", "__path__"))
OWN_FILE = lazy_regex(r"\bfrom\s+\.|['\"]\.{1,2}/|\bcrate::|\bsuper::")
"""How a file of the project is imported, in any of the languages."""
PACKAGE = lazy_regex(r"(?<!\w)(\w++)[\"']")
"""The name by which Go knows what it imports."""
ARGUMENTS = lazy_regex(
    r"(?:sys\.argv|os\.Args|ARGV)\b(?!\[0\])|process\.argv\b(?!\[[01]\])"
    r"|(?:std::)?env::args(?:_os)?\(\)\.(?:skip\([1-9]|nth\([1-9]|collect|len)"
)
"""What a program is handed on its command line, which does not count where it was started."""
DEEPEST = 12
"""So many variables and functions are followed, one to the next."""


class NameScope(Struct):
    """What the names of a source stand for."""

    parsed: Parsed
    assigned: dict[str, list[Node]] = dataclass_field(default_factory=dict)
    """The values that a name is given."""
    functions: dict[str, list[Node]] = dataclass_field(default_factory=dict)
    """Bodies of the file's own functions."""
    imported: set[str] = dataclass_field(default_factory=set)
    own: set[str] = dataclass_field(default_factory=set)
    """Names of what varies, or is the project's own."""
    filled: set[str] = dataclass_field(default_factory=set)
    """Names in calls that stand alone: `found.append(one)` fills what it names."""
    known: dict[str, bool] = dataclass_field(default_factory=dict)
    """Whether what is behind a name is outside of the project, once it was looked up."""

    @classmethod
    def of(cls, parsed: Parsed, own_modules: Collection[str]) -> NameScope:
        """Return the scope of a source; `own_modules` are the names of the project's modules."""
        scope = cls(parsed)
        for function in functions_of(parsed):
            scope.functions.setdefault(function.name.rpartition(".")[2], []).append(function.body)
        for node in walk(parsed.root):
            scope._note(node, own_modules)
        return scope

    def values_behind(self, condition: Node) -> list[Node] | None:
        """What is behind the names of a condition, where all of it is outside of the project."""
        behind: list[Node] = []
        roots = list(self._roots(condition))
        if not roots or not all(self._is_outside(one, frozenset(), behind) for one in roots):
            return None
        return behind

    def _note(self, node: Node, own_modules: Collection[str]) -> None:
        if "import" in node.type or node.type == "use_declaration":
            if any(
                one.type.startswith("import_spec") and one.type != "import_specifier"
                for one in node.named_children
            ):
                return  # each of Go's imports comes by itself
            names = {*self._names(node), *PACKAGE.findall(self.parsed.text(node))}
            self.imported |= names
            if self._is_own_import(node, own_modules):
                self.own |= names
            return
        if node.type in ("inc_statement", "dec_statement", "update_expression"):
            self.own |= set(self._names(node))
            return
        if node.type == "for_in_clause":  # of a comprehension, which ends where the condition does
            for name in self._names(field(node, "left") or node):
                self.assigned.setdefault(name, []).append(field(node, "right") or node)
            return
        if LOOP.search(node.type) or "class" in node.type:
            for part in ("left", "name", "pattern"):
                if (target := field(node, part)) is not None:
                    self.own |= set(self._names(target))
            return
        if node.type == "expression_statement" and node.named_children:
            inner = node.named_children[0]
            if "call" in inner.type or "invocation" in inner.type:
                self.filled |= set(self._names(inner))
                return
        target = next((one for part in BINDS if (one := field(node, part))), None)
        value = field(node, "right") or field(node, "value")
        if target is None or _is_access(node) or node.type == "binary_expression":
            return
        if value is None or "augmented" in node.type or "compound" in node.type:
            if field(node, "body") is None:
                self.own |= set(self._names(target)) - self.functions.keys()
        elif OWN_FILE.search(self.parsed.text(value)):
            self.own |= set(self._names(target))
        elif target.type in NAMES or "list" in target.type or "pattern" in target.type:
            for name in self._names(target):
                self.assigned.setdefault(name, []).append(value)
        elif not _is_keyword(node):
            self.own |= set(self._names(target))  # a part of it is given another value

    def _is_own_import(self, node: Node, own_modules: Collection[str]) -> bool:
        text = self.parsed.text(node)
        if OWN_FILE.search(text):
            return True
        return not set(re.findall(r"\w+", text)).isdisjoint(own_modules)

    def _names(self, node: Node) -> Iterator[str]:
        return (self.parsed.text(one) for one in walk(node) if one.type in NAMES)

    def _roots(self, node: Node) -> Iterator[Node]:
        """The names that an expression begins with: of `a.b(c)` those are `a` and `c`."""
        for one in walk(node, lambda inner: not is_comment(inner)):
            above = one.parent
            if above is not None and _is_keyword(above) and above.named_children[0] == one:
                continue
            if one.type in OBJECTS or (one.type in NAMES and not is_member(one)):
                yield one

    def _is_outside(self, root: Node, seen: frozenset[str], behind: list[Node]) -> bool:
        name = self.parsed.text(root)
        handed = self._handed_to(root)
        if root.type in OBJECTS or name in ("self", "cls", *self.own, *handed):
            return False
        text = self.parsed.source[root.start_byte :][:40].decode("utf-8", "replace")
        # What a function is asked may come by its parameters.
        if ARGUMENTS.match(text) and handed <= {"argv", "args", "arguments"}:
            return False
        if name in seen:
            return True
        values = self.assigned.get(name, []) + self.functions.get(name, [])
        behind += values
        if name not in self.known:
            self.known[name] = len(seen) < DEEPEST and (
                self._are_outside(values, seen | {name}, behind)
                if values
                else name in self.imported or self._is_known_everywhere(name)
            )
        return self.known[name] and not (name in self.filled and name in self.assigned)

    def _are_outside(
        self, values: Collection[Node], seen: frozenset[str], behind: list[Node]
    ) -> bool:
        for value in values:
            roots = list(self._roots(value))
            if not roots or not all(self._is_outside(one, seen, behind) for one in roots):
                return False
        return True

    def _is_known_everywhere(self, name: str) -> bool:
        """Whether a name that nothing here gives is the language's own, not that of a sibling."""
        known = {"go": GO_NAMES, "python": PYTHON_NAMES}.get(self.parsed.language)
        if known is not None:
            return name in known
        return self.parsed.language != "java" or name[:1].isupper()

    def _handed_to(self, node: Node) -> set[str]:
        """The parameters of all functions around a node."""
        functions = (one for one in enclosing(node) if field(one, "body") is not None)
        handed = (field(one, part) for one in functions for part in HANDED)
        return {name for one in handed if one is not None for name in self._names(one)}


def _is_keyword(node: Node) -> bool:
    return node.type == "keyword_argument"


def is_member(node: Node) -> bool:
    """Whether a name is that of a member of something else."""
    parent = node.parent
    if parent is None or not any(field(parent, one) for one in OWNERS):
        return node.type in ("property_identifier", "field_identifier")
    return any(field(parent, one) == node for one in MEMBERS)


def _is_access(node: Node) -> bool:
    """Whether a node is `a.b`, `a::b` or a method that is called of something."""
    owned = [one for one in OWNERS if one != "value" and field(node, one) is not None]
    return bool(owned) or (field(node, "value") is not None and field(node, "field") is not None)


# Where names stand --------------------------------------------------------------------------------

_INNER = ("parameters", "parameter", "body")
"""Fields of a function that are its own affair."""


def is_outer_name(source: bytes, language: str, name: str) -> bool | None:
    """Whether a name stands outside of all parameters and bodies of functions.

    It may be declared, imported or used there: what is used has to exist. A text is no name. None
    for a source that cannot be read.
    """
    parsed = parse(source, language)
    if parsed is None:
        return None
    entered = walk(parsed.root, lambda node: not _is_inner(node))
    outer = (node for node in entered if not _is_inner(node))
    return any(_is_name(parsed, node, name) for node in outer)


def _is_name(parsed: Parsed, node: Node, name: str) -> bool:
    if node.children or is_comment(node) or "string" in node.type:
        return False
    return parsed.text(node) == name


def _is_inner(node: Node) -> bool:
    """Whether a node is the parameters or the body of a function."""
    parent = node.parent
    if parent is None or not any(field(parent, one) for one in _INNER[:2]):
        return False
    return any(field(parent, one) == node for one in _INNER)


def is_local_name(source: bytes, language: str, name: str) -> bool:
    """Whether a name stands in a source, and only as a variable within bodies of functions.

    A parameter is none, as callers may name it, nor is an attribute.
    """
    parsed = parse(source, language)
    if parsed is None:
        return False
    found = [node for node in walk(parsed.root) if _is_name(parsed, node, name)]
    return bool(found) and all(_is_local(node) for node in found)


def _is_local(node: Node) -> bool:
    parent = node.parent
    named = (field(parent, "attribute"), field(parent, "name"))
    if node.type != "identifier" or (parent is not None and node in named[:1]):
        return False
    if parent is not None and parent.type == "keyword_argument" and named[1] == node:
        return False
    inner = next((one for one in (node, *enclosing(node)) if _is_inner(one)), None)
    return inner is not None and field(inner.parent, "body") == inner
