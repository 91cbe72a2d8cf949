"""Conditions that depend on nothing which is handed in, but on what surrounds the program. Pure.

`if sys.stdin.isatty()` is one, also by way of a variable or a function of the file; `if count > 3`
is none where `count` is a parameter, a field, the variable of a loop, or filled elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import (
    Parsed,
    condition_of,
    field,
    parse,
    statements,
    walk,
    without_brackets,
)
from agentrunner.verification.syntax.name_scopes import LOOP, OWNERS, NameScope, is_member

OPERATORS = {"python": ("or True", "and False")}
"""What makes a condition always true, and never, by language."""
OTHER_OPERATORS = ("|| true", "&& false")
LOUD = lazy_regex(
    r"^(?:raise|throw)\b|\b(?:panic!?|exit|Exit|abort|Err|Errorf|fatal|Fatal\w*)\(|\berrors\.New\("
)
"""A last statement that fails loudly, in any of the languages."""
STRING = lazy_regex(r"string|char_literal")
WORD = lazy_regex(r"[A-Z]+(?![a-z])|[A-Za-z][a-z0-9]*")


class Condition(Struct, frozen=True):
    """A condition of the work that only its surroundings decide."""

    text: str
    line: int
    """Counted from 1."""
    words: frozenset[str]
    """What a text that asks for it would name, in lower case: its strings, else its members."""
    always: Edit
    never: Edit


def ambient_conditions(
    before: bytes | None, after: bytes, language: str, own_modules: Collection[str]
) -> list[Condition]:
    """Return the conditions that a source has anew and that depend on nothing handed in.

    `own_modules` are names of the project's own modules: what comes from those is not followed.
    """
    parsed = parse(after, language)
    if parsed is None:
        return []
    old_source = parse(before, language) if before else None
    old = {_text(old_source, node) for node in _conditions(old_source)} if old_source else set()
    new = [one for one in _conditions(parsed) if _text(parsed, one) not in old]
    if not new:
        return []
    scope = NameScope.of(parsed, own_modules)
    return [
        _condition(parsed, node, [node, *values])
        for node in new
        if not _is_guard(parsed, node)
        and not _starts_a_program(parsed, node)
        and (values := scope.values_behind(node)) is not None
    ]


def _condition(parsed: Parsed, node: Node, parts: Collection[Node]) -> Condition:
    inner = without_brackets(node)
    always, never = OPERATORS.get(parsed.language, OTHER_OPERATORS)
    text = parsed.text(inner)
    words = {word for part in parts for word in _words(parsed, part)}
    return Condition(
        _text(parsed, node),
        node.start_point.row + 1,
        frozenset(word for word in words if len(word) > 1),
        Edit(inner.start_byte, inner.end_byte, f"({text}) {always}"),
        Edit(inner.start_byte, inner.end_byte, f"({text}) {never}"),
    )


def _words(parsed: Parsed, part: Node) -> set[str]:
    """The words of what a part asks for: of its strings, without one of its members."""
    strings = [parsed.text(one) for one in walk(part) if STRING.search(one.type)]
    members = [
        parsed.text(one)
        for one in walk(part)
        if one.named_child_count == 0 and is_member(one) and not _is_owner(one)
    ]
    return {word.lower() for one in strings or members for word in WORD.findall(one)}


def _conditions(parsed: Parsed) -> Iterator[Node]:
    for node in walk(parsed.root):
        condition = condition_of(node)
        if condition is not None and not LOOP.search(node.type) and "let" not in condition.type:
            yield condition


def _text(parsed: Parsed, node: Node) -> str:
    return " ".join(parsed.text(without_brackets(node)).split())


def _is_guard(parsed: Parsed, condition: Node) -> bool:
    """Whether what a condition leads to fails loudly: no wrong answer is given there."""
    parts = statements(field(condition.parent, "consequence"))
    return bool(parts) and LOUD.search(parsed.text(parts[-1])) is not None


def _starts_a_program(parsed: Parsed, condition: Node) -> bool:
    """Whether a condition at the top of a file only calls something: `if __name__ == …: main()`."""
    whole = condition.parent
    if whole is None or whole.parent != parsed.root or field(whole, "alternative"):
        return False
    return all(
        one.type == "expression_statement" and "assignment" not in one.named_children[0].type
        for one in statements(field(whole, "consequence"))
        if one.named_children
    )


def _is_owner(node: Node) -> bool:
    """Whether the member that this names has members that are named, too: `stdin.isatty`."""
    access = node.parent
    above = access.parent if access else None
    return above is not None and any(field(above, one) == access for one in OWNERS)
