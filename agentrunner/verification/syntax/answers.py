"""What a function is handed, and what it gives back. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.emptied_functions import changed_functions
from agentrunner.verification.syntax.functions import Function, functions_of, own_nodes
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    condition_of,
    field,
    language_of,
    parameters_at,
    parse,
    statements,
    walk,
    without_brackets,
)
from agentrunner.verification.syntax.pinned import is_common, other_literal
from agentrunner.verification.syntax.text_functions import TextFunction, text_functions
from agentrunner.verification.syntax.tokens import Value, lexical_family, tokens, value_of
from agentrunner.verification.syntax.values import NOTHINGS, TRUTHS, another, is_literal, leaf

SIGNED = frozenset({"unary_operator", "unary_expression", "literal_value"})


class FixedAnswer(Struct, frozen=True):
    """The only answer of a function, which is handed something, that gave others before."""

    function: str
    """Its last name."""
    value: Value | None
    """None for true and false."""
    text: str
    line: int
    """Where it stands first, counted from 1."""
    edits: tuple[Edit, ...]
    """What makes it another, wherever the function gives it."""
    is_new: bool
    """Whether no function had this name before."""
    reads: bool
    """Whether the function reads anything that it is handed."""


CHOOSES = frozenset({"conditional_expression", "ternary_expression", "parenthesized_expression"})
RECEIVERS = frozenset({"self", "cls", "this"})
HEAD = lazy_regex(r"(?:->|\)\s*:|\))\s*bool(?:ean)?\b")
"""The type of what a function gives, in a head that states it."""
COMPARES = frozenset({"<", "<=", ">", ">=", "==", "===", "!=", "!==", "instanceof", "in"})
JOINS = frozenset({"&&", "||", "and", "or"})
SAYS = lazy_regex(
    r"(?:^|\.)(?:all|any|bool|isinstance|issubclass|hasattr|callable|Boolean|every|some|includes|test"
    r"|starts_?[wW]ith|ends_?[wW]ith|(?:is|has)(?:_|[A-Z])\w*|(?<=\.)is[a-z]+)$"
)
"""Functions of a language's own, and names by custom, that say yes or no."""


def parameters_of(function: Function) -> list[Node]:
    """Return the nodes of a function's parameters."""
    node = function.node
    if node.type in ("assignment", "var_spec"):
        node = next((one for one in walk(node) if field(one, "parameters") is not None), node)
    return parameters_at(node)


_DEFAULTS = {
    "default_parameter": "value", "typed_default_parameter": "value",
    "required_parameter": "value", "optional_parameter": "value", "assignment_pattern": "right",
    "object_assignment_pattern": "right",
}  # fmt: skip
"""Where a default stands in a parameter, by its kind."""


def parameter_names(function: Function) -> set[str]:
    """Return the names of what a function is handed, without those of types and defaults."""
    return {
        function.parsed.text(one)
        for parameter in parameters_of(function)
        for one in walk(parameter, _is_of_name)
        if one.type in ("identifier", "shorthand_property_identifier_pattern") and _is_of_name(one)
    }


def _is_of_name(node: Node) -> bool:
    """Whether a part of a parameter is neither its type nor what it is where nothing is given."""
    place = _DEFAULTS.get(node.parent.type) if node.parent is not None else None
    default = field(node.parent, place) if place and node.parent is not None else None
    return node.type not in ("type", "type_annotation") and (
        default is None or default.id != node.id
    )


def is_one_expression(function: Function) -> bool:
    """Whether a function has no statements: a lambda, or an arrow function without braces."""
    return function.node.type == "assignment" or (
        function.parsed.language in SCRIPTS and function.body.type != "statement_block"
    )


def answers_of(function: Function) -> Iterator[Node]:
    """Yield the expressions of which a function gives back one, each as it stands."""
    body = function.body
    if is_one_expression(function):
        given = [body]
    else:
        given = [
            value
            for one in own_nodes(body)
            if one.type in ("return_statement", "return_expression")
            for value in statements(one)[:1]
        ]
        last = statements(body)[-1:] if function.parsed.language == "rust" else []
        given += [one for one in last if one.type not in ("return_expression", "let_declaration")]
    while given:
        node = given.pop(0)
        if node.type in CHOOSES:
            parts = list(node.named_children)
            if node.type != "parenthesized_expression":
                parts = [one for one in parts if one != condition_of(node)]
            given = [*parts, *given]
        elif node.type == "expression_list" and node.named_child_count == 1:
            given.insert(0, node.named_children[0])
        elif node.type == "expression_statement":
            given = [*node.named_children[:1], *given]
        elif node.type == "if_expression":
            branches = (field(node, "consequence"), field(node, "alternative"))
            given = [*(one for one in branches if one is not None), *given]
        elif node.type in ("block", "else_clause"):
            given = [*statements(node)[-1:], *given]
        else:
            yield node


def is_generator(function: Function) -> bool:
    """Whether a function yields what it gives."""
    return any(one.type in ("yield", "yield_expression") for one in own_nodes(function.body))


def is_put_together(node: Node) -> bool:
    """Whether a string holds values that are worked out."""
    return any(one.type in ("interpolation", "template_substitution") for one in walk(node))


def says_yes_or_no(source: bytes, language: str, name: str) -> bool:
    """Whether every function of this last name in a file gives back what is true or false."""
    parsed = parse(source, language)
    functions = functions_of(parsed) if parsed is not None else []
    found = [one for one in functions if one.last_name == name]
    return bool(found) and all(_says_so(one) for one in found)


