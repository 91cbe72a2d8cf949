"""Names of classes, functions, files and variables speak the language of docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
HEADING = "## Words that are not identifiers here"
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
LEFT = {"meta": 3, "turn": 1}
"""Names that hold such a word still. A number may only fall, and a new word gets none."""
LEFT_VARIABLES = {"meta": 37, "hollow": 1, "told": 4, "turn": 2}
"""The same of variables, parameters and attributes, each place where one gets a value."""


def refused() -> set[str]:
    text = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    words = set(re.findall(r"`([a-z]+)`", text))
    assert len(words) > 10, "the list is on the page"
    return words


@cache
def names() -> tuple[list[str], list[str]]:
    """`place: name` of what is installed: files, classes and functions; and what gets a value."""
    named, variables = [], []
    for room in ("agentrunner", "graph", "nodes", "prompts"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if any(parent.is_symlink() for parent in (path, *path.parents)):
                continue
            place = path.relative_to(ROOT)
            named.append(f"{place}: {path.parent.name}/{path.stem}")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    named.append(f"{place}:{node.lineno}: {node.name}")
                elif isinstance(node, ast.arg):
                    variables.append(f"{place}:{node.lineno}: {node.arg}")
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    variables.append(f"{place}:{node.lineno}: {node.id}")
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    variables.append(f"{place}:{node.lineno}: {node.attr}")
    return named, variables


def words_of(name: str) -> set[str]:
    return {part.lower() for part in PART.findall(name.rpartition(": ")[2])}


@pytest.mark.parametrize(
    ("kind", "left", "where"), [(0, LEFT, "LEFT"), (1, LEFT_VARIABLES, "LEFT_VARIABLES")]
)
def test_names_are_words_of_the_glossary(kind: int, left: dict[str, int], where: str) -> None:
    bad = refused()
    found = [(word, name) for name in names()[kind] for word in words_of(name) & bad]
    counts = Counter(word for word, _ in found)
    more = [f"{word}: {name}" for word, name in found if counts[word] > left.get(word, 0)]
    assert more == []
    fewer = {word: (most, counts[word]) for word, most in left.items() if counts[word] < most}
    assert fewer == {}, f"write the smaller number into {where}, so that it cannot grow again"
