"""Parameters that no function reads, in languages that are read by patterns. Pure."""

from __future__ import annotations

from agentrunner.verification.syntax.text_functions import text_functions
from agentrunner.verification.syntax.tokens import lexical_family


def unread_in_text(before: bytes, after: bytes, path: str) -> set[tuple[str, str]]:
    """Functions by name, with parameters that they only now have and that none of them reads."""
    family = lexical_family(path, after) or ""
    had = {(one.name, name) for one in text_functions(before, family) for name in one.parameters}
    read: set[tuple[str, str]] = set()
    idle: set[tuple[str, str]] = set()
    for one in text_functions(after, family):
        for name in one.parameters:
            if (one.name, name) not in had:
                (read if name in one.read else idle).add((one.name, name))
    return idle - read
