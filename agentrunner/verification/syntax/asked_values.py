"""What a test asks code with: values from elsewhere, and rows that it runs through.

A test may compare with a constant of the product, or run through rows that the product keeps or
reads for it. Each statement that does so is worded twice: so that it tells its values where it
fails, and so that it fails as soon as it asks with these values again. Python, JavaScript and
TypeScript. Pure.
"""

from __future__ import annotations

import builtins
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.context import imports_in
from agentrunner.verification.syntax.edits import Edit, line_of, replaced
from agentrunner.verification.syntax.find import located
from agentrunner.verification.syntax.found import Found, TestSpan
from agentrunner.verification.syntax.languages import SCRIPTS, Parsed, field, inside, parse, walk
from agentrunner.verification.syntax.values import is_literal

MARK = "agentrunner saw "
MOST = 40
"""Statements of one test."""
DEEP = 4
"""How many variables lead from one to the next."""
LOOPS = ("for_statement", "for_in_statement")
FUNCTIONS = ("arrow_function", "function_expression", "lambda")
CALLS = ("call", "call_expression", "new_expression")
MEMBERS = ("attribute", "member_expression")
SUBSCRIPTS = ("subscript", "subscript_expression")
FOR_IN = "for_in_clause"
"""The loop inside of a comprehension."""
OVER_ROWS = frozenset({"forEach", "map", "every", "some", "filter", "flatMap"})
BOUND = ("assignment", "variable_declarator", "assignment_expression")
WAITS = re.compile(r"\b(?:await|yield)\b|:=")
PLAIN = frozenset(
    "len str int float sum min max round sorted list tuple set dict abs String Number".split()
)
"""Functions that only word a value anew."""
OWN = frozenset(dir(builtins)) | frozenset(
    "String Number Math JSON Object Array Boolean Date assert expect console require".split()
)
"""Functions that are no code which a test could be about."""
PYTHON = """

def {name}(number, asks, values):
    plain = (str, int, float, bool)
    try:
        told = [one if isinstance(one, plain) and len(str(one)) < 200 else None for one in values()]
        told = "{mark}%d %s" % (number, __import__("json").dumps(told))
    except Exception:
        return asks()
    try:
        good = asks()
    except BaseException:
        raise AssertionError(told) from None
    if good is False:
        raise AssertionError(told)
    return good


def {name}_again(was, asks, values):
    try:
        now = values()
        same = all(w is None or n == w or str(n) == str(w) for n, w in zip(now, was))
    except Exception:
        same = False
    if same:
        raise AssertionError("asked again")
    return asks()
"""
SCRIPT = """

function {name}(number{any}, asks{any}, values{any}){any} {{
  const plain = (one{any}) => ["string", "number", "boolean"].includes(typeof one);
  let told = "";
  try {{
    const all = values().map((one{any}) => (plain(one) && String(one).length < 200 ? one : null));
    told = "{mark}" + number + " " + JSON.stringify(all);
  }} catch (_) {{
    return asks();
  }}
  try {{
    return asks();
  }} catch (_) {{
    throw new Error(told);
  }}
}}

function {name}_again(was{any}, asks{any}, values{any}){any} {{
  let same = false;
  try {{
    const now = values();
    const is = (w{any}, one{any}) => w === null || one === w || String(one) === String(w);
    same = was.every((w{any}, at{any}) => is(w, now[at]));
  }} catch (_) {{
    same = false;
  }}
  if (same) throw new Error("asked again");
  return asks();
}}
"""


@dataclass(frozen=True)
class Asking:
    """A statement that asks code with values that do not stand in it."""

    where: Node
    """What is put into a function: the condition of an assertion, a call, the value of a name."""
    condition: bool
    """Whether it says no by being false."""
    values: tuple[str, ...]
    """Expressions of these values; none where only a loop leads there."""
    names: frozenset[str]
    """Names by which they come from elsewhere."""

    @property
    def line(self) -> int:
        """Where it stands, counted from 1."""
        return line_of(self.where)


def askings(source: bytes, language: str, span: TestSpan) -> list[Asking]:
    """The statements of a test that ask code with values from elsewhere, in its order."""
    if language != "python" and language not in SCRIPTS:
        return []
    parsed = parse(source, language)
    found = located(parsed, span) if parsed is not None else None
    if parsed is None or found is None:
        return []
    made = list(_Reading(parsed, found).askings())
    made.sort(key=lambda one: (one.where.start_byte, -one.where.end_byte))
    kept: list[Asking] = []
    for one in made:
        if not kept or not inside(kept[-1].where, one.where):
            kept.append(one)
    return kept[:MOST]


