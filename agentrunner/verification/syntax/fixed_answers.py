"""Functions of the work that give one literal, whatever they are handed. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.syntax.answers import (
    RECEIVERS,
    answers_of,
    is_generator,
    is_put_together,
    parameter_names,
    texts_within,
)
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.emptied_functions import changed_functions
from agentrunner.verification.syntax.functions import Function, functions_of
from agentrunner.verification.syntax.languages import language_of, parse
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
    return not names.isdisjoint(texts_within(function))


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
