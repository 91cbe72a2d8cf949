"""Names of classes, functions and files speak the language of docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
HEADING = "## Words that are not identifiers here"
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
LEFT = {"meta": 3, "seat": 2, "turn": 1}
"""Names that hold such a word still. A number may only fall, and a new word gets none."""


def refused() -> set[str]:
    text = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    words = set(re.findall(r"`([a-z]+)`", text))
    assert len(words) > 10, "the list is on the page"
    return words


def names() -> Iterator[str]:
    """`place: name` of every file, class and function that is installed, each once."""
    for room in ("agentrunner", "graph", "nodes", "prompts"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if any(parent.is_symlink() for parent in (path, *path.parents)):
                continue
            place = path.relative_to(ROOT)
            yield f"{place}: {path.parent.name}/{path.stem}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{place}:{node.lineno}: {node.name}"


def words_of(name: str) -> set[str]:
    return {part.lower() for part in PART.findall(name.rpartition(": ")[2])}


def test_names_are_words_of_the_glossary() -> None:
    bad = refused()
    found = [(word, name) for name in names() for word in words_of(name) & bad]
    counts = Counter(word for word, _ in found)
    more = [f"{word}: {name}" for word, name in found if counts[word] > LEFT.get(word, 0)]
    assert more == []
    fewer = {word: (most, counts[word]) for word, most in LEFT.items() if counts[word] < most}
    assert fewer == {}, "write the smaller number into LEFT, so that it cannot grow again"
