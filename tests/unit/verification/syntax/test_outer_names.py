"""Names that other code can reach, and names that are a function's own affair."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.name_scopes import is_outer_name


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", "def snake(text):\n    return text\n"),
        ("python", "snake = to_snake\n"),
        ("python", "from words import to_snake as snake\n"),
        ("python", "if OLD:\n    class snake: pass\n"),
        ("python", "class Names:\n    def snake(self): pass\n"),
        ("javascript", "exports.snake = toSnake;\n"),
        ("javascript", "export { toSnake as snake };\n"),
        ("javascript", "module.exports = { snake: toSnake };\n"),
        ("javascript", "const snake = (text) => text;\n"),
        ("typescript", "export class A { snake(text: string) { return text; } }\n"),
        ("go", "package a\n\nfunc (n Names) snake() {}\n"),
        ("go", "package a\n\nvar snake = other\n"),
        ("rust", "pub use words::to_snake as snake;\n"),
        ("java", "class A { int snake(int a) { return a; } }\n"),
    ],
)
def test_a_name_that_is_offered(language: str, source: str) -> None:
    assert is_outer_name(source.encode(), language, "snake")


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", "def path(text):\n    snake = text\n    return snake\n"),
        ("python", "def path(snake):\n    return 1\n"),
        ("python", "path = lambda snake: snake\n"),
        ("python", "__all__ = ['snake']\n"),
        ("python", "# snake\nsnakes = 1\n"),
        ("javascript", "const path = (snake) => snake + 1;\n"),
        ("javascript", "const path = snake => snake + 1;\n"),
        ("javascript", "function path() { const snake = 1; return snake; }\n"),
        ("go", "package a\n\nfunc path(snake int) int { return snake }\n"),
        ("rust", "fn path(snake: u8) -> u8 { snake }\n"),
        ("java", "class A { int path(int snake) { return snake; } }\n"),
    ],
)
def test_a_name_within_a_function(language: str, source: str) -> None:
    assert is_outer_name(source.encode(), language, "snake") is False


def test_what_has_no_grammar_cannot_be_told() -> None:
    assert is_outer_name(b"def (", "python", "snake") in (None, False)
