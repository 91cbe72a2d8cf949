"""Make targets that the PRD asks for: their new recipe lines are made to do nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.prd_checks import outside_of_checks
from agentrunner.verification.inputs.shell import steps_of

MAKES = frozenset({"make", "gmake"})
MAKEFILE = lazy_regex(r"(?:.*/)?(?:GNUmakefile|[mM]akefile|[^/]*\.(?:mk|mak|make))")
WORD = lazy_regex(r"[A-Za-z][\w-]*")
MOST_LINES = 5_000


def targets_of(command: str) -> set[str]:
    """Return the targets that a command passes to make."""
    return {
        word
        for step in steps_of(command)
        if step.words and step.words[0].rpartition("/")[2] in MAKES
        for word in step.words[1:]
        if WORD.fullmatch(word)
    }


def is_wanted(prd_text: str, targets: Collection[str], stood: Collection[bytes] = ()) -> bool:
    """Whether a PRD mentions each of these as a make target, outside its checks.

    One that the makefiles before the run have (`stood`, their texts) has to be one whose makefile
    the PRD names.
    """
    text = outside_of_checks(prd_text)
    mark = r"[`'\"*]*"
    names_makefile = re.search(r"(?i)\b(?:GNU)?makefile\b", text)
    for one in targets:
        head = re.compile(to_bytes(rf"(?m)^{re.escape(one)}[ \t]*:(?!=)"))
        if not names_makefile and any(head.search(makefile) for makefile in stood):
            return False
    return bool(targets) and all(
        re.search(
            rf"(?i)\b(?:make|targets?|ターゲット)\s*{mark}{re.escape(one)}\b"
            rf"|(?<![\w-]){re.escape(one)}{mark}\s*(?:という)?(?:make\s+)?(?:の)?\s*(?:targets?\b|ターゲット)",
            text,
        )
        for one in targets
    )


def idle(before: str, after: str) -> str | None:
    """Return `after` with its new recipe lines doing nothing; None if it has no new ones."""
    old_lines, new_lines = before.splitlines(), after.splitlines()
    if max(len(old_lines), len(new_lines)) > MOST_LINES:
        return None
    new = [index for index in _added(old_lines, new_lines) if new_lines[index].startswith("\t")]
    for index in new:
        new_lines[index] = "\t@:"
    return "\n".join([*new_lines, ""]) if new else None


def _added(old_lines: list[str], new_lines: list[str]) -> Iterator[int]:
    for tag, _, _, start, end in SequenceMatcher(
        None, old_lines, new_lines, autojunk=False
    ).get_opcodes():
        if tag in ("insert", "replace"):
            yield from range(start, end)
