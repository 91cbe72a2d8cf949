"""What explains a file of data, and what becomes of one that is gone."""

from __future__ import annotations

import pytest

from agentrunner.verification.file_names import means, naming
from agentrunner.verification.proof.exit_proof import _successor
from agentrunner.verification.proof.unexplained_files import (
    _code,
    _explains,
    _is_in_a_new_folder_that_is_named,
    _is_one_more,
)
from agentrunner.verification.syntax.imports import bound_otherwise


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b'open("rates.json")', True),
        (b'for one in ROOT.glob("*.json"):', True),
        (b'path = f"{name}.json"', True),
        (b'read(HERE / "data" / name)', True),
        (b"# loads rates.json", False),
        (b'"""See rates.json."""', False),
        (b"/* rates.json */ read(x)", False),
        (b"#include <rates.json>", True),
        (b"rates = 1", False),
    ],
)
def test_code_names_data_and_comments_do_not(text: bytes, named: bool) -> None:
    assert means("data/rates.json", _code("shop.c", text)) is named


@pytest.mark.parametrize(
    ("path", "product", "tests", "explained"),
    [
        ("data/rates.json", 'open("data/rates.json")', 'open("data/rates.json")', True),
        ("rates.json", 'open("rates.json")', 'ROOT.glob("*.json")', True),
        ("examples/config.json", 'open("config.json")', 'ROOT / "examples" / "config.json"', False),
        ("locales/ja.json", 'join("locales", code + ".json")', "says('ja')", True),
        ("spec/count.json", 'open(f"{name}.json")', 'ROOT.rglob("*.json")', False),
        ("orders/count.txt", 'payload["orders"]', "rglob('*')", False),
        ("item", "items_of(order)", 'ROOT / "item"', False),
        ("item", "each item counts", "", False),
        (".gitattributes", "Add .gitattributes", "", True),
        ("Dockerfile", "a Dockerfile that", "", True),
    ],
)
def test_code_explains_data_where_it_says_no_less_than_the_tests(
    path: str, product: str, tests: str, explained: bool
) -> None:
    said = naming(path, tests, "tests/test_cart.py")
    assert _explains(naming(path, product, "cart.py"), said) is explained


def test_a_gone_file_is_found_again_by_its_text_or_its_name() -> None:
    text = b"a\nb\nc\nd\n"
    others = {"new/cart.py": b"x\n", "store.py": b"a\nb\nc\nz\n"}
    assert _successor("shop/old.py", text, others) == "store.py"
    assert _successor("shop/cart.py", text, {"new/cart.py": b"x\n"}) == "new/cart.py"
    assert _successor("shop/old.py", text, {"new/cart.py": b"x\n"}) == ""


MOVE = "Move cart.py to shop/cart.py and update the tests for the new import."


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("from cart import total", "from shop.cart import total", []),
        ("import cart", "from shop import cart", []),
        ("from cart import total", "from shop import total", []),
        ("from cart import total", "from shop.pieces import pieces as total", ["total"]),
        ("import unittest", "from shop.compat import unittest", ["unittest"]),
        ("from cart import total\nlen(total)", "from shop.cart import len, total", ["len"]),
    ],
)  # fmt: skip
def test_a_name_that_means_something_else(before: str, after: str, names: list[str]) -> None:
    assert bound_otherwise(before.encode(), after.encode(), "python", MOVE) == names


@pytest.mark.parametrize(
    ("path", "asked", "wanted"),
    [
        ("db/migrations/2.sql", "Users get an address (a new migration).", True),
        ("db/migrations/2.sql", "Add the migration.", True),
        ("db/migrations/2.sql", "The migrations stay.", False),
        ("db/migrations/2.txt", "A new migration.", False),
        ("other/migrations/2.sql", "A new migration.", False),
        ("tests/b.json", "Add tests.", False),
    ],
)
def test_one_more_of_what_a_folder_holds(path: str, asked: str, wanted: bool) -> None:
    old = ["db/migrations/1.sql", "tests/a.json", "tests/test_a.py"]
    assert _is_one_more(path, old, asked, ["tests/test_a.py"]) is wanted


def test_a_new_folder_that_is_named_in_full() -> None:
    asked, old = "Put it into `packages/tax`.", ["packages/shop/index.js"]
    assert _is_in_a_new_folder_that_is_named("packages/tax/index.js", old, asked)
    assert _is_in_a_new_folder_that_is_named("packages/tax/lib/index.js", old, asked)
    assert not _is_in_a_new_folder_that_is_named("packages/taxes/index.js", old, asked)
    assert not _is_in_a_new_folder_that_is_named("packages/shop/tax.js", old, asked)
    assert not _is_in_a_new_folder_that_is_named("tax/index.js", old, asked)
