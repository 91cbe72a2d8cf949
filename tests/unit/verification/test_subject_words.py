"""What tests are about, as words."""

import pytest

from agentrunner.verification.subject_words import about, is_about_something, shares_a_word

CART = b"""def total(items):
    discount = 10
    return sum(items) - discount


def label(name):
    return name.upper()
"""
TESTS = b"""from cart import label, total


def test_sum():
    assert total([100]) == 90


def test_upper():
    assert label("pen") == "PEN"
"""
FILES = {"cart.py": CART, "tests/test_cart.py": TESTS}


def words(name: str) -> list[str]:
    return about(f"tests/test_cart.py::{name}", "tests/test_cart.py", FILES.get, ["cart.py"])


def test_a_test_is_about_what_it_says_and_what_it_uses_of_the_change() -> None:
    assert {"sum", "total", "100", "discount"} <= set(words("test_sum"))
    assert "discount" not in words("test_upper")
    assert about("test_x", "", FILES.get, []) == ["test_x"]


def test_a_word_is_shared_in_any_form() -> None:
    asked = "# Discounts\nFrom 99 on there are ten per cent off"
    assert shares_a_word(words("test_sum"), asked)
    assert not shares_a_word(words("test_upper"), asked)
    assert shares_a_word(words("test_upper"), "Labels in capitals")


def test_who_asks_for_nothing_denies_nothing() -> None:
    assert shares_a_word(words("test_upper"), "")


@pytest.mark.parametrize(
    ("wanted", "denies"),
    [
        ("Fix the failing test.", False),
        ("Make it work.", False),
        ("CI is broken on main. Please fix.", False),
        ("Bring the suite back to green", False),
        ("The tests in this repository should all pass", False),
        ("From 100 on there are ten per cent off", True),
        ("Add a discount of ten per cent, with tests", True),
        ("Der Warenkorb rechnet die Menge nicht mit", False),
        ("De korting is niet in het totaal van de winkelwagen", False),
        ("Le total ne compte pas la remise (see the cart)", True),
        ("Скидка не учитывается in the total", False),
        ("100以上は1割引", False),
    ],
)
def test_what_is_asked_for_may_be_any_red_test(wanted: str, denies: bool) -> None:
    assert is_about_something(wanted) is denies
