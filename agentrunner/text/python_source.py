"""Python that others wrote, as a syntax tree."""

from __future__ import annotations

import ast
import warnings
from functools import cache


def python_tree(text: str) -> ast.Module | None:
    """Return the syntax tree of a source; None for what is no Python, or nests too deep."""
    _silence()
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _silence() -> None:
    """Python from 3.12 on prints what it finds odd in a source, also where it is only read."""
    warnings.filterwarnings("ignore", module="<unknown>")
