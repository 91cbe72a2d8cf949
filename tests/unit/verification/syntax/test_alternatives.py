"""What a test accepts beside the value that is named."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.alternatives import narrowed


@pytest.mark.parametrize(
    ("language", "text", "less"),
    [
        ("python", "assert main() in (0, 1)", "assert main() in (1,)"),
        ("python", "assert code in [0, 1, 2]", "assert code in [1]"),
        ("python", "self.assertIn(code, {0, 1})", "self.assertIn(code, {1})"),
        ("python", "assert code == 0 or code == 1", "assert (code == 1)"),
        ("python", "for n in (0, 1): pass", ""),
        ("python", "assert code in (1,)", ""),
        ("python", "assert code in (2, 3)", ""),
        ("python", "assert (0, 1) == run()", ""),
        ("python", "assert out in ('done', 'gone')", "assert out in ('gone',)"),
        ("javascript", "assert.ok([0, 1].includes(code));", "assert.ok([1].includes(code));"),
        ("javascript", "expect([0, 1]).toContain(code);", "expect([1]).toContain(code);"),
        ("javascript", "assert(x === 0 || x === 1);", "assert((x === 1));"),
        (
            "go",
            "package a\nfunc F() { if x != 0 && x != 1 { panic(x) } }",
            "package a\nfunc F() { if (x != 1) { panic(x) } }",
        ),
    ],
)
def test_only_the_named_value_is_left(language: str, text: str, less: str) -> None:
    asked = "It ends with code 1, and `gone` is printed."
    assert narrowed(text.encode(), language, asked).decode() == (less or text)
