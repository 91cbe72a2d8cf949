"""Make small changes to lines that a worker changed; a strong proof turns red at each."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from tree_sitter import Node

from agentrunner.verification.syntax.edits import (
    Edit,
    applied,
    changed_lines,
    replaced,
    still_parses,
)
from agentrunner.verification.syntax.functions import RETURN_TYPE, is_docstring
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    enclosing,
    field,
    is_comment,
    parse,
    parts_of,
    walk,
    without_brackets,
)
from agentrunner.verification.syntax.regions import is_in_test
from agentrunner.verification.syntax.values import FLOATS, INTEGERS, STRINGS, TRUTHS, another

_Change = tuple[str, list[Edit]]

_SKIPPED = frozenset(
    "import_statement import_from_statement future_import_statement import_declaration "
    "use_declaration package_clause package_declaration type_annotation type type_arguments "
    "type_parameters attribute_item inner_attribute_item annotation marker_annotation decorator "
    "type_alias_declaration interface_declaration struct_item type_declaration enum_item "
    "array_type generic_type".split()
)
_OPERATORS = {
    "+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "*", "**": "*", "<": "<=", "<=": "<",
    ">": ">=", ">=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "===", "and": "or",
    "or": "and", "&&": "||", "||": "&&", "is": "is not", "is not": "is", "in": "not in",
    "not in": "in", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "+=": "-=", "-=": "+=", "*=": "+=",
    "/=": "*=",
}  # fmt: skip
_BINARY = frozenset(
    "binary_operator binary_expression comparison_operator boolean_operator "
    "augmented_assignment augmented_assignment_expression compound_assignment_expr "
    "assignment_expression assignment_statement".split()
)
_CONDITIONED = frozenset(
    "if_statement elif_clause if_expression while_statement while_expression "
    "ternary_expression".split()
)


class Mutant(Struct, frozen=True):
    """A source with one small change."""

    source: bytes
    line: int
    """The changed line, counted from 1."""
    column: int
    """Where the change begins in it, in characters counted from 1."""
    description: str
    """What is there now and what was there before, for messages."""


def mutants(before: bytes | None, after: bytes, language: str, most: int) -> list[Mutant]:
    """Return at most `most` mutants of a file, on lines that `before` does not have.

    They are spread over those lines: every line gets one before any gets two. Comments, docstrings,
    imports, types and tests within the file are left alone. Mutants that no longer parse are left
    out. The same input makes the same mutants in the same order.
    """
    parsed = parse(after, language)
    if parsed is None or most <= 0:
        return []
    lines = changed_lines(before, after)
    by_line: dict[int, list[_Change]] = {}
    for node in walk(parsed.root, lambda one: not _is_skipped(parsed, one)):
        line = node.start_point[0] + 1
        if line in lines and not is_in_test(parsed, node) and not _is_skipped(parsed, node):
            by_line.setdefault(line, []).extend(_changes_at(parsed, node))
    found: list[Mutant] = []
    seen = {after}
    for line, description, edits in _spread(by_line, most):
        if len(found) == most:
            break
        changed = applied(after, edits)
        if changed not in seen and still_parses(parsed, changed):
            seen.add(changed)
            found.append(Mutant(changed, line, _column(after, edits), description))
    return found


def _column(source: bytes, edits: list[Edit]) -> int:
    at = min(edit.start for edit in edits)
    return len(source[source.rfind(b"\n", 0, at) + 1 : at].decode(errors="replace")) + 1


def _spread(by_line: dict[int, list[_Change]], most: int) -> Iterator[tuple[int, str, list[Edit]]]:
    """Yield the first change of each line, then the second of each, …; every n-th line first."""
    lines = [line for line in sorted(by_line) if by_line[line]]
    step = -(-len(lines) // most) if lines else 1
    order = [line for first in range(step) for line in lines[first::step]]
    for rank in range(max((len(one) for one in by_line.values()), default=0)):
        for line in order:
            if rank < len(by_line[line]):
                yield line, *by_line[line][rank]


def _is_skipped(parsed: Parsed, node: Node) -> bool:
    """Whether nothing is changed at a node or below it."""
    if node.type in _SKIPPED or is_comment(node) or is_docstring(parsed, node):
        return True
    parent = node.parent
    if node.type in STRINGS and parent is not None:  # module paths, and directives ("use strict")
        return parent.type in ("export_statement", "expression_statement")
    return False


def _changes_at(parsed: Parsed, node: Node) -> Iterator[_Change]:
    """Yield the changes at one node, without those below it."""
    if node.type in _BINARY:
        yield from _operators(parsed, node)
    elif node.type in ("not_operator", "unary_expression"):
        yield from _negations(parsed, node)
    elif node.type in INTEGERS | FLOATS | {"number"}:
        yield from _numbers(parsed, node)
    elif node.type in ("true", "false", "boolean_literal") and node.is_named:
        text = parsed.text(node)
        yield f"{text} is {TRUTHS[text]}", [replaced(node, TRUTHS[text])]
    elif node.type in STRINGS:
        edit = another(parsed, node)
        if edit is not None:
            yield f"the text {_shown(parsed, node)} is another one", [edit]
    elif node.type in ("return_statement", "return_expression"):
        yield from _returned(parsed, node)
    elif node.type == "expression_statement":
        yield from _removed(parsed, node)
    if node.type in _CONDITIONED:
        yield from _conditions(parsed, node)


def _shown(parsed: Parsed, node: Node) -> str:
    return " ".join(parsed.text(node).split())[:60]


def _operators(parsed: Parsed, node: Node) -> Iterator[_Change]:
    for child in node.children:
        text = " ".join(parsed.text(child).split())
        if child.is_named and child.type not in ("is not", "not in"):
            continue
        swapped = _OPERATORS.get(text)
        if swapped is None or (text.startswith("+") and _joins_text(node)):
            continue
        if text == "in" and node.type != "comparison_operator":
            continue
        yield f"`{text}` is `{swapped}`", [replaced(child, swapped)]


def _joins_text(node: Node) -> bool:
    """Whether a sum contains a string, from which nothing can be subtracted."""
    todo = [node]
    while todo:
        one = todo.pop()
        if one.type in STRINGS:
            return True
        if one is node or one.type in _BINARY:
            todo.extend(one.named_children)
    return False


def _negations(parsed: Parsed, node: Node) -> Iterator[_Change]:
    operator = node.children[0] if node.children else None
    inner = field(node, "argument") or field(node, "operand")
    inner = inner or next(iter(node.named_children), None)
    if operator is not None and inner is not None and parsed.text(operator) in ("not", "!"):
        description = f"`{_shown(parsed, node)}` is not negated"
        yield description, [Edit(node.start_byte, inner.start_byte, "")]


def _numbers(parsed: Parsed, node: Node) -> Iterator[_Change]:
    text = parsed.text(node)
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        edit = another(parsed, node)
        if edit is not None:
            yield f"{text} is {edit.text}", [edit]
        return
    parent = node.parent
    octal = len(text) > 1 and text.startswith("0")
    if octal or (parent is not None and parent.type == "field_expression"):
        return
    number = int(text)
    yield f"{text} is {number + 1}", [replaced(node, str(number + 1))]
    if number > 0:
        yield f"{text} is {number - 1}", [replaced(node, str(number - 1))]


def _returned(parsed: Parsed, node: Node) -> Iterator[_Change]:
    none = _empty_value(parsed, node)
    for value in parts_of(node)[:1]:
        if none is not None and none != parsed.text(value):
            yield f"`{_shown(parsed, value)}` is not returned but {none}", [replaced(value, none)]


def _empty_value(parsed: Parsed, node: Node) -> str | None:
    """Return the value to return instead of another one; None if the return type is unknown."""
    if parsed.language == "python":
        return "None"
    if parsed.language in SCRIPTS:
        return "null" if parsed.language == "javascript" else "null as any"
    function = next(
        (one for one in enclosing(node) if one.type.startswith(_WITH_TYPES + _WITHOUT_TYPES)), None
    )
    if function is None or function.type in _WITHOUT_TYPES:
        return None
    kind = parsed.text(function, RETURN_TYPE[parsed.language])
    return _ZEROS[parsed.language].get(kind)


_WITH_TYPES = ("function", "method", "func_")
_WITHOUT_TYPES = ("lambda_expression", "closure_expression")
_INTS = "byte short int long int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 uintptr rune"
_ZEROS = {
    "java": {
        **dict.fromkeys(_INTS.split(), "0"),
        **dict.fromkeys(("float", "double"), "0"),
        "boolean": "false",
        "String": "null",
    },
    "go": {
        **dict.fromkeys([*_INTS.split(), "float32", "float64"], "0"),
        "bool": "false",
        "string": '""',
        "error": "nil",
    },
    "rust": {
        **dict.fromkeys("u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize".split(), "0"),
        **dict.fromkeys(("f32", "f64"), "0.0"),
        "bool": "false",
        "String": "String::new()",
        "&str": '""',
    },
}


def _removed(parsed: Parsed, node: Node) -> Iterator[_Change]:
    """Leave out the call of a statement; compiled languages keep it where it is never reached."""
    inner = next(iter(parts_of(node)), None)
    if inner is not None and inner.type in ("await", "await_expression"):
        inner = next(iter(inner.named_children), None)
    if inner is None or inner.type not in ("call", "call_expression", "method_invocation"):
        return
    if parsed.text(inner).startswith("super"):
        return
    text = parsed.text(node)
    if parsed.language == "python":
        left = "pass"
    elif parsed.language in SCRIPTS:
        left = ";"
    else:
        left = f"if (false) {{ {text} }}" if parsed.language == "java" else f"if false {{ {text} }}"
    yield f"`{_shown(parsed, inner)}` is not called", [replaced(node, left)]


def _conditions(parsed: Parsed, node: Node) -> Iterator[_Change]:
    stated = field(node, "condition")
    condition = without_brackets(stated) if stated is not None else None
    if condition is None or condition.type in ("let_condition", "let_chain"):
        return
    text = parsed.text(condition)
    compiled = parsed.language in ("go", "rust", "java")
    words = ("True", "False") if parsed.language == "python" else ("true", "false")
    yes = f"true || ({text})" if compiled else words[0]
    no = f"false && ({text})" if compiled else words[1]
    shown = _shown(parsed, condition)
    if not node.type.startswith("while"):  # it would never end
        yield f"`{shown}` always holds", [replaced(condition, yes)]
    yield f"`{shown}` never holds", [replaced(condition, no)]
