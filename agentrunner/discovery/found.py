"""A command that was found in a repository, and readers that all finders use."""

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
    """Why it cannot work before something was installed with the network; "" where it may."""


def line_of(text: str, pattern: str) -> int:
    """The first line that begins with a match, 0 for none."""
    expression = re.compile(pattern)
    lines = enumerate(text.split("\n"), 1)
    return next((number for number, line in lines if expression.match(line[:500])), 0)


def read_json(text: str) -> Any:
    """The value of a JSON text, None where it is damaged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_toml(text: str) -> Any:
    """The value of a TOML text, None where it is damaged."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def mapping(value: Any) -> dict[str, object]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> list[str]:
    """The texts of a list; a text alone counts as a list of one."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
