"""Functions that raise in place of their work, and exceptions that a text asks for."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.raising import (
    is_asked_for,
    only_raising,
    that_only_raise,
)

HALF = b"""exports.f = (style) => {
  if (style) return 1;
  throw new Error("not implemented");
};
"""


@pytest.mark.parametrize(
    ("language", "source", "names"),
    [
        ("python", "def f(a):\n    'doc'\n    raise NotImplementedError\n", {"f"}),
        ("python", "def f(a):\n    raise ValueError(a)\n", {"f"}),
        ("python", "def f(a):\n    if a: return 1\n    raise ValueError(a)\n", set()),
        ("python", "def f(a):\n    try:\n        g()\n    except E:\n        raise\n", set()),
        ("python", "class A:\n    def f(self):\n        raise NotImplementedError\n"
                   "class B(A):\n    def f(self):\n        return 1\n", set()),
        ("javascript", "const f = () => { throw new Error('TODO'); };\n", {"f"}),
        ("javascript", HALF.decode(), set()),
        ("go", "package a\nfunc f() int {\n\tpanic(\"todo\")\n}\n", {"f"}),
        ("rust", "fn f() -> u8 { todo!() }\n", {"f"}),
        ("java", "class A { int f() { throw new RuntimeException(); } }\n", {"f"}),
    ],
)  # fmt: skip
def test_functions_that_only_raise(language: str, source: str, names: set[str]) -> None:
    assert that_only_raise(None, source.encode(), language, "Add `f`.") == names


def test_a_function_raises_at_once_where_a_part_is_missing() -> None:
    made, found = only_raising(None, HALF, "javascript", "Add `f(style)`.")
    assert found
    assert (
        made.split() == b'exports.f = (style) => { throw new Error("not implemented"); };'.split()
    )
    assert not only_raising(None, HALF.replace(b"not implemented", b"unknown"), "javascript", "")[1]


@pytest.mark.parametrize(
    ("statement", "wanted", "asked"),
    [
        ("raise NotImplementedError", "`f` raises NotImplementedError for now.", True),
        ("raise NotImplementedError", "`f` raises ValueError for a negative number.", False),
        ("raise ValueError(a)", "`f` is an error from now on.", True),
        ("raise ValueError(a)", "`f` doubles.", False),
        ('throw new Error("use boxes")', 'It says "use boxes".', True),
        ("throw new Error('TODO')", "It throws for an unknown style.", False),
    ],
)
def test_exceptions_that_are_asked_for(statement: str, wanted: str, asked: bool) -> None:
    assert is_asked_for(statement, wanted) is asked
