"""Read the assertions of tests in JavaScript and TypeScript, in the styles of their frameworks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.assertions import Stated, compared, failing_guard, negated
from agentrunner.verification.syntax.edits import Edit, replaced
from agentrunner.verification.syntax.languages import Parsed, arguments_of, field, walk
from agentrunner.verification.syntax.scripts import callee_names
from agentrunner.verification.syntax.test_spans import Found

_SAME = ("===", "==")
_EQUAL = lazy_regex(r"equal|^(is|same|match|throws|rejects|includes?|contains?|lengthof)$", re.I)
REQUIRED = lazy_regex(
    r"""require\(\s*['"](?!\.)[^'"]*(?:assert|expect)[^'"]*['"]\s*\)(?:\.strict)?"""
)
"""An assertion module that is used right where it is loaded."""
_NOT_EXACT = lazy_regex(r"greater|less|above|below|most|least|within|instance|not", re.I)


def script_asserts(found: Found, also: Collection[str] = ()) -> Iterator[Stated]:
    """Yield each assertion: `expect(…)…`, `assert…`, `t.is(…)`, `….expect(200)`, and `if (…)
    throw`.

    `also` holds further names that assert, as the parameters of the test do.
    """
    parsed = found.parsed
    context = parameter_names(found) | set(also)
    for node in walk(found.body):
        stated = None
        if node.type == "call_expression":
            stated = _call(parsed, node, context)
        elif node.type == "member_expression":
            stated = _property(parsed, node)
        elif node.type == "if_statement":
            stated = failing_guard(parsed, node, lambda one: one.type == "throw_statement")
        if stated is not None:
            yield stated


def parameter_names(found: Found) -> set[str]:
    """Return the parameters of a test, which some frameworks use for assertions."""
    several = field(found.function, "parameters") or field(found.function, "parameter")
    if several is None:
        return set()
    return {found.parsed.text(node) for node in walk(several) if node.type == "identifier"}


def _call(parsed: Parsed, call: Node, context: set[str]) -> Stated | None:
    names, arguments = callee_names(parsed, call), arguments_of(call)
    if not names:
        return None
    callee, last = field(call, "function"), names[-1]
    if callee is None:
        return None
    if _expects(parsed, callee) or ("should" in names and len(names) > 1):
        if len(names) == 1:
            return None
        exact = not _NOT_EXACT.search(".".join(names[1:]))
        return Stated(
            call,
            tuple(arguments[::-1] if "roperty" in last else arguments) if exact else (),
            _turned_chain(parsed, callee),
            (callee, *arguments),
        )
    if last == "expect" and len(names) > 1:
        return Stated(call, tuple(arguments[::-1]), (), tuple(arguments))
    if REQUIRED.fullmatch(parsed.text(callee, "object")):
        return _assertion(parsed, call, ["assert", last], arguments)
    if any(name.lower().startswith("assert") for name in names) or names[0] in context:
        return _assertion(parsed, call, names, arguments)
    return None


def _assertion(
    parsed: Parsed, call: Node, names: list[str], arguments: list[Node]
) -> Stated | None:
    last, head = names[-1], arguments[:1]
    if last.lower() in ("assert", "ok", "true", "istrue", "truthy"):
        if not head:
            return None
        wanted = compared(head[0], _SAME, "&&")
        return Stated(call, tuple(wanted), (negated(parsed, head[0]),), tuple(head))
    if (
        len(arguments) >= 2
        and _EQUAL.search(last)
        and not last.lower().startswith(("not", "isnot"))
    ):
        order = [arguments[1]] + (head if re.search("equal|is|same", last, re.I) else [])
        return Stated(call, tuple(order), _turned_name(call, last), tuple(arguments[:2]))
    if len(names) > 1 and names[0] not in ("assert",) and not re.search("assert", ".".join(names)):
        return None
    return Stated(call, (), _turned_name(call, last), tuple(arguments[:2]))


def _turned_name(call: Node, last: str) -> tuple[Edit, ...]:
    name = field(call, "function", "property")
    if name is None:
        return ()
    turned = {
        "equal": "notEqual",
        "strictEqual": "notStrictEqual",
        "deepEqual": "notDeepEqual",
        "deepStrictEqual": "notDeepStrictEqual",
        "is": "not",
        "match": "doesNotMatch",
    }
    turned |= {value: key for key, value in turned.items()}
    return (replaced(name, turned[last]),) if last in turned else ()


def _property(parsed: Parsed, node: Node) -> Stated | None:
    """Read chai's `expect(x).to.be.true`."""
    parent = node.parent
    if parent is None or parent.type not in ("expression_statement", "arrow_function"):
        return None
    if not _expects(parsed, node):
        return None
    return Stated(node, (), _turned_chain(parsed, node), (node,))


def _expects(parsed: Parsed, callee: Node) -> bool:
    """Whether a chain begins with `expect(…)`."""
    return bool(re.match(r"expect(\.soft)?\s*[(<]", parsed.text(callee)))


def _turned_chain(parsed: Parsed, callee: Node) -> tuple[Edit, ...]:
    """Return the edit that puts `not` before the last name of a chain, or removes it."""
    node: Node | None = callee
    while node is not None:
        name, inner = field(node, "property"), field(node, "object")
        if name is not None and inner is not None and parsed.text(name) == "not":
            return (Edit(inner.end_byte, node.end_byte, ""),)
        node = inner if inner is not None else field(node, "function")
    last = field(callee, "property")
    return (Edit(last.start_byte, last.start_byte, "not."),) if last is not None else ()
