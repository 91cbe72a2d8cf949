"""Functions that give one answer whatever they are asked: tests of the work tell them apart. Pure.

A stand-in has the name and the parameters of a function and does no work: it gives back what it was
handed first, or always one of the values that the function itself states as an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from agentrunner.verification.syntax.answers import (
    RECEIVERS,
    answers_of,
    is_put_together,
    parameter_names,
    parameters_of,
)
from agentrunner.verification.syntax.edits import Edit, applied, replaced
from agentrunner.verification.syntax.emptied_functions import changed_functions, last_name
from agentrunner.verification.syntax.ends import own_nodes
from agentrunner.verification.syntax.functions import (
    NESTED,
    Function,
    altered,
    functions_of,
    is_docstring,
)
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    parse,
    statements,
    walk,
)
from agentrunner.verification.syntax.values import NOTHINGS, is_literal

MOST = 2
"""The most stand-ins of one function: each costs a run of tests."""
OTHER_TEXT = "gives some other text"
PARAMETER = frozenset(
    "parameter parameter_declaration required_parameter optional_parameter typed_parameter "
    "default_parameter typed_default_parameter formal_parameter".split()
)


@dataclass(frozen=True)
class StandIn:
    """A source in which one function is replaced by a stand-in."""

    source: bytes
    what: str
    """What the function does here, to follow its name in a message."""
    own: bool = False
    """Whether the function itself does no more than that."""
    constant: bool = False
    """Whether it gives one value, which one honest test may ask for."""


def new_functions(before: bytes | None, after: bytes, language: str) -> set[str]:
    """Last names of the functions that the work added: no function was called so before."""
    old = parse(before, language) if before is not None else None
    known = {last_name(one) for one in altered(None, old)} if old is not None else set()
    _, functions = changed_functions(before, after, language, inner=True)
    return {last_name(one) for one in functions} - known


def stand_ins(
    before: bytes | None, after: bytes, language: str, name: str, wanted: str
) -> list[StandIn]:
    """The stand-ins of the one function of this last name; none where there are several that
    differ.

    A function that is a stand-in itself has one as well, unless `wanted` names its only answer.
    Functions without parameters have none: they may well have one answer.
    """
    parsed, functions = changed_functions(before, after, language, inner=True)
    functions = [one for one in functions if last_name(one) == name]
    if parsed is None or len({parsed.text(one.node) for one in functions}) != 1:
        return []
    function = functions[-1]
    first = _first_parameter(parsed, function)
    if first is None or any(
        one.type in ("yield", "yield_expression") for one in own_nodes(function.body, NESTED)
    ):
        return []
    only = _only_answer(parsed, function)
    found: list[StandIn] = []
    for text, what in _answers(parsed, function, first):
        own, constant = only == text, what not in (_handed_back(first), OTHER_TEXT)
        if own and constant and _is_named(text, wanted):
            continue
        edit = _answering(parsed, function, text)
        changed = applied(after, [edit]) if edit is not None else after
        if own or changed != after:
            found.append(StandIn(after if own else changed, what, own, constant))
    other = [one for one in found if one.what == OTHER_TEXT]
    return [*[one for one in found if one not in other][:MOST], *other]


def reads_a_parameter(parsed: Parsed, function: Function) -> bool:
    """Whether a function uses any of what it is handed; true where it is handed nothing."""
    names = parameter_names(parsed, function)
    return not names or any(parsed.text(one) in names for one in walk(function.body))


def unread(before: bytes | None, after: bytes, language: str) -> set[tuple[str, str]]:
    """Functions, by last name, with parameters that they only now have, and that no function of
    that name reads."""
    old = parse(before, language) if before is not None else None
    parsed, functions = changed_functions(before, after, language, inner=True)
    if parsed is None:
        return set()
    had: dict[str, set[str]] = {}
    if old is not None:
        for one in functions_of(old):
            had.setdefault(last_name(one), set()).update(parameter_names(old, one))
    idle: set[tuple[str, str]] = set()
    read: set[tuple[str, str]] = set()
    for one in functions:
        name = last_name(one)
        used = {parsed.text(node) for node in walk(one.body)}
        for parameter in parameter_names(parsed, one) - had.get(name, set()):
            (read if parameter in used else idle).add((name, parameter))
    return idle - read


def _answers(parsed: Parsed, function: Function, first: str) -> Iterator[tuple[str, str]]:
    """The answers that a stand-in may give, and what that is, in words."""
    if _may_hand_back(parsed, function):
        yield first, _handed_back(first)
    for text in dict.fromkeys(parsed.text(one) for one in _stated_answers(parsed, function)):
        yield text, f"always gives `{text}`"
    if (other := _other_text(parsed, function)) is not None:
        yield other, OTHER_TEXT


def _other_text(parsed: Parsed, function: Function) -> str | None:
    """A text that no test can expect, where the function may give texts."""
    label = {"go": "result", "java": "type", "python": "return_type"}.get(parsed.language)
    gives = field(function.node, label) if label is not None else None
    if parsed.language in ("go", "java", "rust") and gives is None:
        return None
    if any("string" not in one.type for one in _stated_answers(parsed, function)):
        return None
    if gives is not None and parsed.text(gives).strip("\"'") not in ("str", "string", "String"):
        return None
    return f'"{OTHER_TEXT}"'


def _handed_back(first: str) -> str:
    return f"gives back `{first}` as it is"


def _is_named(text: str, wanted: str) -> bool:
    return text.strip("\"'`").casefold() in wanted.casefold()


def _first_parameter(parsed: Parsed, function: Function) -> str | None:
    """The name of the first parameter that is not the object itself."""
    for one in parameters_of(function):
        node = one
        if node.type in PARAMETER:
            named = field(node, "name") or field(node, "pattern")
            node = named if named is not None else (node.named_children or [node])[0]
        if node.type == "assignment_pattern":
            node = field(node, "left") or node
        text = parsed.text(node)
        if text in RECEIVERS or one.type == "self_parameter":
            continue
        return text if node.type == "identifier" else None
    return None


def _may_hand_back(parsed: Parsed, function: Function) -> bool:
    """Whether the first parameter is of the type that the function gives."""
    if parsed.language == "python" or parsed.language in SCRIPTS:
        return True
    label = {"go": "result", "rust": "return_type", "java": "type"}[parsed.language]
    gives = field(function.node, label)
    own = [one for one in parameters_of(function) if one.type in PARAMETER]
    takes = field(own[0], "type") if own else None
    if gives is None or takes is None:
        return False
    return parsed.text(gives) == parsed.text(takes)


def _stated_answers(parsed: Parsed, function: Function) -> Iterator[Node]:
    """The literals that a function gives back as they stand, without those for nothing at all."""
    for node in answers_of(parsed, function):
        if is_literal(node) and node.type not in NOTHINGS and not is_put_together(node):
            yield node


def _only_answer(parsed: Parsed, function: Function) -> str | None:
    """The text of what a function gives back, where its body is nothing but that."""
    body = function.body
    if function.node.type == "assignment" or (
        parsed.language in SCRIPTS and body.type != "statement_block"
    ):
        while body.type == "parenthesized_expression" and body.named_child_count == 1:
            body = body.named_children[0]
        return parsed.text(body)
    parts = [one for one in statements(body) if not is_docstring(parsed, one)]
    if len(parts) != 1:
        return None
    given = statements(parts[0])[:1] if parts[0].type in ("return_statement",) else parts
    return parsed.text(given[0]) if given else None


def _answering(parsed: Parsed, function: Function, answer: str) -> Edit | None:
    """The edit by which a function answers at once."""
    body, language = function.body, parsed.language
    if function.node.type == "assignment":
        return replaced(body, answer)
    if language == "python":
        parts = statements(body)
        kept = parts[1:] if parts and is_docstring(parsed, parts[0]) else parts
        return Edit(kept[0].start_byte, kept[-1].end_byte, f"return {answer}") if kept else None
    if language in SCRIPTS:
        kind = "" if language == "javascript" else " as any"
        return replaced(body, f"{{ return {answer}{kind}; }}")
    if language == "java":
        return replaced(body, f"{{ return {answer}; }}")
    at = body.start_byte + 1  # what follows still compiles and uses the imports
    text = f"\n\treturn {answer}\n" if language == "go" else f" if true {{ return {answer}; }}"
    return Edit(at, at, text)
