"""Python: canaries fail under their own names, emptied functions turn honest tests red."""

from __future__ import annotations

import sys
from pathlib import Path

from agentrunner.verification.syntax.emptied_functions import empty_functions
from agentrunner.verification.syntax.mutants import mutants
from agentrunner.verification.syntax.regions import with_regions_of
from tests.unit.verification.syntax.live import canaries, combined, halves, pytest_results, ran, red

PRODUCT = b'''"""A shop."""

import contextlib

RATE = 2


def total(items, *, twice=False):
    """Adds.

    >>> total([1, 2])
    3
    """
    found = 0
    for item in items:
        if item > 0 and item < 100:
            found += item
    return found * RATE if twice else found


def names():
    yield "a"
    yield "b"


async def later(x):
    return {"x": x, "y": [None, True]}


@contextlib.contextmanager
def opened():
    yield total([1])


class Cart:
    def __init__(self, items):
        self.items = items

    @property
    def size(self):
        return len(self.items)

    def check(self):
        if not self.items:
            raise ValueError("the cart is empty")
'''

TESTS = b"""import asyncio
import unittest

import pytest
import shop
from shop import Cart, total


def test_plain():
    assert total([1, 2]) == 3, "the message 3"  # the end


def test_one_line(): assert total([5]) == 5


def test_early():
    if total([1]) == 1:
        assert total([]) == 0
        return
    raise RuntimeError


def test_value():
    with shop.opened() as value:
        try:
            assert value == -(-1)
            return None if value else value
        finally:
            pass


def test_names():
    want = ["a", "b"]
    got = list(shop.names())
    assert got == want


def test_later():
    async def inner():
        assert await shop.later(1) == {"x": 1, "y": [None, True]}
    asyncio.run(inner())


def test_raises():
    with pytest.raises(ValueError, match="is empty"):
        Cart([]).check()


def test_none():
    assert Cart([1]).check() is None


@pytest.mark.parametrize(("items", "want"), [([1], 1), ([1, 2], 3)])
def test_rows(items, want):
    assert total(items) == want


def test_approx():
    assert total([50]) / 3 == pytest.approx(16.6667, rel=1e-3)


class TestCart(unittest.TestCase):
    def setUp(self):
        self.cart = Cart([1])

    def test_size(self):
        self.assertEqual(self.cart.size, 1)

    def test_in(self): self.assertIn("a", shop.names()); self.assertTrue(self.cart.items)


class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        self.assertEqual((await shop.later(2))["x"], 2)


if __name__ == "__main__":
    unittest.main()
"""


def prepared(folder: Path, product: bytes = PRODUCT, tests: bytes = TESTS) -> Path:
    (folder / "shop.py").write_bytes(product)
    (folder / "test_shop.py").write_bytes(tests)
    return folder


def last(name: str) -> str:
    return name.rpartition("::")[2]


def test_each_canary_fails_under_its_own_name_and_changes_no_other(tmp_path: Path) -> None:
    before = pytest_results(prepared(tmp_path), "test_shop.py")
    assert set(before.values()) == {"passed"}
    made = canaries(TESTS, "python")
    assert len(made) >= 26
    for half in halves(made):
        source = combined(TESTS, half)
        after = pytest_results(prepared(tmp_path, tests=source), "test_shop.py")
        assert after.keys() == before.keys()
        assert {one.partition("[")[0] for one in red(after)} == {last(one.name) for one in half}


def test_emptied_functions_turn_honest_tests_red(tmp_path: Path) -> None:
    emptied = empty_functions(None, PRODUCT, "python")
    assert emptied is not None
    after = pytest_results(prepared(tmp_path, product=emptied.source), "test_shop.py")
    green = {name for name, outcome in after.items() if outcome == "passed"}
    assert green == {"test_none"}  # it wants nothing to happen
    old = PRODUCT.replace(b"found * RATE if twice else found", b"found")
    emptied = empty_functions(old, PRODUCT, "python")
    assert emptied is not None
    assert emptied.functions == ("total",)
    after = pytest_results(prepared(tmp_path, product=emptied.source), "test_shop.py")
    assert after["test_names"] == "passed"
    assert after["test_plain"] == "failed"


def test_mutants_can_be_imported_and_most_turn_a_test_red(tmp_path: Path) -> None:
    made = mutants(None, PRODUCT, "python", 30)
    seen = 0
    for mutant in made:
        compile(mutant.source, "shop.py", "exec")
    for mutant in made[:6]:
        prepared(tmp_path, product=mutant.source)
        seen += "failed" in pytest_results(tmp_path, "test_shop.py").values()
    assert seen >= 4


def test_old_examples_are_run_in_the_new_file(tmp_path: Path) -> None:
    weakened = PRODUCT.replace(b"    3\n", b"    4\n").replace(b"found = 0", b"found = 1")
    back = with_regions_of(weakened, PRODUCT, "python")
    assert b"    3\n" in back
    assert b"found = 1" in back
    for source, code in ((weakened, 0), (back, 1)):
        (tmp_path / "shop.py").write_bytes(source)
        said = ran(tmp_path, sys.executable, "-m", "doctest", "shop.py")
        assert said.returncode == code, said.stdout
