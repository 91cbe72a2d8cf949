"""Whether a function says no more than yes or no: by its head, or by each of its answers. Pure."""

from __future__ import annotations

import re

from tree_sitter import Node

from agentrunner.verification.syntax.answers import answers_of
from agentrunner.verification.syntax.emptied_functions import last_name
from agentrunner.verification.syntax.functions import Function, functions_of
from agentrunner.verification.syntax.languages import Parsed, field, parse

HEAD = re.compile(r"(?:->|\)\s*:|\))\s*bool(?:ean)?\b")
"""The type of what a function gives, in a head that states it."""
COMPARES = frozenset({"<", "<=", ">", ">=", "==", "===", "!=", "!==", "instanceof", "in"})
JOINS = frozenset({"&&", "||", "and", "or"})
SAYS = re.compile(
    r"(?:^|\.)(?:all|any|bool|isinstance|issubclass|hasattr|callable|Boolean|every|some|includes|test"
    r"|starts_?[wW]ith|ends_?[wW]ith|(?:is|has)(?:_|[A-Z])\w*|(?<=\.)is[a-z]+)$"
)
"""Functions of a language's own, and names by custom, that say yes or no."""


def says_yes_or_no(source: bytes, language: str, name: str) -> bool:
    """Whether every function of this last name in a file gives back what is true or false."""
    parsed = parse(source, language)
    if parsed is None:
        return False
    found = [one for one in functions_of(parsed) if last_name(one) == name]
    return bool(found) and all(_says_so(parsed, one) for one in found)


def _says_so(parsed: Parsed, function: Function) -> bool:
    head = parsed.source[function.node.start_byte : function.body.start_byte]
    if HEAD.search(head.decode("utf-8", "replace")):
        return True
    given = list(answers_of(parsed, function))
    return bool(given) and all(_is_yes_or_no(parsed, one) for one in given)


def _is_yes_or_no(parsed: Parsed, node: Node) -> bool:
    if node.type in ("true", "false", "comparison_operator", "not_operator"):
        return True
    if node.type == "parenthesized_expression":
        return all(_is_yes_or_no(parsed, one) for one in node.named_children)
    if node.type in ("call", "call_expression"):
        called = field(node, "function")
        return called is not None and SAYS.search(parsed.text(called)) is not None
    sign = field(node, "operator")
    if sign is None:
        return False
    operator = parsed.text(sign)
    if operator in JOINS:  # which give back one of both
        sides = (field(node, "left"), field(node, "right"))
        return all(one is not None and _is_yes_or_no(parsed, one) for one in sides)
    return operator == "!" or operator in COMPARES
