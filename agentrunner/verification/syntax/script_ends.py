"""Make a JavaScript or TypeScript test fail at each of its ends."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from agentrunner.verification.syntax.edits import Edit, line_indent, newline, replaced
from agentrunner.verification.syntax.languages import Parsed, field, statements, walk
from agentrunner.verification.syntax.scripts import FUNCTIONS, callee_names, given
from agentrunner.verification.syntax.test_spans import Found

_ERROR = 'new Error("this test was made to fail at its end")'
_LATER = f".then(() => {{ throw {_ERROR}; }})"


def ends(parsed: Parsed, found: Found) -> Iterator[Edit]:
    """Yield the edits that make every end of a test fail.

    A returned value can be a promise, so it is awaited before the test fails. A test that calls a
    callback when it is done passes it an error.
    """
    body = found.body
    if body.type != "statement_block":
        yield from _expression(parsed, found)
        return
    called_back = list(_callbacks(parsed, found))
    if called_back:
        yield from called_back
        return
    for node in walk(body, lambda one: one.type not in (*FUNCTIONS, "class_body")):
        if node.type == "return_statement":
            yield replaced(node, _returned(parsed, node))
    parts = statements(body)
    if not parts or parts[-1].type not in ("return_statement", "throw_statement"):
        end, line, indent = body.end_byte - 1, newline(parsed.source), line_indent(parsed, body)
        yield Edit(end, end, f"{line}{indent}  throw {_ERROR};{line}{indent}")


def _expression(parsed: Parsed, found: Found) -> Iterator[Edit]:
    value = parsed.text(found.body)
    type_ = field(found.function, "return_type")
    if type_ is not None and parsed.text(type_).lstrip(": ") == "void":
        yield replaced(found.body, f"{{ {value}; throw {_ERROR}; }}")
    else:
        yield replaced(found.body, f"Promise.resolve({_argument(found.body, value)}){_LATER}")


def _returned(parsed: Parsed, node: Node) -> str:
    value = next(iter(node.named_children), None)
    if value is None:
        return f"throw {_ERROR};"
    return f"return Promise.resolve({_argument(value, parsed.text(value))}){_LATER};"


def _argument(node: Node, text: str) -> str:
    """Return an expression in the form of a single argument of a call."""
    return f"({text})" if node.type == "sequence_expression" else text


def _callbacks(parsed: Parsed, found: Found) -> Iterator[Edit]:
    """Yield edits that make every callback that ends the test pass an error.

    A parameter is such a callback if it is called and the result is unused. A parameter that is
    only passed on can be one as well, unless a table of cases fills the parameters.
    """
    if parsed.text(found.function).startswith("async"):
        return
    names = _parameters(parsed, found.function)
    calls = [node for node in walk(found.body) if node.type == "call_expression"]
    called = {name for call in calls if (name := _called(parsed, call)) in names}
    table = found.call is not None and "each" in callee_names(parsed, found.call)
    if not called and not table and names:
        called = (
            set(names[-1:])
            if len(names) <= 2 and not _has_members_used(parsed, found, names[-1])
            else called
        )
    for call in calls:
        arguments = field(call, "arguments")
        if _called(parsed, call) in called and arguments is not None:
            yield replaced(arguments, f"({_ERROR})")
        for one in given(call):
            if one.type == "identifier" and parsed.text(one) in called:
                yield replaced(one, f"() => {parsed.text(one)}({_ERROR})")


def _called(parsed: Parsed, call: Node) -> str:
    """Return the name of a called function if the value of the call is not used, else ""."""
    callee, parent = field(call, "function"), call.parent
    alone = parent is not None and parent.type in (*FUNCTIONS, *_DROPPED)
    return parsed.text(callee) if alone and callee and callee.type == "identifier" else ""


_DROPPED = ("expression_statement", "return_statement", "unary_expression")


def _has_members_used(parsed: Parsed, found: Found, name: str) -> bool:
    """Whether members of a parameter are used, as those of a test context are."""
    return any(
        node.type == "member_expression" and parsed.text(node).startswith(name + ".")
        for node in walk(found.body)
    )


def _parameters(parsed: Parsed, function: Node) -> list[str]:
    """Return the names of the parameters that could be a callback: plain identifiers."""
    alone = field(function, "parameter")
    several = field(function, "parameters")
    nodes = [alone] if alone is not None else several.named_children if several else []
    patterns = [field(node, "pattern") or node for node in nodes]
    return [parsed.text(node) for node in patterns if node.type == "identifier"]
