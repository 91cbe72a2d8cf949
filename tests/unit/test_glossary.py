"""Names of classes, functions, files and variables speak the language of docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
HEADING = "## Words that are not identifiers here"
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
LEFT = {"meta": 3, "turn": 1}
"""Names that hold such a word still. A number may only fall, and a new word gets none."""
LEFT_VARIABLES = {"meta": 54, "hollow": 8, "told": 5, "turn": 5, "box": 1}
"""The same of variables, parameters and attributes, each place where one gets a value."""


def refused() -> set[str]:
    text = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    words = set(re.findall(r"`([a-z]+)`", text))
    assert len(words) > 10, "the list is on the page"
    return words


def nodes() -> Iterator[tuple[Path, ast.AST]]:
    """Everything in every file that is installed, each once, after the file itself."""
    for room in ("agentrunner", "graph", "nodes", "prompts"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if not any(parent.is_symlink() for parent in (path, *path.parents)):
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    yield path.relative_to(ROOT), node


@cache
def all_nodes() -> list[tuple[Path, ast.AST]]:
    """The same, read once."""
    return list(nodes())


def name_of(place: Path, node: ast.AST) -> str:
    """`place: name` of a file, class or function, else ""."""
    match node:
        case ast.Module():
            return f"{place}: {place.parent.name}/{place.stem}"
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return f"{place}:{node.lineno}: {node.name}"
    return ""


def variable_of(place: Path, node: ast.AST) -> str:
    """`place: name` of a variable, parameter or attribute that gets a value, else ""."""
    match node:
        case ast.arg():
            return f"{place}:{node.lineno}: {node.arg}"
        case ast.Name(ctx=ast.Store()):
            return f"{place}:{node.lineno}: {node.id}"
        case ast.Attribute(ctx=ast.Store()):
            return f"{place}:{node.lineno}: {node.attr}"
    return ""


def words_of(name: str) -> set[str]:
    return {part.lower() for part in PART.findall(name.rpartition(": ")[2])}


@pytest.mark.parametrize(
    ("named", "left", "its_name"),
    [(name_of, LEFT, "LEFT"), (variable_of, LEFT_VARIABLES, "LEFT_VARIABLES")],
)
def test_names_are_words_of_the_glossary(
    named: Callable[[Path, ast.AST], str], left: dict[str, int], its_name: str
) -> None:
    bad = refused()
    names = [name for place, node in all_nodes() if (name := named(place, node))]
    found = [(word, name) for name in names for word in words_of(name) & bad]
    counts = Counter(word for word, _ in found)
    more = [f"{word}: {name}" for word, name in found if counts[word] > left.get(word, 0)]
    assert more == []
    fewer = {word: (most, counts[word]) for word, most in left.items() if counts[word] < most}
    assert fewer == {}, f"write the smaller number into {its_name}, so that it cannot grow again"
