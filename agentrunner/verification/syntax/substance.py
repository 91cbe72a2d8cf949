"""What a test asserts, and whether the product could make it fail at all."""

from __future__ import annotations

import builtins
import re

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.assertions import Stated
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.context import NAMES, context_of
from agentrunner.verification.syntax.functions import normal
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    inside,
    parse,
    parts_of,
    walk,
)
from agentrunner.verification.syntax.script_asserts import parameter_names
from agentrunner.verification.syntax.test_finder import around, standing
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.syntax.values import binding

_ASSERTING = lazy_regex(r"^(assert|if|unless)\b(?! ?\.).*")
"""A statement that asserts, and not a call."""
_CALLS = ("call", "call_expression", "method_invocation", "macro_invocation", "new_expression")
_OF_THE_LANGUAGE = {
    "python": frozenset(dir(builtins)) | {"self", "cls", "pytest", "unittest"},
    "script": frozenset(
        "expect assert Object Array String Number Boolean Math JSON Promise Symbol Map Set Date "
        "Error RegExp BigInt console undefined NaN Infinity globalThis require setTimeout "
        "describe it test vi jest parseInt parseFloat isNaN structuredClone".split()
    ),
    "go": frozenset(
        "testing assert require fmt errors reflect len cap make append new string int "
        "float64 bool byte rune error nil true false panic print println copy int64 uint8".split()
    ),
    "rust": frozenset(
        "assert assert_eq assert_ne vec format println print eprintln panic matches Some None Ok "
        "Err String Vec Box std i32 u8 u32 u64 i64 usize f64 f32 bool str true false dbg".split()
    ),
    "java": frozenset(
        "assertEquals assertTrue assertFalse assertNull assertNotNull assertThat assertThrows "
        "Assert Assertions System String Integer Long Double Boolean Math List Arrays Objects "
        "Map Set fail is equalTo isEqualTo isTrue isFalse".split()
    ),
}
"""Names that are not the product's, by language."""


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


def asks_of(found: Found) -> list[Stated]:
    """Return the assertions of a test that the product could make fail: not `assert False`."""
    own = _own_names(found)
    return [one for one in asserts_of(found) if _says_something(found.parsed, one, own)]


def is_empty_test(found: Found) -> bool:
    """Whether nothing that the product does could make this test fail.

    It calls only its language and its test tool (or drops every error of what it calls), and
    asserts only constants, values it made itself, or that something equals itself. False for a test
    made by a macro, whose assertions are written elsewhere.
    """
    if found.function.type == "macro_invocation":
        return False
    parsed, own = found.parsed, _own_names(found)
    if asks_of(found):
        return False
    asking = (node for node in walk(found.body) if _calls_product(parsed, node, own))
    if any(not _is_dropped(node, found) for node in asking):
        return False
    return not _set_up_matters(found)


def is_placeholder(found: Found) -> bool:
    """Whether a test has no name that is not its own, its language's or its tool's, also not of a
    set-up or an import: `assert True`."""
    parsed = found.parsed
    given = [] if parsed.language != "python" else parts_of(found.function, "parameters")
    known = _own_names(found) | (_language_names(parsed) - _LOADS)
    return (
        is_empty_test(found)
        and not any(one.type in _LOADS for one in walk(found.whole))
        and not context_of(parsed).set_up(found)
        and all(_is_own(parsed, one, known) for one in (found.body, *given))
    )


_LOADS = frozenset("import import_statement import_from_statement decorator require".split())
"""What loads or calls something beside a test: kinds of nodes, and a function of Node."""


def _set_up_matters(found: Found) -> bool:
    """Whether a fixture of this file that the test uses calls the product, or what a set-up of its
    class made of the product is used."""
    parsed = found.parsed
    if parsed.language != "python":
        return False
    if _uses_what_was_set_up(found):
        return True
    defined = context_of(parsed).defined
    names = map(parsed.text, parts_of(found.function, "parameters"))
    used = [one for name in names for one in defined.get(name, ())]
    return any(_calls_product(parsed, call, frozenset()) for one in used for call in walk(one))


def _uses_what_was_set_up(found: Found) -> bool:
    """Whether a test uses `self.shop`, which another method of its class made of the product."""
    parsed = found.parsed
    classes = around(found.whole, "class_definition")
    if not classes:
        return False
    used = {parsed.text(one) for one in walk(found.body) if one.type == "attribute"}
    for node in walk(classes[-1]):
        target, value = field(node, "left"), field(node, "right")
        if node.type != "assignment" or target is None or value is None:
            continue
        elsewhere = parsed.text(target) in used and not inside(found.body, node)
        if elsewhere and any(_calls_product(parsed, one, frozenset()) for one in walk(value)):
            return True
    return False


