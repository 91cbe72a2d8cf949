"""Parameters that functions newly have and do not read, in any language. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from agentrunner.verification.syntax.answers import parameter_names, texts_within
from agentrunner.verification.syntax.emptied_functions import changed_functions
from agentrunner.verification.syntax.functions import Function, functions_of
from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.text_functions import text_functions
from agentrunner.verification.syntax.tokens import lexical_family

_Read = dict[tuple[str, str], bool]
"""By function and parameter: whether any function of that name reads it."""


def unread_parameters(before: bytes | None, after: bytes, path: str) -> set[tuple[str, str]]:
    """Functions, by last name, with parameters that they only now have, and that no function of
    that name reads."""
    language = language_of(path)
    if language is None:
        family = lexical_family(path, after) or ""
        had, has = _in_text(before or b"", family), _in_text(after, family)
    else:
        old = parse(before, language)
        had = _in_tree(functions_of(old)) if old is not None else {}
        has = _in_tree(changed_functions(before, after, language, inner=True))
    return {one for one, is_read in has.items() if not is_read and one not in had}


def _in_tree(functions: Iterable[Function]) -> _Read:
    found: _Read = {}
    for one in functions:
        used = texts_within(one)
        for parameter in parameter_names(one):
            place = one.last_name, parameter
            found[place] = found.get(place, False) or parameter in used
    return found


def _in_text(source: bytes, family: str) -> _Read:
    found: _Read = {}
    for one in text_functions(source, family):
        for parameter in one.parameters:
            place = one.name, parameter
            found[place] = found.get(place, False) or parameter in one.read
    return found
