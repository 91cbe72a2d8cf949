"""What a file of tests asserts by."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.asserts import asserted_by


@pytest.mark.parametrize(
    ("language", "source", "found"),
    [
        (
            "go",
            "package a\nfunc help(t *testing.T) { if x() != 1 { t.Errorf(`a`) } }\n"
            "func TestA(t *testing.T) { assert.Equal(t, A(1), 2) }\n",
            ["assert . Equal", "if", "assert . Equal"],
        ),
        ("javascript", "expect(f(1)).to.equal(g(3));\n", ["expect . to . equal"]),
        ("python", "def check(a):\n    assert f(a) == g(2)\n", ["assert"]),
    ],
)
def test_by_what_a_file_asserts(language: str, source: str, found: list[str]) -> None:
    assert asserted_by(source.encode(), language) == found
