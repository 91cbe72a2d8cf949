"""Assertions of equality that are made to fail as they failed once: with the very same two values.

An assertion is first made to report both of its values where it fails. Later its two sides are
replaced by these values, written out, so that it has to fail in the same way whatever the code
answers by then. Python, JavaScript and TypeScript. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from tree_sitter import Node

from agentrunner.verification.syntax.asked_again import values_in
from agentrunner.verification.syntax.asked_values import FUNCTIONS, OWN, WAITS, is_near, root_of
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.context import imports_in
from agentrunner.verification.syntax.edits import Edit, applied, line_of, replaced
from agentrunner.verification.syntax.languages import (
    WITH_TREES,
    arguments_of,
    call_around,
    enclosing,
    field,
    inside,
    walk,
)
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.syntax.values import is_literal

MARK = "agentrunner compared "
MOST = 40
"""The most assertions of one test."""
CALLS = ("call", "call_expression")
PYTHON = """


def {name}_side(sides, value):
    try:
        text = repr(value)
        back = __import__("ast").literal_eval(text)
        known = len(text) < 300 and back == value and repr(back) == text
    except Exception:
        known = False
    sides.append(text if known else None)
    return value


def {name}(number, asks):
    sides = []
    try:
        good = asks(sides)
    except Exception as error:
        good, problem = False, error
    else:
        problem = AssertionError()
    if good is False and len(sides) == 2 and None not in sides:
        raise AssertionError("{mark}%d %s" % (number, __import__("json").dumps(sides)))
    if good is False:
        raise problem
    return good


def {name}_ends():
    __import__("os")._exit(70)
"""
SCRIPT = """

function {name}_side(sides{any}, value{any}){any} {{
  let text{any} = null;
  try {{
    text = JSON.stringify(value);
    const plain = (one{any}){any} =>
      one === null || ["string", "number", "boolean"].includes(typeof one)
        ? one === one && one !== Infinity && one !== -Infinity
        : (Array.isArray(one) || Object.getPrototypeOf(one) === Object.prototype) &&
          Object.values(one).every(plain);
    if (!plain(value) || text.length > 300) text = null;
  }} catch (_) {{
    text = null;
  }}
  sides.push(text);
  return value;
}}

function {name}(number{any}, asks{any}){any} {{
  const sides{any} = [];
  try {{
    return asks(sides);
  }} catch (error) {{
    if (sides.length !== 2 || sides.includes(null)) throw error;
    throw new Error("{mark}" + number + " " + JSON.stringify(sides));
  }}
}}

function {name}_ends(){any} {{
  process.kill(process.pid, "SIGKILL");
}}
"""


class Equality(Struct, frozen=True):
    """An assertion that two values are equal."""

    where: Node
    """The node that asserts: a call, or the condition of a statement."""
    condition: bool
    """Whether it reports a failure by being false."""
    sides: tuple[Node, Node]
    """The two expressions, in the order of the source."""

    @property
    def line(self) -> int:
        """The line of the assertion, counted from 1."""
        return line_of(self.where)


def equalities(found: Found) -> list[Equality]:
    """Return the assertions of a test that compare two values, in source order.

    Only those around which code of the project may stand: a decorator, a context manager, or what
    is handed a function.
    """
    if found.parsed.language not in WITH_TREES:
        return []
    kept: list[Equality] = []
    for stated in asserts_of(found):
        node, condition = stated.node, stated.node.type == "assert_statement"
        if condition:
            node = node.named_children[0]
        sides = list(_sides(found.parsed.text(node), node, stated.expected, condition=condition))
        outer = kept and inside(kept[-1].where, node)
        if WAITS.search(found.parsed.text(node)) or not _is_surrounded(found, node):
            continue
        if len(sides) == 2 and not outer and not all(map(is_literal, sides)):
            sides.sort(key=lambda one: one.start_byte)
            kept.append(Equality(node, condition, (sides[0], sides[1])))
    return kept[:MOST]


def _is_surrounded(found: Found, node: Node) -> bool:
    """Whether code of the project may run around a node of a test, and catch what it raises."""
    parsed = found.parsed
    origins = imports_in(parsed).items()
    foreign = {name for name, origin in origins if not is_near(origin, parsed.language)}
    harmless = foreign | OWN | {"self"}
    for at in enclosing(node):
        around: list[Node] = []
        if at.type == "decorated_definition":
            marks = [one for one in at.named_children if one.type == "decorator"]
            around = [one.named_children[0] for one in marks]
        elif at.type == "with_statement":
            around = [field(one, "value") or one for one in walk(at) if one.type == "with_item"]
        elif at.type == "function_definition" and at != found.function:
            return True  # somebody calls it
        elif at.type in FUNCTIONS:
            call, known = call_around(at), (found.call, *found.suites)
            around = [call] if call is not None and call not in known else []
        if any(parsed.text(root_of(one)) not in harmless for one in around):
            return True
    return False


def _sides(text: str, node: Node, expected: Sequence[Node], *, condition: bool) -> Iterator[Node]:
    """Yield the two values that an assertion compares; something else where it does not."""
    if condition or node.type not in CALLS:
        equal = any(one.type == "==" for one in node.children)
        yield from expected if equal and node.named_child_count == 2 else ()
        return
    yield from expected[:2]
    if len(expected) == 1 and text.startswith("expect"):  # `expect(got).toBe(want)`
        at = field(node, "function")
        while at is not None and at.type not in CALLS:
            at = field(at, "object")
        yield from arguments_of(at)[:1] if at is not None else ()


def telling_sides(one: Equality, language: str, number: int, name: str) -> Edit:
    """Return the edit that makes an assertion report both values where it fails.

    `name` is that of its `helper`.
    """
    start, edits = one.where.start_byte, []
    for side in one.sides:
        text = (side.text or b"").decode("utf-8", "replace")
        at, end = side.start_byte - start, side.end_byte - start
        edits.append(Edit(at, end, f"{name}_side(agentrunner, {text})"))
    asks = applied(one.where.text or b"", edits).decode("utf-8", "replace")
    if language != "python":
        return replaced(one.where, f"{name}({number}, (agentrunner) => {asks})")
    asks = f"bool({asks})" if one.condition else f"({asks})"
    return replaced(one.where, f"{name}({number}, lambda agentrunner: {asks})")


def with_sides(one: Equality, texts: Sequence[str]) -> list[Edit]:
    """Return the edits by which an assertion compares these values, given as source texts."""
    return [replaced(side, text) for side, text in zip(one.sides, texts, strict=True)]


def ending(one: Equality, name: str) -> Edit:
    """Return the edit by which an assertion ends the process instead."""
    return replaced(one.where, f"{name}_ends()")


def helper(language: str, name: str) -> str:
    """Return the source of the functions that assertions use, for the end of the file."""
    text = PYTHON if language == "python" else SCRIPT
    return text.format(name=name, mark=MARK, any=": any" if language.startswith("t") else "")


def sides_in(message: str) -> dict[int, tuple[str, str]]:
    """Return what assertions reported in a failure message, by their number."""
    found = {number: tuple(map(str, one)) for number, one in values_in(message, MARK).items()}
    return {number: (one[0], one[1]) for number, one in found.items() if len(one) == 2}
