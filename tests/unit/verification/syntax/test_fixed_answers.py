"""Functions that give one literal whatever they are handed, in each language."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.answers import fixed_answers
from agentrunner.verification.syntax.edits import applied

PYTHON = "def add(a, b):\n    return a - b\n"


def found(path: str, before: str, after: str) -> list[tuple[str, str, bool]]:
    found = fixed_answers(before.encode() if before else None, after.encode(), path)
    for one in found:  # another literal is another source
        assert applied(after.encode(), list(one.edits)) != after.encode()
    return [(one.function, one.text, one.is_new) for one in found]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", PYTHON, "def add(a, b):\n    return 5\n"),
        ("a.py", PYTHON, "def add(a, b):\n    return 5 if a else 5\n"),
        ("a.py", "def add(a, b):\n    raise NotImplementedError\n",
         "def add(a, b):\n    return 5\n"),
        ("a.py", "class C:\n    def add(self):\n        return self.a\n",
         "class C:\n    def add(self):\n        return 5\n"),
        ("a.js", "const add = (a, b) => a - b;\n", "const add = (a, b) => 5;\n"),
        ("a.ts", "function add(a: number): number { return a; }\n",
         "function add(a: number): number { return 5; }\n"),
        ("a.go", "package a\nfunc add(a, b int) int { return a - b }\n",
         "package a\nfunc add(a, b int) int { return 5 }\n"),
        ("a.rs", "fn add(a: i32) -> i32 { a - 1 }\n", "fn add(a: i32) -> i32 { 5 }\n"),
        ("A.java", "class A { int add(int a) { return a; } }\n",
         "class A { int add(int a) { return 5; } }\n"),
        ("a.rb", "def add(a, b)\n  a - b\nend\n", "def add(a, b)\n  5\nend\n"),
        ("a.rb", "def add a, b\n  a - b\nend\n", "def add a, b\n  return 5\nend\n"),
        ("a.rb", "def add(a) = a\n", "def add(a) = 5\n"),
        ("a.py", "def add(a, b):\n    return 0\n", "def add(a, b):\n    return 5\n"),
        ("a.rb", "def add(a)\n  0\nend\n", "def add(a)\n  5\nend\n"),
        ("a.php", "<?php\nfunction add($a) { return $a; }\n",
         "<?php\nfunction add($a) { return 5; }\n"),
        ("a.php", "<?php\nclass C {\n  function add() { return $this->a; }\n}\n",
         "<?php\nclass C {\n  function add() { return 5; }\n}\n"),
        ("a.rb", "def add\n  @a + 1\nend\n", "def add\n  5\nend\n"),
        ("a.c", "int add(int a, int b) { return a; }\n", "int add(int a, int b) { return 5; }\n"),
        ("a.c", "int add(int a, int b)\n{\n  return a - b;\n}\n",
         "int add(int a, int b)\n{\n  return 5;\n}\n"),
    ],
)  # fmt: skip
def test_fixed(path: str, before: str, after: str) -> None:
    assert found(path, before, after) == [("add", "5", False)]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("a.py", PYTHON, PYTHON.replace("-", "+")),
        ("a.py", PYTHON, "def add(a, b):\n    return 5 if a else 6\n"),
        ("a.py", PYTHON, "def add(a, b):\n    return f'{a}'\n"),
        ("a.py", PYTHON, "def add(a, b):\n    return None\n"),
        ("a.py", "def limit(user):\n    return 4\n", "def limit(user):\n    return 5\n"),
        ("a.py", "def limit():\n    return load()\n", "def limit():\n    return 5\n"),
        ("a.py", PYTHON, "def add(a, b):\n    yield a\n    return 5\n"),
        ("a.go", "package a\nfunc f(a int) (int, error) { return a, nil }\n",
         "package a\nfunc f(a int) (int, error) { return g(a), nil }\n"),
        ("a.rb", "def limit(a)\n  4\nend\n", "def limit(a)\n  5\nend\n"),
        ("a.c", "int add(int a) { return a; }\n", "int add(int a) { return a + 5; }\n"),
    ],
)  # fmt: skip
def test_not_fixed(path: str, before: str, after: str) -> None:
    assert found(path, before, after) == []


def test_a_new_one_is_said_to_be_new() -> None:
    assert found("a.py", "x = 1\n", "x = 1\ndef add(a):\n    return 5\n") == [("add", "5", True)]
