"""New code beside everything."""

from __future__ import annotations

from agentrunner.verification.inspection.collateral import loose_code
from tests.kit.text_trees import both_trees

CART = "class Cart:\n    def total(self):\n        return self.sum\n"
LOOSE = "def discounted(total):\n    return total * 9 // 10\n"
ASKED = "A cart above 100 euros gets 10 percent off."


def _loose(new: dict[str, str], asked: str = ASKED) -> str:
    old = {"cart.py": CART}
    return loose_code(both_trees(old, {**old, **new}), asked)


def test_a_function_that_nothing_uses_is_not_what_was_asked_about() -> None:
    assert "discounted" in _loose({"discount.py": LOOSE})
    assert "discounted" in _loose({"cart.py": CART + "\n\n" + LOOSE})


def test_code_that_is_used_named_or_changes_what_was_there() -> None:
    used = CART.replace("self.sum", "discounted(self.sum)")
    assert _loose({"cart.py": used, "discount.py": LOOSE}) == ""
    assert _loose({"discount.py": LOOSE}, "Add `discounted(total)` to the cart.") == ""
    assert _loose({"discount.py": LOOSE}, "Add a discount for the cart.") == ""
    assert _loose({"discount.py": LOOSE + "\nregister(discounted)\n"}) == ""
    assert _loose({"discount.py": LOOSE}, "Ein Wagen über 100 Euro bekommt 10 Prozent.") == ""


def test_a_text_about_nothing_that_was_there() -> None:
    assert _loose({"discount.py": LOOSE}, "Ten percent off is worked out.") == ""
