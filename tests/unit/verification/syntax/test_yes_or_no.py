"""A function that says yes or no is told from one that gives back a value."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.answers import says_yes_or_no

PYTHON = "def f(a, b):\n    return {}\n"
SCRIPT = "const f = (a, b) => {};\n"


@pytest.mark.parametrize(
    ("language", "source", "says"),
    [
        ("python", PYTHON.format("a == b"), True),
        ("python", PYTHON.format("not a"), True),
        ("python", PYTHON.format("all(a) and b is None"), True),
        ("python", PYTHON.format("a.startswith('x')"), True),
        ("python", "def f(a):\n    if a:\n        return True\n    return a > 3\n", True),
        ("python", "def f(a) -> bool:\n    return g(a)\n", True),
        ("python", PYTHON.format("a if len(a) > 3 else None"), False),
        ("python", PYTHON.format("a and b > 3"), False),
        ("python", PYTHON.format("[one for one in a if one > 3]"), False),
        ("python", PYTHON.format("issue(a)"), False),
        ("python", PYTHON.format("a.isdigit()"), True),
        ("python", "def f(a):\n    if a > 3:\n        return True\n    return a\n", False),
        ("javascript", SCRIPT.format("!a"), True),
        ("javascript", SCRIPT.format("a === b || a.includes(b)"), True),
        ("javascript", SCRIPT.format("a > b ? a : b"), False),
        ("javascript", SCRIPT.format("a || b"), False),
        ("go", "package a\n\nfunc f(a string) bool { return g(a) }\n", True),
        ("go", "package a\n\nfunc f(a string) string { return a }\n", False),
        ("rust", "fn f(a: u8) -> bool { g(a) }\n", True),
    ],
)
def test_by_its_head_or_its_answers(language: str, source: str, says: bool) -> None:
    assert says_yes_or_no(source.encode(), language, "f") is says


def test_one_that_is_not_there_says_nothing() -> None:
    assert not says_yes_or_no(PYTHON.format("a == b").encode(), "python", "g")
