"""Functions that only raise an exception: they are there, and do nothing yet."""

from __future__ import annotations

import re

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.emptied_functions import (
    changed_functions,
    done_at_once,
    emptied,
)
from agentrunner.verification.syntax.functions import Function, own_nodes
from agentrunner.verification.syntax.languages import SCRIPTS, Parsed, field, statements, walk
from agentrunner.verification.syntax.stand_ins import new_functions, reads_a_parameter

UNWRITTEN = {
    "python": frozenset({"NotImplementedError"}),
    "rust": frozenset({"todo", "unimplemented"}),
}
"""What a language has for code which is still to be written."""
ERRORS = lazy_regex(
    r"(?i)\b(?:rais(?:es?|ed|ing)|throw(?:s|n|ing)?|errors?|exceptions?|panics?|reject\w*|refus\w*"
    r"|unsupported|forbidden)\b|エラー|例外|拒否"
)
"""Words by which a text asks for an exception."""
KIND = lazy_regex(r"\b[A-Z]\w*(?:Error|Exception|Failure|Warning|Exit)\b|\b(?:[A-Z]\w+)(?=\()")
GENERAL = frozenset({"Error", "Exception"})
STRING = lazy_regex(r"\"([^\"\n]{4,})\"|'([^'\n]{4,})'|`([^`\n]{4,})`")
RAISES = {"python": "raise_statement", "java": "throw_statement"} | dict.fromkeys(
    SCRIPTS, "throw_statement"
)
ELSE = frozenset(
    "block statement_block else_clause expression_statement if_statement if_expression "
    "match_statement case_clause case_block match_block match_arm switch_statement switch_body "
    "switch_default default_case expression_switch_statement expression_case match_expression "
    "switch_expression switch_block switch_block_statement_group".split()
)
"""Nodes of which the last part is what runs where no other part does."""


class Raising(Struct, frozen=True):
    """A function that raises where it should work."""

    statement: Node
    whole: bool
    """Whether its body is nothing but that."""


def raising(function: Function, wanted: str, *, new: bool = True) -> Raising | None:
    """How a function raises in place of its work; None where it does not, or where the text
    `wanted` asks for such an exception.

    Its whole body is one such statement, or it has what its language has for code that is still to
    be written, or it is `new` and raises at its end, where nothing else of it applies.
    """
    if function.body.type not in ("block", "statement_block", "constructor_body"):
        return None
    parsed, kept = function.parsed, function.work
    if len(kept) == 1 and _raises(parsed, kept[0]):
        of_use = reads_a_parameter(function)
        asked = is_asked_for(parsed, kept[0], wanted, of_use=of_use or not new)
        return None if asked else Raising(kept[0], True)
    for node in own_nodes(function.body):
        if _is_unwritten(parsed, node) and not is_asked_for(parsed, node, wanted):
            return Raising(node, False)
    last = _last(parsed, kept[-1]) if new and len(kept) > 0 else None
    if last is None or is_asked_for(parsed, last, wanted):
        return None
    return Raising(last, False)


def is_asked_for(parsed: Parsed, statement: Node, wanted: str, *, of_use: bool = True) -> bool:
    """Whether a text asks for the exception of a statement.

    It names its kind or its message. Where it only speaks of exceptions, that is no more than a
    hint: it does not stand for code that is still to be written, nor, without `of_use`, for a
    function that does nothing with what it is handed.
    """
    text = parsed.text(statement)
    kinds = set(KIND.findall(text)) - GENERAL
    texts = ["".join(one) for one in STRING.findall(text)]
    if not kinds.isdisjoint(re.findall(r"\w+", wanted)) or any(one in wanted for one in texts):
        return True
    return of_use and not _is_unwritten(parsed, statement) and ERRORS.search(wanted) is not None


def _is_unwritten(parsed: Parsed, node: Node) -> bool:
    """Whether a statement is what its language has for code that is still to be written."""
    names = UNWRITTEN.get(parsed.language, frozenset())
    return _raises(parsed, node) and any(
        one.type == "identifier" and parsed.text(one) in names for one in walk(node)
    )


def _last(parsed: Parsed, node: Node) -> Node | None:
    """The statement that raises where nothing else in `node` applies; None if it does not."""
    while not _raises(parsed, node):
        parts = statements(node) if node.type in ELSE else []
        is_guard = node.type.startswith("if_") and field(node, "alternative") is None
        if not parts or is_guard:
            return None
        node = parts[-1]
    return node


def only_raising(
    before: bytes | None, after: bytes, language: str, wanted: str
) -> tuple[bytes, bool]:
    """`after` with changed functions doing nothing but raise where they raise in place of work.

    The other changed functions are empty. Also whether there is any such function.
    """
    edits: list[Edit | None] = []
    found = False
    new = new_functions(before, after, language)
    for function in changed_functions(before, after, language):
        one = raising(function, wanted, new=function.last_name in new)
        if one is None:
            edits.append(emptied(function))
        elif not one.whole:
            edits.append(done_at_once(function, function.parsed.text(one.statement)))
        found = found or one is not None
    return applied(after, [edit for edit in edits if edit is not None]), found


def find_only_raising(before: bytes | None, after: bytes, language: str, wanted: str) -> set[str]:
    """Last names of changed functions of which each does nothing but raise, unasked."""
    new = new_functions(before, after, language)
    idle: set[str] = set()
    others: set[str] = set()
    for function in changed_functions(before, after, language, inner=True):
        found = raising(function, wanted, new=function.last_name in new)
        (idle if found is not None and found.whole else others).add(function.last_name)
    return idle - others


def find_unwritten(source: bytes, language: str) -> set[str]:
    """Last names of functions of which each does nothing, or nothing but raise: what is to be."""
    functions = changed_functions(None, source, language, inner=True)
    written = {one.last_name for one in functions if emptied(one) is not None}
    return {one.last_name for one in functions} - (
        written - find_only_raising(None, source, language, "")
    )


def _raises(parsed: Parsed, node: Node) -> bool:
    """Whether a statement raises: also `panic` in Go and Rust."""
    if (kind := RAISES.get(parsed.language)) is not None:
        return node.type == kind
    if parsed.language == "go":
        call = node.named_children[0] if node.type == "expression_statement" else None
        return parsed.text(call, "function") == "panic"
    if parsed.language == "rust":
        if node.type == "expression_statement" and node.named_children:
            node = node.named_children[0]
        return parsed.text(node, "macro") in ("panic", "todo", "unimplemented")
    return False
