"""What a function is handed, and what it gives back. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.functions import Function, functions_of, own_nodes
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    condition_of,
    field,
    parameters_at,
    parse,
    statements,
    walk,
    without_brackets,
)

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


PUT_IN = lazy_regex(r"(?<!\{)\{(?:\{\{)*([A-Za-z_]\w*)(?=[:}])")
"""A name in a text of Rust."""
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


def texts_within(function: Function) -> set[str]:
    """Return the texts of all that a function's body is made of, and the names that a text of Rust
    puts in: `{prefix}`."""
    parsed = function.parsed
    found = {parsed.text(one) for one in walk(function.body)}
    if parsed.language == "rust":
        texts = [text for text in found if text.startswith(('"', 'r"', "r#"))]
        found |= {name for text in texts for name in PUT_IN.findall(text)}
    return found


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
