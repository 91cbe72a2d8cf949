"""Whether a change leaves functions of a file as they were, with all that they use."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.change_beside import is_beside

PYTHON = """import os


def plain(value):
    return value.strip()


def same(got, want):
    return plain(got) == plain(want)


def total(items):
    return sum(items)


LIMIT = 3
"""
TYPESCRIPT = """import { decode } from "./decode";

export function same(got: string, want: string) {
  return decode(got) === decode(want);
}

export const withBase = (path: string) => {
  return path;
};
"""
GO = """package shop

import "strings"

func same(got, want string) bool { return strings.ToLower(got) == want }

func Total(items int) int { return items }
"""


@pytest.mark.parametrize(
    ("language", "before", "was", "now", "beside"),
    [
        ("python", PYTHON, "sum(items)", "sum(item * 2 for item in items)", True),
        ("python", PYTHON, "LIMIT = 3\n", "LIMIT = 4\n", True),
        ("python", PYTHON, "import os\n", "import os\nimport re\n", False),
        ("python", PYTHON, "return sum(", "os.settle()\n    return sum(", False),
        ("python", PYTHON, "LIMIT = 3\n", "\n\ndef more(one):\n    return plain(one)\n", True),
        ("python", PYTHON, "plain(got) == plain(want)", "True", False),
        ("python", PYTHON, "value.strip()", "'1'", False),
        ("python", PYTHON, "LIMIT = 3\n", "same = total\n", False),
        ("python", PYTHON, "LIMIT = 3\n", "globals().update(kept)\n", False),
        ("python", PYTHON, "import os\n", "from mild import plain\n", False),
        ("python", PYTHON, "import os\n", "from mild import *\n", False),
        ("python", PYTHON, "import os\n", "import mild as os\n", False),
        ("python", PYTHON, "return sum(", "globals()['plain'] = str\n    return sum(", False),
        ("python", PYTHON, "return sum(", "global plain\n    plain = str\n    return sum(", False),
        ("typescript", TYPESCRIPT, "return path;", "return `/${path}`;", True),
        ("typescript", TYPESCRIPT, "./decode", "./mild", False),
        ("typescript", TYPESCRIPT, "decode(got) ===", "!!decode(got) ||", False),
        ("go", GO, "{ return items }", "{ return items * 2 }", True),
        ("go", GO, "== want", "!= got", False),
        ("ruby", "def same(a, b)\nend\n", "end", "end\n", False),
    ],
)  # fmt: skip
def test_a_change_beside_a_function(
    language: str, before: str, was: str, now: str, beside: bool
) -> None:
    assert was in before
    after = before.replace(was, now)
    assert is_beside(before.encode(), after.encode(), language, {"same"}) is beside
