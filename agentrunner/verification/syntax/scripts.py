"""Find tests in JavaScript and TypeScript: calls with a title and a function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tree_sitter import Node

from agentrunner.verification.syntax.languages import Parsed, arguments_of, field, walk
from agentrunner.verification.syntax.test_spans import Found, Title, literal_title

FUNCTIONS = (
    "arrow_function",
    "function_expression",
    "function_declaration",
    "generator_function",
    "generator_function_declaration",
    "method_definition",
)
"""Node types that are functions in JavaScript."""
TESTS = ("test", "it", "specify", "fit", "xit", "xtest")
"""Names that the test frameworks use for a test."""
SUITES = ("describe", "suite", "context", "fdescribe", "xdescribe", "module")
"""Names that the test frameworks use for a group of tests."""
HOOKS = ("before", "after", "beforeEach", "afterEach", "beforeAll", "afterAll", "setup", "teardown")
"""Names that the test frameworks use for code around the tests of a group."""


def callee_names(parsed: Parsed, call: Node) -> list[str]:
    """Return the names in a callee, outermost first: `it`, `each` for `it.each([…])(…)`."""
    names: list[str] = []
    node = field(call, "function")
    while node is not None:
        if node.type == "member_expression":
            names += [parsed.text(node, "property")]
            node = field(node, "object")
        elif node.type in ("call_expression", "parenthesized_expression", "non_null_expression"):
            node = field(node, "function") or next(iter(node.named_children), None)
        else:
            names.append(parsed.text(node))
            break
    return names[::-1]


def script_tests(parsed: Parsed) -> Iterator[Found]:
    """Yield all calls that declare a test, in source order, with the suites around them."""
    named = _named_functions(parsed)
    todo: list[tuple[Node, tuple[Title, ...], tuple[Node, ...], tuple[str, ...]]]
    todo = [(parsed.root, (), (), ())]
    while todo:
        node, titles, suites, around = todo.pop()
        if node.type == "call_expression":
            declared = _declared(parsed, node, named)
            if declared is not None:
                title, function, kind = declared
                body, above = field(function, "body"), node.parent
                if kind != "suite" and body is not None:
                    whole = above if above and above.type == "expression_statement" else node
                    found = Found.of(
                        parsed, " > ", (*titles, title), whole, function, body, kind == "test"
                    )
                    yield replace(found, suites=suites, call=node, around=around)
                if kind:
                    titles, suites = (*titles, title), (*suites, node)
                else:
                    around = (*around, title.text)
        todo.extend((child, titles, suites, around) for child in reversed(node.named_children))


def _declared(parsed: Parsed, call: Node, named: dict[str, Node]) -> tuple[Title, Node, str] | None:
    """Return title, function and kind of a declaring call; the kind is "" if only its form fits."""
    arguments = arguments_of(call)
    if len(arguments) < 2:
        return None
    names = callee_names(parsed, call)
    called = set(names)
    kind = "test" if called & set(TESTS) else "suite" if called & set(SUITES) else ""
    text = arguments[0].type in ("string", "template_string", "binary_expression")
    if not text and not (kind and arguments[0].type in ("identifier", "member_expression")):
        return None
    function = next((one for one in map(_function, arguments[1:]) if one is not None), None)
    if function is None and kind:
        function = next(
            (named[parsed.text(one)] for one in arguments[1:] if parsed.text(one) in named), None
        )
    if function is None:
        return None
    formatted = bool({"each", "for"} & called)
    return literal_title(parsed, arguments[0], formatted), function, kind


def _function(node: Node) -> Node | None:
    """Return a function, or the one that a call wraps: `wrap(async () => {…})`."""
    for _ in range(4):
        if node.type in FUNCTIONS:
            return node
        if node.type != "call_expression":
            return None
        inner = [one for one in arguments_of(node) if one.type in (*FUNCTIONS, "call_expression")]
        if not inner:
            return None
        node = inner[-1]
    return None


def _named_functions(parsed: Parsed) -> dict[str, Node]:
    """Return the functions of a file by name."""
    found: dict[str, Node] = {}
    for node in walk(parsed.root):
        value = node if node.type.endswith("function_declaration") else field(node, "value")
        if value is not None and value.type in FUNCTIONS and (name := parsed.text(node, "name")):
            found.setdefault(name, value)
    return found