def telling(one: Asking, language: str, number: int, name: str) -> Edit:
    """What makes it tell its values where it fails; `name` is that of the `helper`."""
    return _wrapped(one, language, f"{name}({number}")


def asking_again(one: Asking, language: str, values: Sequence[object], name: str) -> Edit:
    """What makes it fail as soon as it asks with these values; None stands for any."""
    was = repr(list(values)) if language == "python" else json.dumps(list(values))
    return _wrapped(one, language, f"{name}_again({was}")


def helper(language: str, name: str) -> str:
    """The function that statements are put into, to stand at the end of the file."""
    if language == "python":
        return PYTHON.format(name=name, mark=MARK)
    return SCRIPT.format(name=name, mark=MARK, any=": any" if language.startswith("t") else "")


def values_in(message: str) -> dict[int, tuple[object, ...]]:
    """By number: the values that statements told in the message of a failure."""
    found = {}
    for hit in re.finditer(rf"{MARK}(\d+) (?=\[)", message):
        try:
            found[int(hit[1])] = tuple(json.JSONDecoder().raw_decode(message, hit.end())[0])
        except ValueError:
            continue
    return found


def _wrapped(one: Asking, language: str, call: str) -> Edit:
    text = (one.where.text or b"").decode("utf-8", "replace")
    values = ", ".join(one.values)
    if language == "python":
        asks = f"bool({text})" if one.condition else f"({text})"
        return replaced(one.where, f"{call}, lambda: {asks}, lambda: [{values}])")
    return replaced(one.where, f"{call}, () => ({text}), () => [{values}])")


@dataclass(frozen=True)
class _Loop:
    """What runs through rows: the target that each is given to, the rows, and what it does."""

    target: Node
    rows: Node
    body: Node


