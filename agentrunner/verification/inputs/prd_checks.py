"""What a PRD says in words, and what it says in the commands of its checks. Pure."""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.shell import ALSO_LOOK, COMPARES, LOOKS, PASSES_ON, steps_of

CHECK = lazy_regex(r"\(?\s*(?:check|確認|チェック)\s*[:：]\s*`(?P<command>[^`\n]*)`", re.IGNORECASE)
ABSENT = lazy_regex(
    r"(?:\btest\s+!|\[\s+!|!\s+test|!\s+\[)\s+-[aefd]\s+(?:\./)?[\"']?([\w@+./*~-]+)", re.ASCII
)
"""A check that wants a path to be gone."""
MOST = 200_000


def outside_of_checks(text: str) -> str:
    """Return a PRD without the commands of its checks: what it says in words."""
    return CHECK.sub("", text)


def wanted_gone(check: str) -> set[str]:
    """Return paths that, according to a check's text, have to be gone for it to pass."""
    return {found[1] for found in ABSENT.finditer(check)}


def is_looked_at(command: str, word: str) -> bool:
    """Whether a command names a path and only looks at it, so that the path may well change.

    It does not only look if it compares the path with anything but its own copy of it.
    """
    own = [step for step in steps_of(command) if word in step.words or word in step.reads]
    copies = {step.words[-1] for step in own if step.words[0] == "cp"}
    for step in own:
        program = step.words[0]
        if program in COMPARES:
            if copies.isdisjoint(step.words):
                return False
        elif program not in LOOKS | PASSES_ON | ALSO_LOOK | {"cp"} or "-f" in step.words[1:-1]:
            return False
    return bool(own)
