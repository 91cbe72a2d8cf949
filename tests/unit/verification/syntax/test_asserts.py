"""What a file of tests asserts by."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.asserts import asserted_by
from agentrunner.verification.syntax.calls import asks_nothing
from agentrunner.verification.syntax.test_finder import find_test


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


@pytest.mark.parametrize(
    ("language", "source", "empty"),
    [
        ("python", "def test_a():\n    assert 1 + 1 == 2\n", True),
        ("python", "def test_a():\n    assert f(1) == 2\n", False),
        ("python", "def test_a():\n    assert False, 'no network'\n", False),
        ("python", "def test_a(client):\n    pass\n", False),
        ("python", "def test_a():\n    import shop\n", False),
        ("python", "@needs_shop\ndef test_a():\n    pass\n", False),
        ("python", "def test_a():\n    shop.load()\n", False),
        ("javascript", "test('a', () => { expect(true).toBe(true); });", True),
        ("javascript", "test('a', () => { expect(sum(1)).toBe(true); });", False),
        ("javascript", "test('a', () => { require('./shop'); });", False),
        ("javascript", "beforeEach(() => load());\ntest('a', () => {});", False),
        ("go", "package a\nfunc TestA(t *testing.T) {}\n", True),
        ("go", "package a\nfunc TestA(t *testing.T) { var _ io.Reader = &File{} }\n", False),
        ("rust", "#[test]\nfn a() {\n    assert_eq!(2 + 2, 4);\n}\n", True),
        ("rust", "#[test]\nfn a() {\n    let _: fn(u8) -> u8 = add;\n}\n", False),
    ],
)
def test_a_placeholder_has_no_name_of_the_product(language: str, source: str, empty: bool) -> None:
    name = {"python": "test_a", "go": "TestA"}.get(language, "a")
    found = find_test(source.encode(), language, name)
    assert found is not None
    assert asks_nothing(found) is empty