def _language_names(parsed: Parsed) -> frozenset[str]:
    kind = "script" if parsed.language in SCRIPTS else parsed.language
    return _OF_THE_LANGUAGE[kind]


def _own_names(found: Found) -> frozenset[str]:
    """Return the variables of a test whose values come only from the test itself."""
    parsed = found.parsed
    known = _language_names(parsed)
    values: dict[str, list[Node]] = {}
    for node in walk(found.body):
        bound = binding(node)
        if bound is not None and bound[0].type in _TARGETS:
            values.setdefault(parsed.text(bound[0]), []).append(bound[1])
    # In Python they are fixtures, which the test tool does not make up.
    own = set() if parsed.language == "python" else parameter_names(found)
    while True:
        more = {
            name
            for name, given in values.items()
            if name not in own and all(_is_own(parsed, value, own | known) for value in given)
        }
        if not more:
            return frozenset(own)
        own |= more


_TARGETS = ("identifier", "expression_list")


def _is_own(parsed: Parsed, node: Node, known: set[str] | frozenset[str]) -> bool:
    """Whether an expression only uses known names."""
    return all(name in known for name in _roots(parsed, node))


def _roots(parsed: Parsed, node: Node) -> list[str]:
    """Return the first name of each part of an expression; members do not count."""
    return [
        parsed.text(one)
        for one in walk(node)
        if one.type in ("identifier", "type_identifier", "shorthand_property_identifier")
        and not _is_member(one)
    ]


def _is_member(node: Node) -> bool:
    parent = node.parent
    if parent is None:
        return False
    if parent.type in ("attribute", "keyword_argument", "method_invocation"):
        for label in ("attribute", "name"):
            if field(parent, label) == node:
                return parent.type != "method_invocation" or field(parent, "object") is not None
    return parent.type in ("pair", "keyed_element") and field(parent, "key") == node


def _says_something(parsed: Parsed, stated: Stated, own: frozenset[str]) -> bool:
    """Whether an assertion could be false."""
    known = own | _language_names(parsed)
    operands = list(stated.operands)
    if not operands or all(_is_own(parsed, one, known) for one in operands):
        return False
    return not _equals_itself(parsed, stated)


def _equals_itself(parsed: Parsed, stated: Stated) -> bool:
    """Whether it is `assert x == x`, `assertEqual(x, x)` or `expect(x).toBe(x)`."""
    operands = list(stated.operands)
    if len(operands) == 1:
        sides = [one for one in operands[0].children if one.is_named]
        operands = sides if operands[0].type in _COMPARISONS else operands
    texts = [normal(parsed, one) for one in operands]
    texts = [re.sub(r"^expect \( (.*) \) \. .*$", r"\1", text) for text in texts]
    plain = all(not any(one.type in _CALLS for one in walk(node)) for node in operands[1:])
    return len(texts) == 2 and texts[0] == texts[1] and plain


_COMPARISONS = ("comparison_operator", "binary_expression")


def _calls_product(parsed: Parsed, node: Node, own: frozenset[str]) -> bool:
    """Whether a node calls something that is neither the language's nor the test tool's."""
    if node.type not in _CALLS:
        return False
    known = own | _language_names(parsed)
    callee = field(node, "function") or field(node, "constructor") or field(node, "macro")
    target = callee if callee is not None else field(node, "object") or field(node, "name")
    if target is None:
        return False
    roots = _roots(parsed, target) or [parsed.text(target)]
    names = [one for one in walk(target) if one.type in NAMES]
    return bool(names) and any(name not in known for name in roots)


def _is_dropped(node: Node, found: Found) -> bool:
    """Whether every error of a node is caught and dropped."""
    for tried in around(node, "try_statement"):
        body = field(tried, "body")
        if body is None or not inside(body, node) or not inside(found.body, tried):
            continue
        kinds = ("except_clause", "catch_clause")
        catches = [one for one in tried.named_children if one.type in kinds]
        handled = {one.type for catch in catches for one in walk(catch)}
        if catches and handled.isdisjoint((*_CALLS, "raise_statement", "throw_statement")):
            return True
    return False
