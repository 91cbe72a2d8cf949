"""Every error code in the code has a page, and no page is about nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.texts import error_pages
from agentrunner.sandboxes.base import ErrorKind

ROOT = Path(__file__).parents[3]
NO_ERRORS = {"Finding", "emit", "warn", "add"}
"""Calls whose `code` names a finding or a warning."""
POSITIONAL = {"_error", "ProtocolError", "fault"}
"""Calls whose first argument is the code."""


def sources() -> Iterator[ast.Module]:
    for folder in ("agentrunner", "graph", "nodes", "prompts"):
        for file in (ROOT / folder).rglob("*.py"):
            yield ast.parse(file.read_text(encoding="utf-8"))


def codes_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "default_code":
            yield from constants(node.value)
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in POSITIONAL and node.args:
            yield from constants(node.args[0])
        if name not in NO_ERRORS:
            for keyword in node.keywords:
                if keyword.arg == "code":
                    yield from constants(keyword.value)


def constants(node: ast.expr) -> Iterator[str]:
    """A text, or the texts of a choice; the name before a colon (`budget: NAME`)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)


def codes() -> set[str]:
    found = {code for tree in sources() for code in codes_in(tree)}
    return found | {f"sandbox-{kind}" for kind in ErrorKind}


def test_every_code_has_a_page() -> None:
    assert sorted(codes() - set(error_pages())) == []


def test_every_page_has_a_code() -> None:
    assert sorted(set(error_pages()) - codes()) == []


@pytest.mark.parametrize("code", sorted(error_pages()))
def test_a_page_says_what_it_means_and_what_to_do(code: str) -> None:
    text = error_pages()[code]
    assert text.startswith(f"# {code}\n\n") and "**What to do.**" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    for command in re.findall(r"`agentrunner ([a-z]+)\b", text):
        assert command in cli.COMMANDS


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(cli.app, ["explain", "budget: tokens"], "agentrunner") == 0
    assert capsys.readouterr().out == error_pages()["budget"]
