"""The command line uses `agentrunner.api` for its verbs; the import rule is in pyproject.toml."""

from __future__ import annotations

import ast
from pathlib import Path

import agentrunner.commands

COMMANDS = sorted(Path(agentrunner.commands.__path__[0]).glob("*.py"))
BESIDE = {"undo", "answer", "accept"}
"""Methods of a plan's store and its conversation that are verbs of the API."""


def test_no_command_calls_a_verb_of_a_store_beside_the_api() -> None:
    found = [
        f"{path.name}:{call.lineno}"
        for path in COMMANDS
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in BESIDE
        and ast.unparse(call.func.value).endswith(("store", "conversation", "answers"))
    ]
    assert found == []
