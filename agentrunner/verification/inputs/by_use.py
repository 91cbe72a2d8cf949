"""Which code says no for a test, found by what the test calls, in any language. Pure.

How an import leads to a file differs from language to language. That a test hands the result of
the code to a function as a statement (`same(total([5]), 5)`), and that a function of that name
compares what it is given, does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentrunner.verification.stated_literals import comparing_functions

_CALL = (
    r"[ \t]*(?:await[ \t]+)?(?:\$?\w+(?:::|\.|->|\\))*(?P<name>\w+)!?(?:\(|[ \t]+)(?P<given>.*)$"
)
STATEMENTS = (re.compile(rf"(?m)^{_CALL}"), re.compile(rf"(?m)=>[ \t]*\{{?{_CALL}"))
"""Calls whose value nobody takes: lines, and the bodies of short functions."""
INNER = re.compile(r"[\w)\]]\(|\$\(|`")
"""Another call among what is handed over."""
NO_CALLS = frozenset(
    """if for while until unless return let const var my our local import from use require include
    def function fn func sub class struct public private static void int echo print printf puts do
    then else elif case when switch match type interface export module package new throw raise try
    expect describe it test suite context assert with except catch end begin set source""".split()
)


def called_as_statements(text: str) -> set[str]:
    """Functions to which a test hands the result of another call and a further value."""
    found = set()
    for hit in (hit for form in STATEMENTS for hit in form.finditer(text)):
        name, given = hit["name"], hit["given"]
        several = "," in given or re.search(r"[\"')]\s+\S", given)
        if name not in NO_CALLS and several and INNER.search(given):
            found.add(name)
    return found


def comparing(paths: Iterable[tuple[str, str]], wanted: Iterable[str]) -> dict[str, str]:
    """By name: the one file of (path, text) whose function of that name compares what it gets."""
    names = set(wanted)
    found: dict[str, list[str]] = {}
    for path, text in paths:
        if any(name in text for name in names):
            for name in names.intersection(comparing_functions(text)):
                found.setdefault(name, []).append(path)
    return {name: places[0] for name, places in found.items() if len(set(places)) == 1}