def _says_so(function: Function) -> bool:
    """Whether a function's head says so, or each of its answers."""
    parsed = function.parsed
    head = parsed.source[function.node.start_byte : function.body.start_byte]
    if HEAD.search(head.decode("utf-8", "replace")):
        return True
    given = list(answers_of(function))
    return bool(given) and all(_is_yes_or_no(parsed, one) for one in given)


def _is_yes_or_no(parsed: Parsed, expression: Node) -> bool:
    node = without_brackets(expression)
    if node.type in ("true", "false", "comparison_operator", "not_operator"):
        return True
    if node.type in ("call", "call_expression"):
        return SAYS.search(parsed.text(node, "function")) is not None
    operator = parsed.text(node, "operator")
    if operator in JOINS:  # which give back one of both
        sides = (field(node, "left"), field(node, "right"))
        return all(one is not None and _is_yes_or_no(parsed, one) for one in sides)
    return operator == "!" or operator in COMPARES


def fixed_answers(before: bytes | None, after: bytes, path: str) -> list[FixedAnswer]:
    """Return the fixed answers of functions that the work has added or changed.

    A function that gave only literals before has none, for the work may well give others, but
    where these were stubs: nothing, zero and the like.
    """
    language, family = language_of(path), lexical_family(path, after) or ""
    if language is not None:
        return list(_in_tree(before, after, language, family))
    return list(_in_text(before or b"", after, family))


def _in_tree(
    before: bytes | None, after: bytes, language: str, family: str
) -> Iterator[FixedAnswer]:
    old = parse(before, language)
    was: dict[str, list[Function]] = {}
    for one in functions_of(old) if old is not None else ():
        was.setdefault(one.name, []).append(one)
    for one in changed_functions(before, after, language, inner=True):
        former = was.get(one.name, [])
        answers = list(answers_of(one))
        texts = {one.parsed.text(node) for node in answers}
        if len(texts) != 1 or not _is_fixed(answers[0]) or answers[0].type in NOTHINGS:
            continue
        if is_generator(one):
            continue
        handed = bool(former) and _reads(former[0])
        if not (handed or parameter_names(one) - RECEIVERS):
            continue
        text = texts.pop()
        value = None if text in TRUTHS else _value(text, family)
        gave = [one for one in former if _gave_literals(one)]
        if gave and not (_is_own(value) and all(_is_stub(one, family) for one in gave)):
            continue
        if value is None and text not in TRUTHS:
            continue
        edits = [
            another(one.parsed, inner) for node in answers if (inner := leaf(node)) is not None
        ]
        yield FixedAnswer(
            one.last_name,
            value,
            text,
            answers[0].start_point.row + 1,
            tuple(edit for edit in edits if edit is not None),
            not former,
            _reads(one),
        )


def _is_fixed(node: Node) -> bool:
    if node.type in SIGNED and node.named_child_count == 1:
        node = node.named_children[0]
    return is_literal(node) and not is_put_together(node)


def _gave_literals(function: Function) -> bool:
    answers = [one for one in answers_of(function) if one.type not in NOTHINGS]
    return bool(answers) and all(map(_is_fixed, answers))


def _is_own(value: Value | None) -> bool:
    """Whether a value is one that says something."""
    return value is not None and not is_common(value)


def _is_stub(function: Function, family: str) -> bool:
    """Whether a function that gave only literals gave nothing, zero and the like."""
    texts = [function.parsed.text(one) for one in answers_of(function)]
    return not any(_is_own(_value(text, family)) for text in texts)


def _reads(function: Function) -> bool:
    """Whether a function reads what it is handed, or the object that it belongs to."""
    names = parameter_names(function) | RECEIVERS
    leaves = (one for one in walk(function.body) if not one.named_child_count)
    return any(function.parsed.text(one) in names for one in leaves)


def _value(text: str, family: str) -> Value | None:
    read = tokens(to_bytes(text), family)
    value = value_of(read[-1]) if read else None
    if value is not None and value[0] == "number" and read[0].text == "-":
        return "number", f"-{value[1]}"
    return value if len(read) == 1 else None


def _in_text(before: bytes, after: bytes, family: str) -> Iterator[FixedAnswer]:
    was: dict[str, list[TextFunction]] = {}
    for one in text_functions(before, family):
        was.setdefault(one.name, []).append(one)
    for one in text_functions(after, family):
        former = was.get(one.name, [])
        if one.read or one.reads_object or any(one.body == old.body for old in former):
            continue
        if not (one.parameters or any(old.reads_object for old in former)):
            continue
        literals = [(token, value) for token in one.tokens if (value := value_of(token))]
        others = [token for token in one.tokens if token.kind == "name"]
        if len(literals) != 1 or {token.text for token in others} - {"return", "end"}:
            continue
        gave = [one for one in former if not (one.read or one.reads_object) and _literals(one)]
        stubs = _is_own(literals[0][1]) and not any(map(_is_own, chain(*map(_literals, gave))))
        if gave and len(gave) == len(former) and not stubs:
            continue
        (token, value), start = literals[0], literals[0][0].start
        edit = Edit(start, token.end, other_literal(token.text, value))
        yield FixedAnswer(one.name, value, token.text, token.line, (edit,), not former, False)


def _literals(function: TextFunction) -> list[Value]:
    return [value for token in function.tokens if (value := value_of(token))]
