"""What sentences write of code: examples, and functions with their parameters."""

from agentrunner.verification.syntax.words import examples, signatures


def test_examples_are_calls_with_values_and_what_they_give() -> None:
    text = """slug("A, b") gives "a-b". `add(2, 3)` returns `5`. f(x) is 3, exit(1) is 2nd,
    rate(1) is 3%, total(1) is 3.5 euros."""
    assert examples(text) == [
        ('slug("A, b")', '"a-b"'),
        ("add(2, 3)", "5"),
        ("total(1)", "3.5"),
    ]


def test_signatures_stand_in_plain_text_too_where_that_is_wanted() -> None:
    text = "Add percent(part, whole); the item(s) of `cart.total(lines)`, not exit() or slug(3)."
    assert signatures(text) == {"total": "cart.total(lines)"}
    assert signatures(text, bare=True) == {
        "total": "cart.total(lines)",
        "percent": "percent(part, whole)",
    }
