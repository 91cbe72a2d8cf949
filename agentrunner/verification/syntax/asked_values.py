"""The values a test passes to the code under test: values from elsewhere, and rows it loops over.

A test may compare with a constant of the product, or loop over rows that the product holds or reads
for it, or over its answers, each beside what the test expects. Python, JavaScript and TypeScript.
Pure.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.context import imports_in
from agentrunner.verification.syntax.edits import line_of
from agentrunner.verification.syntax.languages import (
    WITH_TREES,
    arguments_of,
    call_around,
    enclosing,
    field,
    inside,
    walk,
    without_brackets,
)
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.syntax.values import assignment, is_literal

MOST = 40
"""The most statements of one test."""
DEEP = 4
"""How many assignments are followed from one variable to the next."""
LOOPS = ("for_statement", "for_in_statement")
COUNTING = ("for_statement", "while_statement")
FUNCTIONS = ("arrow_function", "function_expression", "lambda")
CALLS = ("call", "call_expression", "new_expression")
MEMBERS = ("attribute", "member_expression")
SUBSCRIPTS = ("subscript", "subscript_expression")
IDS = ("identifier", "shorthand_property_identifier_pattern")
PATTERNS = ("pattern_list", "tuple_pattern", "list_pattern", "array_pattern")
"""Targets that take several values apart."""
ROWS_OF_VALUES = ("expression_list", "tuple", "list", "array")
FOR_IN = "for_in_clause"
"""The loop inside a comprehension."""
OVER_ROWS = frozenset({"forEach", "map", "every", "some", "filter", "flatMap"})
EQUALS = ("==", "===", "is")
DIFFERS = ("!=", "!==", "is not")
WAITS = lazy_regex(r"\b(?:await|yield)\b|:=")
PLAIN = frozenset(
    "len str int float sum min max round sorted list tuple set dict abs String Number".split()
)
"""Functions that only convert a value or put it in another form."""
OWN = frozenset(dir(builtins)) | frozenset(
    "String Number Math JSON Object Array Boolean Date assert expect console require".split()
)
"""Functions that cannot be the code a test is about."""


@dataclass(frozen=True)
class AskedCall:
    """A statement that runs code with values that are not written in the statement itself."""

    where: Node
    """The node to wrap in a function: an assertion's condition, a call, or an assigned value."""
    condition: bool
    """Whether it reports a failure by being false."""
    values: tuple[str, ...]
    """Expressions for these values; empty if they come from a loop only."""
    names: frozenset[str]
    """The names by which the values come from elsewhere."""
    is_reversed: bool = False
    """Whether it reports a failure by being true: `got != want`."""

    @property
    def line(self) -> int:
        """The line of the statement, counted from 1."""
        return line_of(self.where)


def asked_calls(found: Found) -> list[AskedCall]:
    """Return the statements of a test that run code with values from elsewhere, in source order."""
    if found.parsed.language not in WITH_TREES:
        return []
    found_calls = list(_Reading(found).asked_calls())
    found_calls.sort(key=lambda call: (call.where.start_byte, -call.where.end_byte))
    kept: list[AskedCall] = []
    for call in found_calls:
        if not kept or not inside(kept[-1].where, call.where):
            kept.append(call)
    return kept[:MOST]


class _Loop(Struct, frozen=True):
    """A loop over rows: the target that each row is assigned to, the rows, and the body."""

    target: Node
    rows: Node
    body: Node


def is_near(origin: str, language: str) -> bool:
    """Whether an import may come from the project itself."""
    if language == "python":  # `.calc add` of `from .calc import add`
        top = re.split(r"[. ]", origin, maxsplit=1)[0]
        return not top or top not in (*sys.stdlib_module_names, "pytest")
    return bool(re.match(r"(?:require\([\"'])?(?:\.|@/|~/|#)", origin))


