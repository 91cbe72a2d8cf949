"""A command found in a repository, and the readers that all finders use."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any


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


def read_json(text: str) -> Any:
    """Return the value of a JSON text, None if it is invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_toml(text: str) -> Any:
    """Return the value of a TOML text, None if it is invalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def mapping(value: Any) -> dict[str, object]:
    """Return the value if it is a mapping, else {}."""
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """Return the texts in a list; a single text counts as a list of one."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
