"""Read the assertions of a test: what each expects, and the edit that asserts the opposite."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.assertions import Stated
from agentrunner.verification.syntax.edits import Edit, replaced
from agentrunner.verification.syntax.functions import normal
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    arguments_of,
    enclosing,
    field,
    is_comment,
    parse,
    parts_of,
    walk,
)
from agentrunner.verification.syntax.native_asserts import go_asserts, java_asserts, rust_asserts
from agentrunner.verification.syntax.script_asserts import script_asserts
from agentrunner.verification.syntax.test_finder import standing
from agentrunner.verification.syntax.test_spans import Found

_ASSERTING = lazy_regex(r"^(assert|if|unless)\b(?! ?\.).*")
"""A statement that asserts, and not a call."""
_BRANCHES = frozenset(
    "if_statement elif_clause else_clause except_clause while_statement case_clause "
    "match_statement catch_clause switch_case ternary_expression if_expression match_arm "
    "conditional_expression while_expression expression_case type_case communication_case "
    "switch_label".split()
)
_LOOPS = frozenset(
    "for_statement for_in_statement enhanced_for_statement for_expression arrow_function "
    "function_expression lambda func_literal closure_expression lambda_expression "
    "function_definition function_declaration".split()
)


def asserts_of(found: Found) -> list[Stated]:
    """Return the assertions of a test in source order."""
    return list(_READERS[found.parsed.language](found))


def asserted_by(source: bytes, language: str) -> list[str]:
    """Return by what a file asserts, in its tests and then anywhere, in source order.

    For a call that is what is called, with the chain that it stands in (`expect . to . equal`), and
    for a statement its first word (`assert`, `if`). What they are handed does not matter.
    """
    parsed = parse(source, language)
    if parsed is None:
        return []
    return [
        _ASSERTING.sub(r"\1", _without_brackets(normal(parsed, one.node)))
        for found in (*standing(parsed), Found.whole_file(parsed))
        for one in asserts_of(found)
    ]


def _without_brackets(text: str) -> str:
    depth, kept = 0, []
    for char in text:
        depth -= char in ")]}"
        kept += [char] if depth == 0 and char not in ")]}([{" else []
        depth += char in "([{"
    return " ".join("".join(kept).split())


def certainty(body: Node, node: Node) -> int:
    """Return 0 if a node is always reached, 1 if a loop or callback may skip it, else 2."""
    level = 0
    for around in enclosing(node) if node != body else ():
        if around == body:
            break
        level = max(level, 2 if around.type in _BRANCHES else 1 if around.type in _LOOPS else 0)
    return level


# Python -------------------------------------------------------------------------------------------


def _python(found: Found) -> Iterator[Stated]:
    parsed = found.parsed
    for node in walk(found.body):
        if node.type == "assert_statement":
            for test in parts_of(node)[:1]:
                yield Stated(node, _compared(parsed, test), _negated_test(parsed, test), (test,))
        elif node.type == "call":
            stated = _python_call(parsed, node)
            if stated is not None:
                yield stated


def _compared(parsed: Parsed, test: Node) -> tuple[Node, ...]:
    """Return what a condition compares with, in those of its parts that must all hold."""
    found: list[Node] = []
    todo = [test]
    while todo:
        node = todo.pop()
        if node.type == "parenthesized_expression" or parsed.text(node, "operator") == "and":
            todo.extend(parts_of(node))
        elif node.type == "comparison_operator":
            found.extend(_sides(node))
    return tuple(found)


def _sides(comparison: Node) -> Iterator[Node]:
    children = [one for one in comparison.children if not is_comment(one)]
    for before, operator, after in zip(children, children[1:], children[2:], strict=False):
        if operator.type in ("==", "is"):
            yield from (after, before)
        elif operator.type == "in" and before.type in ("string", "integer", "float"):
            yield before


def _negated_test(parsed: Parsed, test: Node) -> tuple[Edit, ...]:
    text = parsed.text(test)
    if test.type == "not_operator":
        inner = field(test, "argument")
        return (replaced(test, parsed.text(inner)),) if inner is not None else ()
    return (replaced(test, f"not ({text})"),)


def _python_call(parsed: Parsed, call: Node) -> Stated | None:
    function = field(call, "function")
    if function is None:
        return None
    name = field(function, "attribute") or function
    given = arguments_of(call)
    plain = [one for one in given if one.type != "keyword_argument"]
    called = parsed.text(name)
    named = {
        parsed.text(key): value
        for one in given
        if (key := field(one, "name")) is not None and (value := field(one, "value")) is not None
    }
    if "raises" in called.lower() or called == "warns":
        expected = [named["match"]] if "match" in named else []
        expected += plain[1:2] if called.endswith("Regex") else []
        return Stated(call, tuple(expected), (), tuple(given))
    if not called.startswith("assert") or function.type != "attribute":
        return None
    lower = called.lower()
    turned = (replaced(name, _TURNED[called]),) if called in _TURNED else ()
    words = ("not", "assertno", "less", "greater", "instance", "false", "true", "isnone")
    if any(word in lower for word in words):
        inner = _compared(parsed, plain[0]) if called == "assertTrue" and plain else ()
        return Stated(call, inner, turned, tuple(plain[:1]))
    if lower.startswith("assert_"):  # a mock
        return Stated(call, tuple(given[::-1]), (), tuple(given))
    order = plain[:1] if lower == "assertin" else [*plain[1:2], *plain[:1]]
    return Stated(call, tuple(order), turned, tuple(plain[:2]))


_PAIRS = {
    "assertTrue": "assertFalse", "assertEqual": "assertNotEqual", "assertIs": "assertIsNot",
    "assertIn": "assertNotIn", "assertIsNone": "assertIsNotNone",
    "assertIsInstance": "assertNotIsInstance", "assertRegex": "assertNotRegex",
    "assertAlmostEqual": "assertNotAlmostEqual", "assertGreater": "assertLessEqual",
    "assertLess": "assertGreaterEqual", "assertLogs": "assertNoLogs",
}  # fmt: skip
_TURNED = {**_PAIRS, **{value: key for key, value in _PAIRS.items()}}

_READERS: dict[str, Callable[[Found], Iterator[Stated]]] = {
    "python": _python,
    "go": go_asserts,
    "rust": rust_asserts,
    "java": java_asserts,
    **dict.fromkeys(SCRIPTS, script_asserts),
}