class _Reading:
    """One test, read for what it asks with."""

    def __init__(self, parsed: Parsed, found: Found) -> None:
        self.parsed = parsed
        self.found = found
        imported = imports_in(parsed)
        self.imported = {name: origin for name, origin in imported.items() if self._is_near(origin)}
        self.foreign = imported.keys() - self.imported.keys()
        self.given: dict[str, list[Node]] = {}
        """By name: what it is given, in the test or at the top of the file."""
        for node in (*walk(found.body), *walk(parsed.root, _is_top)):
            left = field(node, "left") or field(node, "name")
            right = field(node, "right") or field(node, "value")
            if node.type in BOUND and left is not None and right is not None:
                self.given.setdefault(parsed.text(left), []).append(right)
        loops = [loop for node in walk(found.body) for loop in self._loops_at(node)]
        self.row_names = {name for loop in loops for name in self._bound(loop.target)}

    def _is_near(self, origin: str) -> bool:
        """Whether what is imported may be the project's own."""
        if self.parsed.language == "python":
            return origin.split(".")[0].split()[0] not in (*sys.stdlib_module_names, "pytest")
        return bool(re.match(r"(?:require\([\"'])?(?:\.|@/|~/|#)", origin))

    def askings(self) -> Iterator[Asking]:
        """Assertions, calls and what names are given, where code is asked with such values."""
        for stated in asserts_of(self.parsed, self.found):
            node, condition = stated.node, False
            if node.type == "assert_statement":
                node, condition = node.named_children[0], True
            if condition or node.type in CALLS:
                wanted = [one for one in stated.expected if self._is_from_elsewhere(one)]
                yield from self._asking(node, stated.operands, wanted, condition=condition)
        for node in walk(self.found.body):
            value = field(node, "right") or field(node, "value")
            if node.type in BOUND and value is not None and value.type not in FUNCTIONS:
                yield from self._asking(value, (value,), ())
            elif node.type in CALLS and _is_statement(node):
                yield from self._asking(node, (node,), ())
            elif (each := self._each(node)) is not None:
                yield from self._asking(each, (each,), (), condition=True)

    def _asking(
        self,
        where: Node,
        operands: Sequence[Node],
        wanted: Sequence[Node],
        *,
        condition: bool = False,
    ) -> Iterator[Asking]:
        """A statement, where code is asked and something of it comes from elsewhere."""
        if WAITS.search(self.parsed.text(where)) or not any(map(self._asks_code, operands)):
            return
        values = [self.parsed.text(one) for one in wanted]
        names = {name for one in wanted for name in self._names(one)}
        loops = list(self._loops_around(where))
        for loop in loops:
            values += self._of_row(loop)
            names |= self._names(loop.rows)
        if names or not all(self._is_stated(loop.rows) for loop in loops):
            yield Asking(where, condition, tuple(dict.fromkeys(values)), frozenset(names))

    # -- loops --------------------------------------------------------------------------------

    def _loops_around(self, node: Node) -> Iterator[_Loop]:
        at: Node | None = node
        while at is not None and at != self.found.body:
            for loop in self._loops_at(at):
                if inside(loop.body, node):
                    yield loop
            at = at.parent

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
                    yield _Loop(target, rows, body)
        elif node.type in FUNCTIONS and body is not None:
            target = field(node, "parameters") or field(node, "parameter")
            call = node.parent.parent if node.parent is not None else None
            callee = field(call, "function")
            rows, name = field(callee, "object"), field(callee, "property")
            through = name is not None and self.parsed.text(name) in OVER_ROWS
            if target is not None and rows is not None and through:
                yield _Loop(target, rows, body)

    def _each(self, node: Node) -> Node | None:
        """What `all(… for row in rows)` and `rows.every((row) => …)` ask of each row."""
        body = field(node, "body")
        call = node.parent if node.type == "generator_expression" else None
        if call is not None and self.parsed.text(field(call, "function") or call) == "all":
            return body
        if node.type == "arrow_function" and body is not None and body.type != "statement_block":
            callee = field(node.parent.parent if node.parent is not None else None, "function")
            name = field(callee, "property")
            return body if name is not None and self.parsed.text(name) == "every" else None
        return None

    def _of_row(self, loop: _Loop) -> list[str]:
        """The row, and what of it its loop uses: `row`, `row["want"]`, `row.want`."""
        names = self._bound(loop.target)
        values = [*names]
        for node in walk(loop.body):
            base = field(node, "object") or field(node, "value")
            if base is None or base.type != "identifier" or self.parsed.text(base) not in names:
                continue
            called = node.parent is not None and field(node.parent, "function") == node
            key = field(node, "subscript") or field(node, "index")
            part = node.type in SUBSCRIPTS and key is not None and is_literal(key)
            member = node.type in MEMBERS and not called and not self._asks_code(loop.rows)
            if part or member:
                values.append(self.parsed.text(node))
        return values

    def _bound(self, target: Node) -> list[str]:
        """The names that a target or parameters bind."""
        ids = ("identifier", "shorthand_property_identifier_pattern")
        return [self.parsed.text(one) for one in walk(target) if one.type in ids]

    # -- where a value comes from ---------------------------------------------------------------

    def _asks_code(self, node: Node, depth: int = 0) -> bool:
        """Whether an expression, or what its variables are given, calls code of the project."""
        for one in walk(node):
            if one.type in CALLS:
                root = _root(field(one, "function") or field(one, "constructor") or one)
                name = self.parsed.text(root)
                named = root.type in ("identifier", "this")
                if named and name not in OWN and name not in self.foreign | self.row_names:
                    return True
            elif one.type == "identifier" and depth < DEEP:
                given = self.given.get(self.parsed.text(one), ())
                if any(self._asks_code(value, depth + 1) for value in given):
                    return True
        return False

    def _is_from_elsewhere(self, node: Node) -> bool:
        return self._is_plain(node) and bool(self._names(node))

    def _is_stated(self, rows: Node) -> bool:
        """Whether rows stand in the file itself."""
        given = self.given.get(self.parsed.text(rows), [rows])
        return all(not self._asks_code(one) and one.type not in MEMBERS for one in given) and all(
            self.parsed.text(one) in OWN
            for value in given
            for one in walk(value)
            if one.type == "identifier"
        )

    def _is_plain(self, node: Node, depth: int = 0) -> bool:
        """Whether an expression only puts together values that stand, or are kept, somewhere."""
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
            callee, given_to = field(node, "function"), field(node, "arguments")
            plain = callee is not None and self.parsed.text(callee) in PLAIN
            return plain and given_to is not None and self._is_plain(given_to, depth)
        if node.type in ("this", "self") or node.type.endswith(
            ("comprehension", "generator_expression", "function", "lambda", "function_expression")
        ):
            return False
        return all(self._is_plain(one, depth) for one in node.named_children)

    def _names(self, node: Node, depth: int = 0) -> set[str]:
        """By which names something comes from other files; of `shop.NAMES` the last one."""
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
    """Whether what stands below a node belongs to the file itself."""
    return not node.type.endswith(("function_definition", "class_definition", "function"))


def _is_statement(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"


def _root(node: Node) -> Node:
    """The first name of a chain of members and calls."""
    while True:
        inner = field(node, "object") or field(node, "value") or field(node, "function")
        if inner is None:
            return node
        node = inner
