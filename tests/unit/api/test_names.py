"""The names of the API: all are there, typed, and importing them costs little."""

from __future__ import annotations

import ast
from pathlib import Path

import agentrunner.api as api


def test_every_name_of_the_api_is_there() -> None:
    assert [name for name in api.__all__ if not hasattr(api, name)] == []
    tree = ast.parse(Path(api.__file__).read_text("utf-8"))
    (static,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.asname: node.module
        for node in static.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == api._TYPES  # a type checker sees the same


def test_the_api_is_imported_without_what_it_drives() -> None:
    import subprocess
    import sys

    heavy = ("langgraph", "pydantic.main", "asyncio", "sqlite3")
    script = f"import sys, agentrunner.api; print([m for m in {heavy!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
