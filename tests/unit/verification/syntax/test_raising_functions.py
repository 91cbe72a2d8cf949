"""Functions that raise in place of their work, and exceptions that a text asks for."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.stand_ins import (
    find_only_raising,
    find_unwritten,
    only_raising,
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
    assert find_only_raising(None, source.encode(), language, "Add `f`.") == names


@pytest.mark.parametrize(
    ("language", "source", "raises"),
    [
        ("javascript", HALF.decode(), True),
        ("javascript", "f = (a) => { if (a) { return 1; } else { throw Error(1); } };", True),
        ("javascript", "f = (a) => { if (a) { throw new Error('no'); } };", False),
        ("python", "def f(a):\n    if a == 1:\n        raise NotImplementedError\n"
                   "    return 1\n", True),
        ("python", "def f(a):\n    if a == 1:\n        raise ValueError\n    return 1\n", False),
        ("python", "def f(a):\n    if a:\n        return 1\n    elif not a:\n"
                   "        raise ValueError\n", False),
        ("python", "def f(a):\n    match a:\n        case 1:\n            return 1\n"
                   "        case _:\n            raise ValueError(a)\n", True),
        ("go", "package a\nfunc f(a int) int {\n\tswitch a {\n\tcase 1:\n\t\treturn 1\n"
               "\tdefault:\n\t\tpanic(\"b\")\n\t}\n}\n", True),
        ("rust", "fn f(a: u8) -> u8 { match a { 1 => 2, _ => panic!(\"b\") } }", True),
        ("rust", "fn f(a: u8) -> u8 { if a == 1 { unimplemented!() } 2 }", True),
        ("java", "class A { int f(int a) { switch (a) { case 1: return 1; "
                 "default: throw new E(); } } }", True),
    ],
)  # fmt: skip
def test_functions_that_raise_where_a_part_is_missing(
    language: str, source: str, raises: bool
) -> None:
    assert only_raising(None, source.encode(), language, "Add `f`.")[1] is raises


def test_what_stood_before_may_begin_to_raise_at_its_end() -> None:
    before = b"def f(a):\n    if a: return 1\n"
    after = before + b"    raise ValueError(a)\n"
    assert only_raising(None, after, "python", "Add `f`.")[1]
    assert not only_raising(before, after, "python", "Mend `f`.")[1]


def test_a_function_raises_at_once_where_a_part_is_missing() -> None:
    made, found = only_raising(None, HALF, "javascript", "Add `f(style)`.")
    assert found
    assert (
        made.split() == b'exports.f = (style) => { throw new Error("not implemented"); };'.split()
    )
    wanted = "`f(style)` throws for an unknown style."
    assert not only_raising(None, HALF, "javascript", wanted)[1]


@pytest.mark.parametrize(
    ("language", "body", "wanted", "asked"),
    [
        ("python", "raise NotImplementedError", "`f` raises NotImplementedError for now.", True),
        ("python", "raise NotImplementedError", "`f` raises ValueError if negative.", False),
        ("python", "raise ValueError(a)", "`f` is an error from now on.", True),
        ("python", "raise ValueError(a)", "`f` doubles.", False),
        ("python", "raise ValueError('soon')", "`f` doubles; it raises if negative.", False),
        ("javascript", 'throw new Error("use boxes");', 'It says "use boxes".', True),
        ("javascript", "throw new Error('TODO');", "It throws for an unknown style.", False),
    ],
)
def test_exceptions_that_are_asked_for(language: str, body: str, wanted: str, asked: bool) -> None:
    source = f"def f(a):\n    {body}\n" if language == "python" else f"f = (a) => {{ {body} }};\n"
    assert (find_only_raising(None, source.encode(), language, wanted) == set()) is asked


@pytest.mark.parametrize(
    ("language", "source", "names"),
    [
        ("python", "def f(a):\n    'doc'\n    raise NotImplementedError\n", {"f"}),
        ("python", "def f(a):\n    ...\n\n\ndef g(a):\n    return a\n", {"f"}),
        (
            "javascript",
            "function f(a) {}\nfunction g(a) { throw new Error('todo'); }\n",
            {"f", "g"},
        ),
        ("rust", "fn f() { todo!() }\nfn g() -> u8 { 1 }\n", {"f"}),
    ],
)
def test_what_is_still_to_be_written(language: str, source: str, names: set[str]) -> None:
    assert find_unwritten(source.encode(), language) == names
