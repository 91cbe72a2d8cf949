"""Tests that stand somewhere else now, word for word."""

import pytest

from agentrunner.verification.moves import not_moved, says_the_same
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult

OLD = "tests/test_a.py::test_total"
TEXT = b"def test_total():\n    assert total([1, 2]) == 3\n"
IMPORTED = b"from shop import total\n\n\n"


def results(*names: str, outcome: TestOutcomeKind = "passed") -> Results:
    return Results(
        "pytest", tuple(TestResult(n, outcome, file=n.partition("::")[0]) for n in names)
    )


def left(
    new: str, content: bytes, outcome: TestOutcomeKind = "passed", cwd: str = "."
) -> list[str]:
    """What has not moved, where the test's file has become `new` with this content."""
    prefix = "" if cwd == "." else f"{cwd}/"
    old_tree = {f"{prefix}tests/test_a.py": IMPORTED + TEXT}
    new_tree = {f"{prefix}{new.partition('::')[0]}": content}
    now = results(new, outcome=outcome)
    return not_moved([OLD], results(OLD), now, cwd, old_tree.get, new_tree.get)


def test_a_test_in_another_file_is_not_gone() -> None:
    assert left("tests/test_b.py::test_total", IMPORTED + TEXT) == []
    assert left("tests/test_b.py::test_total", IMPORTED + TEXT, cwd="api") == []


def test_comments_and_white_space_are_no_difference() -> None:
    content = IMPORTED + b"def test_total():\n    # adds up\n    assert total([1,2]) == 3\n"
    assert left("tests/test_b.py::test_total", content) == []


def test_one_that_asks_for_less_is_another() -> None:
    weak = IMPORTED + b"def test_total():\n    assert total([1, 2])\n"
    assert left("tests/test_b.py::test_total", weak) == [OLD]


def test_one_that_imports_from_elsewhere_is_another() -> None:
    content = b"from fake import total\n\n\n" + TEXT
    assert left("tests/test_b.py::test_total", content) == [OLD]


def test_one_that_does_not_pass_there_is_gone() -> None:
    content = IMPORTED + TEXT
    assert left("tests/test_b.py::test_total", content, outcome="skipped") == [OLD]


def test_a_name_that_was_there_before_is_no_new_place() -> None:
    now = results("tests/test_c.py::test_other")
    tree = {"tests/test_a.py": TEXT, "tests/test_c.py": TEXT}
    before = results(OLD, "tests/test_c.py::test_other")
    assert not_moved([OLD], before, now, ".", tree.get, tree.get) == [OLD]


def test_what_cannot_be_read_has_not_moved() -> None:
    now = results("tests/test_b.py::test_total")
    assert not_moved([OLD], results(OLD), now, ".", lambda _: None, lambda _: None) == [OLD]


IN_PYTHON = b"""from ..shop import total
from tests.helper import same


def test_total():
    assert same(total([1, 2]), 3)


def test_nothing():
    assert total([]) == 0
"""
IN_SCRIPT = b"""const { total } = require('../src/shop');
test('total', () => { expect(total([1])).toBe(1); });
"""
IN_PHP = b"""<?php
require_once __DIR__ . '/../src/Cart.php';
class CartTest extends TestCase {
    public function testTotal() { $this->assertSame(3, Cart::total([1, 2])); }
}
"""
DATA = b"1,2\n"


@pytest.mark.parametrize(
    ("path", "before", "other", "change", "same"),
    [
        ("a/tests/t.py", IN_PYTHON, "a/tests/cart/t.py", (b"..shop", b"...shop"), True),
        ("a/tests/t.py", IN_PYTHON, "a/tests/cart/t.py", (b"..shop", b"..fake"), False),
        ("a/tests/t.py", IN_PYTHON, "a/tests/u.py", (b"total([]) == 0", b"not total([])"), False),
        ("a/tests/t.py", IN_PYTHON, "a/tests/u.py", (b"def test_nothing", b"def nothing"), False),
        ("a/tests/t.py", IN_PYTHON, "a/tests/u.py", (b"tests.helper", b"shop.helper"), False),
        ("test/t.js", IN_SCRIPT, "test/cart/t.js", (b"../src", b"../../src"), True),
        ("test/t.js", IN_SCRIPT, "test/cart/t.js", (b"toBe(1)", b"toBeTruthy()"), False),
        ("tests/T.php", IN_PHP, "tests/Cart/T.php", (b"/../src", b"/../../src"), True),
        ("tests/T.php", IN_PHP, "tests/Cart/T.php", (b"/../src", b"/../../fake"), False),
        ("tests/T.php", IN_PHP, "tests/U.php", (b"assertSame(3", b"assertSame(2"), False),
        ("data/a.csv", DATA, "tests/data/a.csv", (b"", b""), True),
        ("data/a.csv", DATA, "tests/data/a.csv", (b"1", b"2"), False),
    ],
)
def test_a_moved_file_keeps_what_it_says(
    path: str, before: bytes, other: str, change: tuple[bytes, bytes], same: bool
) -> None:
    moved = before.replace(*change, 1) if change[0] else before
    assert says_the_same(path, before, {other: moved, "unrelated.md": b"x"}) is same
