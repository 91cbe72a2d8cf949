"""Names of classes, functions, files and variables speak the language of docs/glossary.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "glossary.md"
HEADING = "## Words that are not identifiers here"
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
LEFT = {"meta": 3, "turn": 1}
"""Names that hold such a word still. A number may only fall, and a new word gets none."""
LEFT_VARIABLES = {"meta": 32, "hollow": 1, "told": 4, "turn": 2}
"""The same of variables, parameters and attributes, each place where one gets a value."""


def refused() -> set[str]:
    text = PAGE.read_text(encoding="utf-8").partition(HEADING)[2]
    words = set(re.findall(r"`([a-z]+)`", text))
    assert len(words) > 10, "the list is on the page"
    return words


@cache
def modules() -> list[tuple[Path, list[ast.AST]]]:
    """All that is installed, each file once, with all that is in it."""
    rooms = ((ROOT / room).rglob("*.py") for room in ("agentrunner", "graph", "nodes", "prompts"))
    return [
        (path, [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))])
        for path in sorted(chain(*rooms))
        if not any(parent.is_symlink() for parent in (path, *path.parents))
    ]


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    """Millions of nodes, which every collection of garbage in later tests would look at."""
    yield
    modules.cache_clear()


@cache
def names() -> tuple[list[str], list[str]]:
    """`place: name` of what is installed: files, classes and functions; and what gets a value."""
    named, variables = [], []
    for path, nodes in modules():
        place = path.relative_to(ROOT)
        named.append(f"{place}: {path.parent.name}/{path.stem}")
        for node in nodes:
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


PHRASES = re.compile(
    r"\b(?:mend(?:s|ed|ing)?|surroundings|meta-agents?|not to be had|tally|goes on where|"
    r"went on where|in order(?! (?:of|to|from)\b))\b|\bgo on\?",
    re.IGNORECASE,
)
"""Phrases of the page's "not" column that are recognised in a sentence without its meaning."""
PAGES = ("prompts/en/*.jinja", "agentrunner/notes/templates/en.yaml", "docs/**/*.md", "*.md")
QUOTED = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"")
"""In pages: names and earlier words, which are quoted."""


def texts() -> Iterator[tuple[str, str]]:
    """Place and text of what people and models read: strings, texts of errors, prompts, pages."""
    for path, nodes in modules():
        silent = set() if path.parent.name == "errors" else statements(nodes)
        for node in nodes:
            text = getattr(node, "value", None)
            if isinstance(node, ast.Constant) and isinstance(text, str) and node not in silent:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text if " " in text else ""
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            if path != PAGE:
                yield str(path.relative_to(ROOT)), QUOTED.sub("", path.read_text(encoding="utf-8"))


def statements(nodes: list[ast.AST]) -> set[ast.expr]:
    """The strings that stand alone: docstrings, which users do not see."""
    return {node.value for node in nodes if isinstance(node, ast.Expr)}


def test_texts_for_people_and_models_speak_it_too() -> None:
    found = [
        f"{place}: {text[max(hit.start() - 30, 0) : hit.end() + 30]!r}"
        for place, text in texts()
        for hit in PHRASES.finditer(text)
    ]
    assert found == []


def test_a_docstring_says_that_a_function_blocks() -> None:
    found = [
        f"{path.name}: {node.name}"
        for path, nodes in modules()
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and re.search(r"\bBlocking\b[.,;]", ast.get_docstring(node) or "")
    ]
    assert found == [], "Blocks."