class _Reading:
    """Reads one test for the values it runs code with."""

    def __init__(self, found: Found) -> None:
        self.parsed = parsed = found.parsed
        self.found = found
        imported = imports_in(parsed)
        self.imported = {
            name: origin for name, origin in imported.items() if is_near(origin, parsed.language)
        }
        self.foreign = imported.keys() - self.imported.keys()
        self.given: dict[str, list[Node]] = {}
        """By name: the values assigned to it in the test or at the top of the file."""
        for node in (*walk(found.body), *walk(parsed.root, _is_top)):
            if (bound := assignment(node)) is not None:
                for target, value in _each_bound(*bound):
                    self.given.setdefault(parsed.text(target), []).append(value)
        loops = [loop for node in walk(found.body) for loop in self._loops_at(node)]
        self.row_names = {name for loop in loops for name in self._bound(loop.target)}

    def asked_calls(self) -> Iterator[AskedCall]:
        """Yield assertions, calls and assigned values that run code with values from elsewhere."""
        for stated in asserts_of(self.found):
            node, condition = stated.node, False
            if node.type == "assert_statement":
                node, condition = node.named_children[0], True
            if condition or node.type in CALLS:
                wanted = [
                    one for one in stated.expected if self._is_plain(one) and self._names(one)
                ]
                # The first that is found of a statement counts: what the test itself expects.
                yield from self._asking_of_answers(node, stated.expected, condition=condition)
                yield from self._asking(node, stated.operands, wanted, condition=condition)
        for node in walk(self.found.body):
            bound = assignment(node)
            if bound is not None and bound[1].type not in FUNCTIONS:
                yield from self._asking(bound[1], bound[1:], ())
            elif node.type in CALLS and node.parent and node.parent.type == "expression_statement":
                yield from self._asking(node, (node,), ())
            elif (each := self._each(node)) is not None:
                sides = self._compared(each)
                yield from self._asking_of_answers(each, sides, condition=True, where_all=True)
                yield from self._asking(each, (each,), (), condition=True)
            elif differs := self._compared(node, DIFFERS):
                found = self._asking_of_answers(node, differs, condition=True)
                yield from (replace(one, is_reversed=True) for one in found)

    def _asking(
        self,
        where: Node,
        operands: Sequence[Node],
        wanted: Sequence[Node],
        *,
        condition: bool = False,
    ) -> Iterator[AskedCall]:
        """Yield a statement if it runs code and some of its values come from elsewhere."""
        if WAITS.search(self.parsed.text(where)) or not any(map(self._asks_code, operands)):
            return
        values = [self.parsed.text(one) for one in wanted]
        names = {name for one in wanted for name in self._names(one)}
        loops = list(self._loops_around(where))
        for loop in loops:
            values += self._of_row(loop)
            names |= self._names(loop.rows)
        if names or not all(self._is_stated(loop.rows) for loop in loops):
            yield AskedCall(where, condition, tuple(dict.fromkeys(values)), frozenset(names))

    def _asking_of_answers(
        self, where: Node, sides: Sequence[Node], *, condition: bool, where_all: bool = False
    ) -> Iterator[AskedCall]:
        """Yield a statement that compares answers that it loops over with values of the test.

        Where the code gives fewer answers, some of these values are not asked with any more. With
        `where_all`, it counts also without such values: it is to be asked of one answer at least.
        """
        if WAITS.search(self.parsed.text(where)):
            return
        loops = [*self._loops_around(where), *self._counting_around(where)]
        answers = {name for loop in loops for name in self._answers(loop.target, loop.rows)}
        names = [self._taken(one) for one in sides]
        wanted = [
            self.parsed.text(one)
            for one, used in zip(sides, names, strict=True)
            if used and answers.isdisjoint(used) and self._is_plain(one)
            and not self._asks_code(one)
        ]  # fmt: skip
        if wanted and not all(answers.isdisjoint(self._bound(one)) for one in sides):
            yield AskedCall(where, condition, tuple(dict.fromkeys(wanted)), frozenset())
        elif where_all and not answers.isdisjoint(self._bound(where)):
            yield AskedCall(where, condition, (), frozenset())  # `all(…)` of nothing is true

    def _compared(self, node: Node, signs: Sequence[str] = EQUALS) -> list[Node]:
        """Return the sides of a comparison with one of these signs."""
        node = without_brackets(node)
        equal = any(one.type in signs for one in node.children)
        return node.named_children if equal and node.named_child_count == 2 else []

    # -- loops --------------------------------------------------------------------------------

    def _loops_around(self, node: Node) -> Iterator[_Loop]:
        for at in (node, *enclosing(node)):
            if at == self.found.body:
                return
            for loop in self._loops_at(at):
                if inside(loop.body, node):
                    yield loop

    def _counting_around(self, node: Node) -> Iterator[_Loop]:
        """Yield loops around a node that go on as long as a condition holds, as their rows."""
        for at in enclosing(node):
            if at == self.found.body:
                return
            condition, body = field(at, "condition"), field(at, "body")
            if at.type not in COUNTING or condition is None or body is None:
                continue
            if inside(body, node):
                yield _Loop(field(at, "initializer") or condition, condition, body)

    def _loops_at(self, node: Node) -> Iterator[_Loop]:
        body = field(node, "body")
        if node.type in LOOPS:
            target, rows = field(node, "left"), field(node, "right")
            if target is not None and rows is not None and body is not None:
                yield _Loop(target, rows, body)
        elif node.type.endswith(("comprehension", "generator_expression")) and body is not None:
            for clause in node.named_children:
                target, rows = field(clause, "left"), field(clause, "right")
                if clause.type == FOR_IN and target is not None and rows is not None:
                    conditions = [one for one in node.named_children if one.type == "if_clause"]
                    yield from (_Loop(target, rows, part) for part in (body, *conditions))
        elif node.type in FUNCTIONS and body is not None:
            target = field(node, "parameters") or field(node, "parameter")
            callee = field(call_around(node), "function")
            rows, through = field(callee, "object"), self.parsed.text(callee, "property")
            if target is not None and rows is not None and through in OVER_ROWS:
                yield _Loop(target, rows, body)

    def _answers(self, target: Node, rows: Node) -> Iterator[str]:
        """Yield the names that a loop gives answers of the code, and no positions or keys."""
        if target.type == "formal_parameters":  # `(row, index) => …`
            for first in target.named_children[:1]:
                yield from self._answers(field(first, "pattern") or first, rows)
            return
        given_once = self.given.get(self.parsed.text(rows), ())
        if len(given_once) == 1 and given_once[0] != rows:  # `pairs = zip(…)`
            rows = given_once[0]
        parts = target.named_children if target.type in PATTERNS else [target]
        through = field(rows, "function")
        member = field(through, "attribute") or field(through, "property")
        name = self.parsed.text(member or through)
        given = [one for one in arguments_of(rows) if one.type != "keyword_argument"]
        if name == "zip" and len(given) == len(parts):
            for part, inner in zip(parts, given, strict=True):
                yield from self._answers(part, inner)
        elif name == "enumerate" and len(parts) == 2 and given:
            yield from self._answers(parts[1], given[0])
        elif self._asks_code(rows):
            is_keyed = name in ("items", "entries") and len(parts) == 2
            yield from self._bound(parts[1] if is_keyed else target)

    def _each(self, node: Node) -> Node | None:
        """Return what `all(… for row in rows)` and `rows.every((row) => …)` check for each row."""
        body = field(node, "body")
        call = node.parent if node.type == "generator_expression" else None
        if node.type == "list_comprehension":
            call = call_around(node)  # `all([…])`
        if self.parsed.text(field(call, "function") or call) == "all":
            return body
        if node.type == "arrow_function" and body is not None and body.type != "statement_block":
            name = self.parsed.text(call_around(node), "function", "property")
            return body if name == "every" else None
        return None

    def _of_row(self, loop: _Loop) -> list[str]:
        """Return the row and what its loop uses of it: `row`, `row["want"]`, `row.want`."""
        names = self._bound(loop.target)
        values = [*names]
        for node in walk(loop.body):
            base = field(node, "object") or field(node, "value")
            if base is None or base.type != "identifier" or self.parsed.text(base) not in names:
                continue
            called = node.parent is not None and field(node.parent, "function") == node
            key = field(node, "subscript") or field(node, "index")
            is_item = node.type in SUBSCRIPTS and key is not None and is_literal(key)
            is_member = node.type in MEMBERS and not called and not self._asks_code(loop.rows)
            if is_item or is_member:
                values.append(self.parsed.text(node))
        return values

    def _bound(self, target: Node) -> list[str]:
        """Return the names that a target or parameters bind, or that a value consists of."""
        return [self.parsed.text(one) for one in walk(target) if one.type in IDS]

    def _taken(self, value: Node) -> set[str]:
        """Return the names that a value consists of, those of indexes left out."""
        parts = (one for one in walk(value, _is_no_index) if _is_no_index(one))
        return {self.parsed.text(one) for one in parts if one.type in IDS}

    # -- where a value comes from ---------------------------------------------------------------

    def _asks_code(self, node: Node, depth: int = 0) -> bool:
        """Whether an expression, or a value of one of its variables, calls the project's code."""
        for one in walk(node):
            if one.type in CALLS:
                root = root_of(field(one, "function") or field(one, "constructor") or one)
                name = self.parsed.text(root)
                named = root.type in ("identifier", "this")
                if named and name not in OWN and name not in self.foreign | self.row_names:
                    return True
            elif one.type == "identifier" and depth < DEEP:
                given = self.given.get(self.parsed.text(one), ())
                if any(self._asks_code(value, depth + 1) for value in given):
                    return True
        return False

    def _is_stated(self, rows: Node) -> bool:
        """Whether the rows are written out in the file itself."""
        given = self.given.get(self.parsed.text(rows), [rows])
        return all(not self._asks_code(one) and one.type not in MEMBERS for one in given) and all(
            self.parsed.text(one) in OWN
            for value in given
            for one in walk(value)
            if one.type == "identifier"
        )

    def _is_plain(self, node: Node, depth: int = 0) -> bool:
        """Whether an expression only combines values that are written or stored somewhere."""
        if node.type == "identifier":
            name = self.parsed.text(node)
            given = self.given.get(name, [])
            if name in self.row_names or name in self.imported:
                return True
            return len(given) == 1 and depth < DEEP and self._is_plain(given[0], depth + 1)
        if node.type in MEMBERS:
            base = field(node, "object")
            return base is not None and self._is_plain(base, depth)
        if node.type in CALLS:
            given_to = field(node, "arguments")
            plain = self.parsed.text(node, "function") in PLAIN
            return plain and given_to is not None and self._is_plain(given_to, depth)
        if node.type in ("this", "self") or node.type.endswith(
            ("comprehension", "generator_expression", "function", "lambda", "function_expression")
        ):
            return False
        return all(self._is_plain(one, depth) for one in node.named_children)

    def _names(self, node: Node, depth: int = 0) -> set[str]:
        """Return the names that an expression uses from other files; of `shop.NAMES`, `NAMES`."""
        found: set[str] = set()
        for one in walk(node):
            if one.type != "identifier":
                continue
            name = self.parsed.text(one)
            if name in self.imported:
                member = field(one.parent, "attribute") or field(one.parent, "property")
                if member is None or member == one:
                    found.add(re.split(r"[\s./]", self.imported[name])[-1])
                else:
                    found.add(self.parsed.text(member))
            elif depth < DEEP:
                for value in self.given.get(name, ()):
                    found |= self._names(value, depth + 1)
        return found


def _is_top(node: Node) -> bool:
    """Whether what is below a node belongs to the top level of the file."""
    return not node.type.endswith(("function_definition", "class_definition", "function"))


def _each_bound(target: Node, value: Node) -> Iterator[tuple[Node, Node]]:
    """Yield each target with its value; with the whole value where that is not written apart."""
    if target.type not in PATTERNS:
        yield target, value
        return
    values = value.named_children if value.type in ROWS_OF_VALUES else []
    for at, one in enumerate(target.named_children):
        apart = len(values) == len(target.named_children)
        yield from _each_bound(one, values[at] if apart else value)


def _is_no_index(node: Node) -> bool:
    """Whether a node is anything but the place at which a value is taken out of another."""
    index = field(node.parent, "subscript") or field(node.parent, "index")
    return index != node


def root_of(node: Node) -> Node:
    """Return the first name of a chain of members and calls."""
    while True:
        inner = field(node, "object") or field(node, "value") or field(node, "function")
        if inner is None:
            return node
        node = inner
