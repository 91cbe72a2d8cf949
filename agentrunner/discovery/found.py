"""A command found in a repository, and the line where it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FoundCommand:
    """A command and where it was found: ".github/workflows/test.yml, line 22"."""

    command: str
    where: str
    needs: str = field(default="", compare=False)
    """Why it cannot work before something is installed from the network; "" if it may."""


def line_of(text: str, pattern: str) -> int:
    """Return the number of the first line that starts with a match, 0 for none."""
    expression = re.compile(pattern)
    lines = enumerate(text.split("\n"), 1)
    return next((number for number, line in lines if expression.match(line[:500])), 0)
