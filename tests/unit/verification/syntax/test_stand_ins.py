"""Functions replaced by others that give one answer to everything."""

from __future__ import annotations

import pytest

from agentrunner.verification.proof.named_work import unread_parameters
from agentrunner.verification.syntax.languages import parse
from agentrunner.verification.syntax.stand_ins import OTHER_TEXT, new_functions, stand_ins

FIRST = "gives back `a` as it is"


@pytest.mark.parametrize(
    ("language", "source", "found"),
    [
        ("python", "def f(a):\n    'doc'\n    return 0 if a > 5 else None\n",
         {FIRST: False, "always gives `0`": False}),
        ("python", "def f(a):\n    return 'x'\n", {FIRST: False, "always gives `'x'`": True}),
        ("python", "class A:\n    def f(self, a: int = 3):\n        if a: return True\n"
                   "        return 1 + a\n", {FIRST: False, "always gives `True`": False}),
        ("python", "def f(a):\n    yield a\n", {}),
        ("python", "def f():\n    return 1\n", {}),
        ("python", "f = lambda a: 1\n", {FIRST: False, "always gives `1`": True}),
        ("javascript", "exports.f = (a) => '<b></b>';\n",
         {FIRST: False, "always gives `'<b></b>'`": True}),
        ("javascript", "const f = a => { return () => 1; };\n", {FIRST: False}),
        ("javascript", "const f = ({ a }) => a;\n", {}),
        ("javascript", "const f = (a) => `<b>${a}</b>`;\n", {FIRST: False}),
        ("python", "def f(a):\n    return f'-{a} %'\n", {FIRST: False}),
        ("typescript", "function f(a: T): T { return a; }\n", {FIRST: True}),
        ("go", "package p\nfunc f(a, b int) int { return a }\n", {FIRST: True}),
        ("go", "package p\nfunc (c C) f(a string) (int, error) { return 0, nil }\n", {}),
        ("rust", "fn f(a: u8) -> u8 { if a > 1 { 4 } else { a + 1 } }\n",
         {FIRST: False, "always gives `4`": False}),
        ("java", "class A { int f(long a) { if (a > 1) return 3; return 2 + 2; } }\n",
         {"always gives `3`": False}),
    ],
)  # fmt: skip
def test_stand_ins_of_a_function(language: str, source: str, found: dict[str, bool]) -> None:
    made = stand_ins(None, source.encode(), language, "f", "")
    assert {one.what: one.own for one in made if one.what != OTHER_TEXT} == found
    for one in made:
        parsed = parse(one.source, language)
        assert parsed is not None and not parsed.root.has_error
        assert (one.source == source.encode()) is one.own


def test_an_only_answer_may_be_asked_for() -> None:
    source = b"def f(a):\n    return 'EUR'\n"
    made = stand_ins(None, source, "python", "f", "It gives EUR.")
    assert [one.own for one in made] == [False, False]


@pytest.mark.parametrize(
    ("language", "source", "has"),
    [
        ("python", "def f(a):\n    return str(a)\n", True),
        ("python", "def f(a) -> str:\n    return a.name\n", True),
        ("python", "def f(a) -> int:\n    return a + 1\n", False),
        ("python", "def f(a):\n    return 1 if a else 0\n", False),
        ("javascript", "function f(a) { return `${a}!`; }", True),
        ("go", "package a\nfunc F(a int) string { return b(a) }\n", True),
        ("go", "package a\nfunc F(a int) int { return b(a) }\n", False),
        ("java", "class A { String f(int a) { return b(a); } }", True),
        ("rust", "fn f(a: u32) -> String { b(a) }", False),
    ],
)
def test_some_other_text_where_a_function_may_give_one(
    language: str, source: str, has: bool
) -> None:
    name = "F" if language == "go" else "f"
    made = stand_ins(None, source.encode(), language, name, "")
    assert (OTHER_TEXT in [one.what for one in made]) is has
    assert not any(one.constant for one in made if one.what == OTHER_TEXT)


def test_functions_that_are_new_by_name() -> None:
    before = b"def f(a):\n    return a\n"
    after = b"def f(a):\n    return a + 1\n\n\ndef g(a):\n    return a\n"
    assert new_functions(before, after, "python") == {"g"}
    assert new_functions(None, after, "python") == {"f", "g"}


def test_new_parameters_that_are_not_read() -> None:
    before = b"def f(a, b=1):\n    return a\n\n\ndef g(a):\n    return a\n"
    after = b"def f(a, b=1, c=2, d=3):\n    return d\n\n\ndef g(a, c):\n    return a\n"
    assert unread_parameters(before, after, "shop.py") == {("f", "c"), ("g", "c")}
    assert unread_parameters(None, after, "shop.py") == {
        ("f", "a"),
        ("f", "b"),
        ("f", "c"),
        ("g", "c"),
    }


@pytest.mark.parametrize(
    ("language", "before", "after", "names"),
    [
        (
            "python",
            "def f(a, b):\n    return a, b\n",
            "def f(a: Iterable[str], b: datetime, c=MOST, *d: int) -> int:\n    return a, b\n",
            {"c", "d"},
        ),
        (
            "javascript",
            "function f(a) { return a; }\n",
            "function f(a, {b: c, d = E}, g = H) { return a; }\n",
            {"c", "d", "g"},
        ),
    ],
)
def test_types_and_defaults_are_no_parameters(
    language: str, before: str, after: str, names: set[str]
) -> None:
    path = {"python": "shop.py", "javascript": "shop.js"}[language]
    found = unread_parameters(before.encode(), after.encode(), path)
    assert found == {("f", name) for name in names}
