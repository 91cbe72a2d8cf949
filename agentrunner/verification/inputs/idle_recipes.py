"""Targets of make that the PRD asks for: recipes of which the new lines do nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher

from agentrunner.verification.inputs.asked import outside_of_checks
from agentrunner.verification.inputs.shell import steps_of

MAKES = frozenset({"make", "gmake"})
MAKEFILE = re.compile(r"(?:.*/)?(?:GNUmakefile|[mM]akefile|[^/]*\.(?:mk|mak|make))")
WORD = re.compile(r"[A-Za-z][\w-]*")
MOST_LINES = 5_000


def targets_of(command: str) -> set[str]:
    """The targets that a command hands to make."""
    return {
        word
        for step in steps_of(command)
        if step.words and step.words[0].rpartition("/")[2] in MAKES
        for word in step.words[1:]
        if WORD.fullmatch(word)
    }


def is_wanted(prd_text: str, targets: Collection[str]) -> bool:
    """Whether a PRD speaks of each of these as a target of make, outside of its checks."""
    text = outside_of_checks(prd_text)
    mark = r"[`'\"*]*"
    return bool(targets) and all(
        re.search(
            rf"(?i)\b(?:make|targets?|ターゲット)\s*{mark}{re.escape(one)}\b"
            rf"|(?<![\w-]){re.escape(one)}{mark}\s*(?:という)?(?:make\s+)?(?:の)?\s*(?:targets?\b|ターゲット)",
            text,
        )
        for one in targets
    )


def idle(before: str, after: str) -> str | None:
    """`after` with recipe lines that `before` lacks doing nothing; None where there are none."""
    one, two = before.splitlines(), after.splitlines()
    if max(len(one), len(two)) > MOST_LINES:
        return None
    new = [index for index in _added(one, two) if two[index].startswith("\t")]
    for index in new:
        two[index] = "\t@:"
    return "\n".join([*two, ""]) if new else None


def _added(one: list[str], two: list[str]) -> Iterator[int]:
    for tag, _, _, start, end in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            yield from range(start, end)
