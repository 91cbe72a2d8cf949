"""Read the assertions of tests in Go, Rust and Java."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.assertions import Stated, compared, failing_guard, negated
from agentrunner.verification.syntax.edits import Edit, replaced
from agentrunner.verification.syntax.languages import (
    Parsed,
    arguments_of,
    field,
    is_comment,
    parts_of,
    walk,
)
from agentrunner.verification.syntax.test_spans import Found

_FAILS = lazy_regex(r"^(Error|Errorf|Fatal|Fatalf|Fail|FailNow|fail|panic)$")
_INEXACT = lazy_regex(r"Not|Less|Greater|Instance|Raises|Throws|Type|Before|After|Between", re.I)


# Go -----------------------------------------------------------------------------------------------


def go_asserts(found: Found) -> Iterator[Stated]:
    """Yield `if got != want { t.Errorf(…) }`, such cases of a switch, and what testify offers."""
    parsed = found.parsed
    for node in walk(found.body):
        if node.type == "if_statement":
            condition, then = field(node, "condition"), field(node, "consequence")
            if condition is not None and then is not None and _any_fails(parsed, [then]):
                yield _go_stated(parsed, node, condition)
        elif node.type == "expression_switch_statement" and field(node, "value") is None:
            yield from _go_cases(parsed, node)
        elif node.type == "call_expression":
            operand, name = field(node, "function", "operand"), field(node, "function", "field")
            if operand is not None and name is not None:
                stated = _testify(parsed, node, parsed.text(operand), name)
                if stated is not None:
                    yield stated


def _go_stated(parsed: Parsed, node: Node, condition: Node) -> Stated:
    """Return what a statement asserts that fails where `condition` holds."""
    wanted = [*compared(condition, ("!=",), "||"), *_go_equal(parsed, condition)]
    return Stated(node, tuple(wanted), (negated(parsed, condition),), (condition,))


def _go_cases(parsed: Parsed, switch: Node) -> Iterator[Stated]:
    """Yield the cases `case got != want: t.Errorf(…)` of a switch over conditions.

    A case after such ones alone is reached by every test that passes, as the switch is.
    """
    is_reached = True
    for case in parts_of(switch):
        value = field(case, "value")
        conditions = parts_of(value)
        if len(conditions) == 1 and _any_fails(
            parsed, [one for one in case.children if one != value]
        ):
            yield _go_stated(parsed, switch if is_reached else case, conditions[0])
        else:
            is_reached = False


def _any_fails(parsed: Parsed, nodes: Iterable[Node]) -> bool:
    return any(_fails(parsed, inner) for one in nodes for inner in walk(one))


def _fails(parsed: Parsed, node: Node) -> bool:
    """Whether a node throws, or calls what fails."""
    if node.type not in ("call_expression", "method_invocation"):
        return node.type == "throw_statement"
    name = field(node, "function", "field") or field(node, "function") or field(node, "name")
    return _FAILS.match(parsed.text(name)) is not None


def _go_equal(parsed: Parsed, condition: Node) -> list[Node]:
    """Return the arguments of `!reflect.DeepEqual(got, want)` and the like."""
    call = field(condition, "operand")
    if condition.type != "unary_expression" or call is None:
        return []
    name = parsed.text(call, "function", "field")
    return arguments_of(call)[::-1] if name.endswith("Equal") else []


def _testify(parsed: Parsed, call: Node, operand: str, name: Node) -> Stated | None:
    called = parsed.text(name)
    given = arguments_of(call)
    if operand not in ("assert", "require"):
        inner = re.fullmatch(r"\w+(\.(Require|Assert)\(\))?", operand)
        known = re.match(r"(Not)?(Equal|Len|Contains|True|False|Nil|Empty|JSONEq|InDelta)", called)
        is_statement = call.parent is not None and call.parent.type == "expression_statement"
        if not inner or not known or not given or not is_statement:
            return None  # `got = cmp.Equal(x, y)` only compares
    else:
        given = given[1:]
    turned = _go_turned(called)
    edits = (replaced(name, turned),) if turned else ()
    exact = re.search(r"Equal|Len$|Contains|JSONEq|InDelta|InEpsilon", called)
    order = given[:2] if exact and not _INEXACT.search(called) else []
    if called in ("Len", "Contains", "ErrorContains"):
        order = order[1:]
    return Stated(call, tuple(order), edits, tuple(given[:2]))


def _go_turned(called: str) -> str:
    opposites = {"True": "False", "False": "True", "Error": "NoError", "NoError": "Error"}
    if called in opposites:
        return opposites[called]
    if called.startswith("Not"):
        return called[3:]
    return "Not" + called if called in ("Equal", "Nil", "Empty", "Contains", "Zero", "Same") else ""


# Rust ---------------------------------------------------------------------------------------------


def rust_asserts(found: Found) -> Iterator[Stated]:
    """Yield `assert!(…)`, `assert_eq!(…)` and the like, and `if … { panic!(…) }`.

    A macro that makes the whole test expects the last of its arguments.
    """
    parsed = found.parsed
    if found.function.type == "macro_invocation":
        literals = _literals([found.body])[::-1]
        yield Stated(found.function, tuple(literals), (), tuple(literals))
        return
    for node in walk(found.body):
        if node.type == "if_expression":
            stated = failing_guard(
                parsed, node, lambda it: parsed.text(it, "macro").startswith("panic")
            )
            if stated is not None:
                yield stated
        if node.type != "macro_invocation":
            continue
        macro, called = field(node, "macro"), parsed.text(node, "macro")
        tokens = next((one for one in node.named_children if one.type == "token_tree"), None)
        if tokens is None or macro is None or "assert" not in called:
            continue
        groups = token_groups(tokens)
        deciding = groups[: 2 if called.endswith(("_eq", "_ne")) else 1]
        yield Stated(
            node,
            tuple(_rust_wanted(parsed, called, groups)),
            _rust_turned(macro, called, groups),
            tuple(one for group in deciding for one in group),
        )


def token_groups(tokens: Node) -> list[list[Node]]:
    """Return the arguments of a macro, each as its tokens."""
    groups: list[list[Node]] = [[]]
    for one in tokens.children[1:-1]:
        if one.type == ",":
            groups.append([])
        elif not is_comment(one):
            groups[-1].append(one)
    return groups if groups[-1] else groups[:-1]


def _rust_wanted(parsed: Parsed, called: str, groups: list[list[Node]]) -> Iterator[Node]:
    """Yield the literals that a macro expects, the most certain one first."""
    if called.endswith("_eq") and len(groups) >= 2:
        pair = [groups[1], groups[0]]
        for group in pair:
            if len(group) == 1 or (len(group) == 2 and group[0].type in ("-", "&")):
                yield group[-1]
        for group in pair:
            if _is_only_construction(parsed, group):
                yield from _literals(group)[::-1]
        yield from _literals(groups[1])[::-1]
    elif called.endswith("assert") and groups:
        at = [index for index, one in enumerate(groups[0]) if one.type == "=="]
        if len(at) == 1:
            yield from (groups[0][-1], groups[0][at[0] - 1])


def _is_only_construction(parsed: Parsed, group: list[Node]) -> bool:
    """Whether an expression calls only constructors and conversions."""
    names = [parsed.text(one) for part in group for one in walk(part) if one.type == "identifier"]
    plain = ("vec", "to_string", "to_owned", "into", "from", "as_str", "unwrap", "to_vec")
    return all(name[:1].isupper() or name in plain for name in names)


def _literals(group: list[Node]) -> list[Node]:
    return [one for part in group for one in walk(part) if one.type.endswith("_literal")]


def _rust_turned(macro: Node, called: str, groups: list[list[Node]]) -> tuple[Edit, ...]:
    """Return the edits that make a macro assert the opposite."""
    for suffix, opposite in (("_eq", "_ne"), ("_ne", "_eq")):
        if called.endswith(suffix):
            return (replaced(macro, called[: -len(suffix)] + opposite),)
    if called.endswith("assert") and groups and groups[0]:
        start, end = groups[0][0].start_byte, groups[0][-1].end_byte
        return (Edit(start, start, "!("), Edit(end, end, ")"))
    return ()


# Java ---------------------------------------------------------------------------------------------


def java_asserts(found: Found) -> Iterator[Stated]:
    """Yield `assertEquals(…)` and the like, `assertThat(…)…`, `assert …`, `if (…) throw …`."""
    parsed = found.parsed
    for node in walk(found.body):
        if node.type == "assert_statement":
            for test in node.named_children[:1]:
                wanted = compared(test, ("==",), "&&")
                yield Stated(node, tuple(wanted), (negated(parsed, test),), (test,))
        elif node.type == "if_statement":
            stated = failing_guard(parsed, node, partial(_fails, parsed))
            if stated is not None:
                yield stated
        elif node.type == "method_invocation":
            stated = _java_call(parsed, node)
            if stated is not None:
                yield stated


def _java_call(parsed: Parsed, call: Node) -> Stated | None:
    name, target = field(call, "name"), field(call, "object")
    if name is None:
        return None
    called, given = parsed.text(name), arguments_of(call)
    turned = _java_turned(parsed, name, given, target is not None)
    if target is not None and re.match(r"(\w+\.)*assertThat\s*\(", parsed.text(target)):
        order = given if not _INEXACT.search(called) else []
        return Stated(call, tuple(order), turned, (target, *given))
    if not called.startswith("assert"):
        return None
    if called == "assertThat":
        matcher = given[1:2]
        return Stated(call, tuple(matcher), (), tuple(given[:2])) if matcher else None
    texts = [one.type == "string_literal" for one in given]
    if len(given) == 3 and texts[0] and not texts[2]:
        given = given[1:]  # JUnit 4 takes the message first
    order = given[:2] if not _INEXACT.search(called) else []
    if called in ("assertTrue", "assertFalse"):
        same = ("==",) if called == "assertTrue" else ("!=",)
        order = compared(given[-1], same, "&&") if given else []
    return Stated(call, tuple(order), turned, tuple(given[:2]))


def _java_turned(parsed: Parsed, name: Node, given: list[Node], member: bool) -> tuple[Edit, ...]:
    """Return the edits for the opposite; a static import must already name the function."""
    called = parsed.text(name)
    if called in ("assertTrue", "assertFalse") and given:
        condition = given[0] if given[0].type != "string_literal" else given[-1]
        return (negated(parsed, condition),)
    opposite = _JAVA_TURNED.get(called)
    if opposite is None or (not member and to_bytes(opposite) not in parsed.source):
        return ()
    return (replaced(name, opposite),)


_JAVA_PAIRS = {
    "assertEquals": "assertNotEquals", "assertNull": "assertNotNull",
    "assertSame": "assertNotSame", "isEqualTo": "isNotEqualTo", "isTrue": "isFalse",
    "isNull": "isNotNull", "isEmpty": "isNotEmpty", "isPresent": "isNotPresent",
}  # fmt: skip
_JAVA_TURNED = {**_JAVA_PAIRS, **{value: key for key, value in _JAVA_PAIRS.items()}}
