"""Comments and layout are told from code."""

import pytest

from agentrunner.verification.syntax.code_equality import is_same_code


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "def f(a):\n    return a\n", "# a note\ndef f( a ):\n\n    return a  # it\n"),
        ("javascript", "f(1)\n", "/* x */ f( 1 ) // y\n"),
        ("go", "package a\nfunc F() {}\n", "package a\n\n// F is one\nfunc F() {}\n"),
        ("rust", "fn f() -> u8 { 1 }\n", "/// One.\nfn f() -> u8 { 1 }\n"),
        ("java", "class A { int f() {} }", "/** A. */ class A {\n int f() {} }"),
        ("rust", "/// One.\nfn f() {}\n", "/// Two,\n/// and more.\nfn f() {}\n"),
        ("rust", "fn f() {\n    //! a\n    g();\n}\n", "fn f() {\n    g();\n}\n"),
    ],
)  # fmt: skip
def test_comments_and_layout_change_nothing(language: str, before: str, after: str) -> None:
    assert is_same_code(before.encode(), after.encode(), language)
    assert is_same_code(after.encode(), before.encode(), language)


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "def f(a):\n    return a\n", "def f(a):\n    return -a\n"),
        ("python", "if a:\n    b()\nc()\n", "if a:\n    b()\n    c()\n"),
        ("python", 'def f():\n    "a"\n', 'def f():\n    "b"\n'),
        ("python", "def f(:\n", "def f(:  # x\n"),
        ("javascript", "f('a b')", "f('a  b')"),
        ("go", "package a\n", "package b\n"),
        ("python", 'x = "Values\\n"\n', 'x = "Daily values\\n"\n'),
        ("python", 'x = "a\\n  b"\n', 'x = "a\\n b"\n'),
        ("javascript", "x = `a ${b} c`;\n", "x = `a ${b}  c`;\n"),
        ("go", 'package a\n\nvar x = "a\\n"\n', 'package a\n\nvar x = "b\\n"\n'),
        ("rust", 'fn f() { g("a\\n"); }\n', 'fn f() { g("b\\n"); }\n'),
    ],
)
def test_code_does(language: str, before: str, after: str) -> None:
    assert not is_same_code(before.encode(), after.encode(), language)


def test_docstrings_may_be_left_out() -> None:
    before = b"def f(a):\n    return a\n"
    after = b'"""A module."""\n\n\ndef f(a):\n    """Give it back."""\n    return a\n'
    assert not is_same_code(before, after, "python")
    assert is_same_code(before, after, "python", docstrings=False)
    assert not is_same_code(before, after + b"f(1)\n", "python", docstrings=False)
