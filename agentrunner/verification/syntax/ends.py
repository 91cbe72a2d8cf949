"""Make a claimed test fail at its end, under its own name.

A sound test tool reports it as failed; one that was manipulated to always pass does not. Every way
out of the test in normal flow fails: its last statement and every early return. Go and Rust have
statements of their own for what is done at an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tree_sitter import Node

from agentrunner.verification.syntax.edits import (
    Canary,
    Edit,
    canary_of,
    indent_of,
    line_indent,
    newline,
    replaced,
)
from agentrunner.verification.syntax.functions import own_nodes
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    arguments_of,
    field,
    parameters_at,
    parts_of,
    statements,
    walk,
)
from agentrunner.verification.syntax.scripts import FUNCTIONS, callee_names
from agentrunner.verification.syntax.test_finder import attribute_path, attributes
from agentrunner.verification.syntax.test_spans import Found

MESSAGE = "this test was made to fail at its end"
_VALUE = "agentrunner_value"


def failing_end(found: Found) -> Canary | None:
    """Return the source with this test failing at each of its ends.

    It fails by an exception of the language, or by `Fatalf` of Go's own test parameter. None if the
    test has no end that could be made to fail.
    """
    parsed, span = found.parsed, found.span
    edits = list(_ENDS[parsed.language](parsed, found))
    description = f"a failing statement at the end of {span.name} (line {span.line})"
    return canary_of(parsed, span.name, "end", edits, description, span.line)


# Python -------------------------------------------------------------------------------------------


def _python(parsed: Parsed, found: Found) -> Iterator[Edit]:
    failure = f'raise AssertionError("{MESSAGE}")'
    for node in own_nodes(found.body):
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


# JavaScript and TypeScript ------------------------------------------------------------------------

_ERROR = f'new Error("{MESSAGE}")'
_LATER = f".then(() => {{ throw {_ERROR}; }})"


def _script(parsed: Parsed, found: Found) -> Iterator[Edit]:
    """Yield the edits that make every end of a test fail.

    A returned value can be a promise, so it is awaited before the test fails. A test that calls a
    callback when it is done passes it an error.
    """
    body = found.body
    if body.type != "statement_block":
        yield from _script_expression(parsed, found)
        return
    called_back = list(_callbacks(parsed, found))
    if called_back:
        yield from called_back
        return
    for node in own_nodes(body):
        if node.type == "return_statement":
            yield replaced(node, _script_return(parsed, node))
    parts = statements(body)
    if not parts or parts[-1].type not in ("return_statement", "throw_statement"):
        end, line, indent = body.end_byte - 1, newline(parsed.source), line_indent(parsed, body)
        yield Edit(end, end, f"{line}{indent}  throw {_ERROR};{line}{indent}")


def _script_expression(parsed: Parsed, found: Found) -> Iterator[Edit]:
    value = parsed.text(found.body)
    if parsed.text(found.function, "return_type").lstrip(": ") == "void":
        yield replaced(found.body, f"{{ {value}; throw {_ERROR}; }}")
    else:
        yield replaced(found.body, f"Promise.resolve({_argument(found.body, value)}){_LATER}")


def _script_return(parsed: Parsed, node: Node) -> str:
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
    patterns = [field(node, "pattern") or node for node in parameters_at(found.function)]
    names = [parsed.text(node) for node in patterns if node.type == "identifier"]
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
        for one in arguments_of(call):
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


# Go -----------------------------------------------------------------------------------------------


def _go(parsed: Parsed, found: Found) -> Iterator[Edit]:
    parameter, rename = _go_parameter(parsed, found.function)
    if parameter is None:
        return
    if rename is not None:
        yield rename
    start = found.body.start_byte + 1
    yield Edit(start, start, f'\n\tdefer {parameter}.Fatalf("{MESSAGE}")\n')


def _go_parameter(parsed: Parsed, function: Node) -> tuple[str | None, Edit | None]:
    """Return how the body refers to its `*testing.T`, and the edit that names an unnamed one."""
    for one in parts_of(function, "parameters"):
        kind = field(one, "type")
        if kind is None or "testing." not in parsed.text(kind):
            continue
        name = field(one, "name")
        if name is None:
            return "t", Edit(kind.start_byte, kind.start_byte, "t ")
        if parsed.text(name) == "_":
            return "t", replaced(name, "t")
        return parsed.text(name), None
    for one in parts_of(function, "receiver"):
        if name_of_suite := parsed.text(one, "name"):  # of testify
            return name_of_suite + ".T()", None
    return None, None


# Rust ---------------------------------------------------------------------------------------------


_PANICS_AT_ITS_END = (
    " extern crate std as agentrunner_std; struct AgentrunnerEnd;"
    " impl Drop for AgentrunnerEnd { fn drop(&mut self) {"
    f' if !agentrunner_std::thread::panicking() {{ panic!("{MESSAGE}") }} }} }}'
    " let _agentrunner_end = AgentrunnerEnd;"
)


def _rust(parsed: Parsed, found: Found) -> Iterator[Edit]:
    if found.function.type == "macro_invocation":
        return
    start = found.body.start_byte + 1
    marks = (attribute_path(parsed, mark) for mark in attributes(found.whole))
    ends_well = "should_panic" in marks
    yield Edit(start, start, " if true { return; }" if ends_well else _PANICS_AT_ITS_END)


# Java ---------------------------------------------------------------------------------------------


def _java(parsed: Parsed, found: Found) -> Iterator[Edit]:
    failure = f'throw new AssertionError("{MESSAGE}");'
    start, end = found.body.start_byte + 1, found.body.end_byte - 1
    if _java_expects(parsed, found.whole):
        yield Edit(start, start, " if (true) return;")
        return
    for node in own_nodes(found.body):
        if node.type == "return_statement":
            value = next(iter(node.named_children), None)
            kept = f"Object {_VALUE} = {parsed.text(value)}; " if value is not None else ""
            yield replaced(node, f"{{ {kept}{failure} }}")
    parts = statements(found.body)
    if not parts or parts[-1].type not in ("return_statement", "throw_statement"):
        yield Edit(end, end, f"\n{line_indent(parsed, found.body)}    {failure}\n")


def _java_expects(parsed: Parsed, method: Node) -> bool:
    """Whether an annotation says that the test ends with an exception."""
    marks = (child for child in method.named_children if child.type == "modifiers")
    pairs = (pair for child in marks for pair in walk(child))
    return any(parsed.text(pair, "key").startswith("expected") for pair in pairs)


_ENDS: dict[str, Callable[[Parsed, Found], Iterator[Edit]]] = {
    "python": _python,
    "go": _go,
    "rust": _rust,
    "java": _java,
    **dict.fromkeys(SCRIPTS, _script),
}
