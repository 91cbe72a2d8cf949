"""Functions that give one answer whatever they are asked: tests of the work tell them apart. Pure.

A stand-in has the name and the parameters of a function and does no work: it gives back what it was
handed first, or always one of the values that the function itself states as an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.answers import (
    RECEIVERS,
    answers_of,
    is_generator,
    is_one_expression,
    is_put_together,
    parameter_names,
    parameters_of,
    texts_within,
)
from agentrunner.verification.syntax.edits import Edit, applied, replaced
from agentrunner.verification.syntax.emptied_functions import (
    changed_functions,
    done_at_once,
    emptied,
)
from agentrunner.verification.syntax.functions import RETURN_TYPE, Function, altered, own_nodes
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    condition_of,
    enclosing,
    field,
    parse,
    statements,
    walk,
    without_brackets,
)
from agentrunner.verification.syntax.values import NOTHINGS, is_literal

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
WITHIN = frozenset({"block", "expression_statement"})
QUOTED = lazy_regex(r"\"([^\"\n]+)\"|'([^'\n]+)'")
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


MOST = 2
"""The most stand-ins of one function: each costs a run of tests."""
OTHER_TEXT = "gives some other text"
PARAMETER = frozenset(
    "parameter parameter_declaration required_parameter optional_parameter typed_parameter "
    "default_parameter typed_default_parameter formal_parameter".split()
)


class StandIn(Struct, frozen=True):
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
    old = parse(before, language)
    known = {one.last_name for one in altered(None, old)} if old is not None else set()
    functions = changed_functions(before, after, language, inner=True)
    return {one.last_name for one in functions} - known


def stand_ins(
    before: bytes | None, after: bytes, language: str, name: str, wanted: str
) -> list[StandIn]:
    """The stand-ins of the one function of this last name; none where there are several that
    differ.

    A function that is a stand-in itself has one as well, unless `wanted` names its only answer.
    Functions without parameters have none: they may well have one answer.
    """
    functions = changed_functions(before, after, language, inner=True)
    functions = [one for one in functions if one.last_name == name]
    if len({one.parsed.text(one.node) for one in functions}) != 1:
        return []
    function = functions[-1]
    first = _first_parameter(function)
    if first is None or is_generator(function):
        return []
    only = _only_answer(function)
    found: list[StandIn] = []
    for text, what in _answers(function, first):
        own, constant = only == text, what not in (_handed_back(first), OTHER_TEXT)
        if own and constant and text.strip("\"'`").casefold() in wanted.casefold():
            continue
        edit = _answering(function, text)
        changed = applied(after, [edit]) if edit is not None else after
        if own or changed != after:
            found.append(StandIn(after if own else changed, what, own, constant))
    other = [one for one in found if one.what == OTHER_TEXT]
    return [*[one for one in found if one not in other][:MOST], *other]


def reads_a_parameter(function: Function) -> bool:
    """Whether a function uses any of what it is handed; true where it is handed nothing."""
    names = parameter_names(function)
    return not names or not names.isdisjoint(texts_within(function))


def _answers(function: Function, first: str) -> Iterator[tuple[str, str]]:
    """The answers that a stand-in may give, and what that is, in words."""
    if _may_hand_back(function):
        yield first, _handed_back(first)
    texts = (function.parsed.text(one) for one in _stated_answers(function))
    for text in dict.fromkeys(texts):
        yield text, f"always gives `{text}`"
    if (other := _other_text(function)) is not None:
        yield other, OTHER_TEXT


def _type_given(function: Function) -> Node | None:
    """The type of what a function gives; None where none is stated, as in JavaScript."""
    label = RETURN_TYPE.get(function.parsed.language)
    return field(function.node, label) if label is not None else None


def _other_text(function: Function) -> str | None:
    """A text that no test can expect, where the function may give texts."""
    gives, language = _type_given(function), function.parsed.language
    if language == "rust" or (gives is None and language in ("go", "java")):
        return None
    if any("string" not in one.type for one in _stated_answers(function)):
        return None
    named = function.parsed.text(gives).strip("\"'")
    if gives is not None and named not in ("str", "string", "String"):
        return None
    return f'"{OTHER_TEXT}"'


def _handed_back(first: str) -> str:
    return f"gives back `{first}` as it is"


def _first_parameter(function: Function) -> str | None:
    """The name of the first parameter that is not the object itself."""
    for one in parameters_of(function):
        node = one
        if node.type in PARAMETER:
            named = field(node, "name") or field(node, "pattern")
            node = named if named is not None else (node.named_children or [node])[0]
        if node.type == "assignment_pattern":
            node = field(node, "left") or node
        text = function.parsed.text(node)
        if text in RECEIVERS or one.type == "self_parameter":
            continue
        return text if node.type == "identifier" else None
    return None


def _may_hand_back(function: Function) -> bool:
    """Whether the first parameter is of the type that the function gives."""
    parsed, gives = function.parsed, _type_given(function)
    if parsed.language == "python" or parsed.language in SCRIPTS:
        return True
    own = [one for one in parameters_of(function) if one.type in PARAMETER]
    takes = field(own[0], "type") if own else None
    if gives is None or takes is None:
        return False
    return parsed.text(gives) == parsed.text(takes)


def _stated_answers(function: Function) -> Iterator[Node]:
    """The literals that a function gives back as they stand, without those for nothing at all."""
    for node in answers_of(function):
        if is_literal(node) and node.type not in NOTHINGS and not is_put_together(node):
            yield node


def _only_answer(function: Function) -> str | None:
    """The text of what a function gives back, where its body is nothing but that."""
    if is_one_expression(function):
        return function.parsed.text(without_brackets(function.body))
    parts = function.work
    if len(parts) != 1:
        return None
    given = statements(parts[0])[:1] if parts[0].type == "return_statement" else parts
    return function.parsed.text(given[0]) if given else None


def _answering(function: Function, answer: str) -> Edit | None:
    """The edit by which a function answers at once."""
    language = function.parsed.language
    if function.node.type == "assignment":
        return replaced(function.body, answer)
    if language in ("python", "go"):
        return done_at_once(function, f"return {answer}")
    kind = " as any" if language in ("typescript", "tsx") else ""
    return done_at_once(function, f"return {answer}{kind};")


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


def unwritten_branches(before: bytes, after: bytes, language: str) -> Iterator[tuple[Node, str]]:
    """Yield what is new, stands for code that is still to be written, and is reached by a
    condition; with the texts that this compares with, else its words."""
    known = before.decode("utf-8", "replace")
    for function in changed_functions(before, after, language) if language in UNWRITTEN else ():
        parsed = function.parsed
        for node in own_nodes(function.body):
            if _is_unwritten(parsed, node) and parsed.text(node) not in known:
                around = next(one for one in enclosing(node) if one.type not in WITHIN)
                case = [one for one in around.named_children if "pattern" in one.type]
                for condition in [condition_of(around), *case][:2]:
                    if condition is not None:
                        text = parsed.text(condition)
                        texts = ["".join(one) for one in QUOTED.findall(text)]
                        yield node, " ".join(texts) or text


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
