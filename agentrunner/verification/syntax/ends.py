"""Make a claimed test fail at its end, under its own name.

A sound test tool reports it as failed; one that was manipulated to always pass does not. Every way
out of the test in normal flow fails: its last statement and every early return.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from tree_sitter import Node

from agentrunner.verification.syntax import script_ends
from agentrunner.verification.syntax.edits import (
    Canary,
    Edit,
    applied,
    indent_of,
    line_indent,
    newline,
    replaced,
)
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    parse,
    statements,
    walk,
)
from agentrunner.verification.syntax.test_finder import attribute_path, attributes, located
from agentrunner.verification.syntax.test_spans import Found, TestSpan

MESSAGE = "this test was made to fail at its end"
_VALUE = "agentrunner_value"


def failing_end(source: bytes, language: str, span: TestSpan) -> Canary | None:
    """Return the source with this test failing at each of its ends.

    It fails by an exception of the language, or by `Fatalf` of Go's own test parameter. None if the
    span is not of this source, or if the test has no end that could be made to fail.
    """
    parsed = parse(source, language)
    found = located(parsed, span) if parsed is not None else None
    if parsed is None or found is None:
        return None
    edits = list(_ENDS[language](parsed, found))
    changed = applied(source, edits)
    if not edits or not _still_parses(parsed, changed):
        return None
    description = f"a failing statement at the end of {span.name} (line {span.line})"
    return Canary(changed, span.name, "end", description, span.line, tuple(edits))


def _still_parses(parsed: Parsed, changed: bytes) -> bool:
    """Whether the changed source still parses, if the old one did."""
    if parsed.root.has_error:
        return True
    after = parse(changed, parsed.language)
    return after is not None and not after.root.has_error


def own_nodes(body: Node, functions: Collection[str]) -> Iterator[Node]:
    """Yield the nodes of a body, except those inside functions nested in it."""
    return walk(body, lambda node: node.type not in functions)


# Python -------------------------------------------------------------------------------------------

_PYTHON_FUNCTIONS = ("function_definition", "lambda", "class_definition")


def _python(parsed: Parsed, found: Found) -> Iterator[Edit]:
    failure = f'raise AssertionError("{MESSAGE}")'
    for node in own_nodes(found.body, _PYTHON_FUNCTIONS):
        if node.type == "return_statement":
            value = next(iter(node.named_children), None)
            before = f"{_VALUE} = {parsed.text(value)}; " if value is not None else ""
            yield replaced(node, before + failure)
    parts = statements(found.body)
    if not parts:
        return
    last = parts[-1]
    if last.type in ("return_statement", "raise_statement"):
        return
    indent = indent_of(parsed, parts[0])
    if indent is None:  # def test_x(): assert f()
        yield Edit(last.end_byte, last.end_byte, f"; {failure}")
        return
    at = len(parsed.source[: last.end_byte].rstrip())
    yield Edit(at, at, f"{newline(parsed.source)}{indent}{failure}")


# Go -----------------------------------------------------------------------------------------------


def _go(parsed: Parsed, found: Found) -> Iterator[Edit]:
    parameter, rename = _go_parameter(parsed, found.function)
    if parameter is None:
        return
    failure = f'{parameter}.Fatalf("{MESSAGE}")'
    hidden = _go_hides(parsed, found.body, parameter.partition(".")[0])
    for node in own_nodes(found.body, ("func_literal",)):
        if node.type == "return_statement" and not hidden:
            yield Edit(node.start_byte, node.start_byte, failure + "; ")
    if rename is not None:
        yield rename
    end = found.body.end_byte - 1
    parts = statements(found.body)
    if not parts or parts[-1].type != "return_statement" or hidden:
        yield Edit(end, end, f"\n\t{failure}\n")


def _go_parameter(parsed: Parsed, function: Node) -> tuple[str | None, Edit | None]:
    """Return how the body refers to its `*testing.T`, and the edit that names an unnamed one."""
    given = field(function, "parameters")
    for one in given.named_children if given is not None else []:
        kind = field(one, "type")
        if kind is None or "testing." not in parsed.text(kind):
            continue
        name = field(one, "name")
        if name is None:
            return "t", Edit(kind.start_byte, kind.start_byte, "t ")
        if parsed.text(name) == "_":
            return "t", replaced(name, "t")
        return parsed.text(name), None
    receiver = field(function, "receiver")
    for one in receiver.named_children if receiver is not None else []:
        name = field(one, "name")  # a testify suite
        if name is not None:
            return parsed.text(name) + ".T()", None
    return None, None


def _go_hides(parsed: Parsed, body: Node, name: str) -> bool:
    """Whether a body declares something with the name of the parameter."""
    for node in own_nodes(body, ("func_literal",)):
        left = (
            field(node, "left") if node.type in ("short_var_declaration", "range_clause") else None
        )
        left = field(node, "name") if node.type == "var_spec" else left
        if left is not None and name in parsed.text(left).replace(",", " ").split():
            return True
    return False


# Rust ---------------------------------------------------------------------------------------------


def _rust(parsed: Parsed, found: Found) -> Iterator[Edit]:
    if found.function.type == "macro_invocation":
        return
    failure = f'panic!("{MESSAGE}")'
    body, start = found.body, found.body.start_byte + 1
    if any(attribute_path(parsed, mark) == "should_panic" for mark in attributes(found.whole)):
        yield Edit(start, start, " if true { return; }")
        return
    kind = field(found.function, "return_type")
    of_type = f": {parsed.text(kind)}" if kind is not None else ""
    if "impl" in of_type or "!" in of_type:
        yield Edit(start, start, f" if true {{ {failure}; }}")
        return
    for node in own_nodes(body, ("closure_expression", "function_item", "async_block")):
        if node.type == "return_expression":
            value = next(iter(node.named_children), None)
            kept = f"{{ let _{of_type} = {parsed.text(value)}; {failure} }}" if value else failure
            yield replaced(node, kept)
    parts = statements(body)
    end, last = body.end_byte - 1, parts[-1] if parts else None
    while last is not None and last.type == "expression_statement" and last.named_child_count == 1:
        if parsed.source[last.end_byte - 1 : last.end_byte] == b";" or not of_type:
            break
        last = last.named_children[0]  # a block-like expression that is the value
    tail = last is not None and last.type.endswith(("expression", "invocation", "identifier"))
    if tail and last is not None and last.type != "return_expression" and of_type:
        yield Edit(last.start_byte, last.start_byte, f"let _{of_type} = ")
        yield Edit(last.end_byte, last.end_byte, f"; {failure}")
    elif tail and last is not None and last.type != "return_expression":
        yield Edit(last.end_byte, last.end_byte, f"; {failure}")
    elif not _leaves(parsed, last):
        yield Edit(end, end, f"\n{line_indent(parsed, body)}    {failure};\n")


def _leaves(parsed: Parsed, last: Node | None) -> bool:
    """Whether a Rust body ends with a statement that nothing can follow."""
    while last is not None and last.type == "expression_statement":
        last = next(iter(last.named_children), None)
    if last is None:
        return False
    fails = re.match(r"(panic|unreachable|todo|unimplemented)!", parsed.text(last))
    return last.type == "return_expression" or fails is not None


# Java ---------------------------------------------------------------------------------------------


def _java(parsed: Parsed, found: Found) -> Iterator[Edit]:
    failure = f'throw new AssertionError("{MESSAGE}");'
    start, end = found.body.start_byte + 1, found.body.end_byte - 1
    if _java_expects(parsed, found.whole):
        yield Edit(start, start, " if (true) return;")
        return
    functions = ("lambda_expression", "class_body")
    for node in own_nodes(found.body, functions):
        if node.type == "return_statement":
            value = next(iter(node.named_children), None)
            kept = f"Object {_VALUE} = {parsed.text(value)}; " if value is not None else ""
            yield replaced(node, f"{{ {kept}{failure} }}")
    parts = statements(found.body)
    if not parts or parts[-1].type not in ("return_statement", "throw_statement"):
        yield Edit(end, end, f"\n{line_indent(parsed, found.body)}    {failure}\n")


def _java_expects(parsed: Parsed, method: Node) -> bool:
    """Whether an annotation says that the test ends with an exception."""
    for child in method.named_children:
        if child.type == "modifiers":
            for pair in walk(child):
                key = field(pair, "key")
                if key is not None and parsed.text(key).startswith("expected"):
                    return True
    return False


_ENDS: dict[str, Callable[[Parsed, Found], Iterator[Edit]]] = {
    "python": _python,
    "go": _go,
    "rust": _rust,
    "java": _java,
    **dict.fromkeys(SCRIPTS, script_ends.ends),
}
