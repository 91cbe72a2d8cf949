"""Tests are found by the names that results give them."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.test_finder import all_tests, find_test
from tests.unit.verification.syntax.named import named
from tests.unit.verification.syntax.sources import GO, JAVA, PYTHON, RUST, SCRIPT

EXTRA = b"""
it("works", () => {}); test("it works", () => {});
describe(Cart, () => { it.each([1])("has $a and %i", () => {}); it("has 5", () => {}) });
"""


@pytest.mark.parametrize(
    ("language", "source", "name", "found"),
    [
        ("python", PYTHON, "tests/test_a.py::test_x[1-a::b.c/d]", "test_x"),
        ("python", PYTHON, "tests.test_a.TestX.test_y", "TestX::test_y"),
        ("python", PYTHON, "test_y (tests.test_a.TestX.test_y)", "TestX::test_y"),
        ("python", PYTHON, "test_y (tests.test_a.TestX) (i=1)", "TestX::test_y"),
        ("python", PYTHON, "tests/x.py::Outer::Inner::test_deep", "Outer::Inner::test_deep"),
        ("python", PYTHON, "helper", "helper"),
        ("python", PYTHON, "tests/x.py::test_gone", None),
        ("javascript", SCRIPT, "a.test.js > suite > block", "suite > block"),
        ("javascript", SCRIPT, "suite block", "suite > block"),
        ("javascript", SCRIPT, "a.js > suite > row 1 of zz", "suite > row %s of …"),
        ("javascript", SCRIPT, "suite > inner > a5", "suite > inner > a…"),
        ("javascript", SCRIPT, "suite › inner › a5 › sub", "suite > inner > a… > sub"),
        ("javascript", SCRIPT, "top", "top"),
        ("javascript", SCRIPT, "named", "named"),
        ("javascript", SCRIPT, "a.js > un-top", None),
        ("javascript", SCRIPT, "gone", None),
        ("javascript", EXTRA, "a.js > works", "works"),
        ("javascript", EXTRA, "a.js > it works", "it works"),
        ("javascript", EXTRA, "a.js > zz works", None),
        ("javascript", EXTRA, "Cart > has 3 and 4", "Cart > has $a and %i"),
        ("javascript", EXTRA, "Cart has 5", "Cart > has 5"),
        ("go", GO, "example.com/x/a.TestTable", "TestTable"),
        ("go", GO, "a.TestTable/sub", "TestTable/sub"),
        ("go", GO, "a.TestTable/b_c", "TestTable/…"),
        ("go", GO, "TestNone", "TestNone"),
        ("go", GO, "a.TestSuites/TestSuite", "TestSuite"),
        ("go", GO, "a.TestTab", None),
        ("rust", RUST, "crate::tests::early", "tests::early"),
        ("rust", RUST, "tests::early::case_1", "tests::early"),
        ("rust", RUST, "src/lib.rs - add (line 5)", None),
        ("java", JAVA, "a.ShopTest.early", "ShopTest.early"),
        ("java", JAVA, "ShopTest$Inner.loop()", "ShopTest.Inner.loop"),
        ("java", JAVA, "ShopTest.rows(int)[2]", "ShopTest.rows"),
        ("java", JAVA, "ShopTest.gone", None),
    ],
)
def test_names_of_results_find_their_tests(
    language: str, source: bytes, name: str, found: str | None
) -> None:
    test = find_test(source, language, name)
    assert (test.span.name if test is not None else None) == found


def test_of_two_definitions_the_one_that_runs_is_taken() -> None:
    python = b"def test_a(): assert f()\ndef test_a(): pass\n"
    assert named(python, "python", "test_a").span.line == 2
    script = b"test('a', () => f());\ntest('a', () => {});\n"
    assert named(script, "typescript", "a").span.line == 1


def test_a_helper_that_makes_a_suite_tells_tests_of_one_title_apart() -> None:
    script = b"""
describe("one()", () => {
  whenAsked("a", () => { it("gives", () => {}); });
  whenAsked("a, b", () => { it("gives", () => {}); });
});
describe("all()", () => {
  whenAsked("a", () => { it("gives", () => {}); });
  whenAsked("a, b", () => { it("gives", () => {}); });
});
"""
    lines = {
        "one() > when asked for a > gives": 3,
        "one() > when asked for a, b > gives": 4,
        "all() > when asked for a > gives": 7,
        "all() > when asked for a, b > gives": 8,
    }
    for name, line in lines.items():
        assert named(script, "javascript", f"x.js > {name}").span.line == line


def test_a_span_holds_decorators() -> None:
    span = named(PYTHON, "python", "test_x").span
    assert PYTHON[span.start : span.end].startswith(b"@pytest.mark.parametrize")
    span = named(RUST, "rust", "tests::panics").span
    assert RUST[span.start : span.end].startswith(b"#[test]\n    #[should_panic")


@pytest.mark.parametrize(
    ("language", "source", "count"),
    [
        ("python", PYTHON, 7),
        ("javascript", SCRIPT, 10),
        ("go", GO, 4),
        ("rust", RUST, 5),
        ("java", JAVA, 6),
    ],
)
def test_all_tests_of_a_file_are_listed(language: str, source: bytes, count: int) -> None:
    names = [one.span.name for one in all_tests(source, language)]
    assert len(names) == count, names
    for name in names:
        assert named(source, language, f"x/file > {name}").span.name == name
