"""What sentences write of code: examples, and functions with their parameters."""

from agentrunner.verification.syntax.words import examples, signatures, without_examples


def test_examples_are_calls_with_values_and_what_they_give() -> None:
    text = """slug("A, b") gives "a-b". `add(2, 3)` returns `5`. f(x) is 3, exit(1) is 2nd,
    rate(1) is 3%, total(1) is 3.5 euros."""
    assert examples(text) == [
        ('slug("A, b")', '"a-b"'),
        ("add(2, 3)", "5"),
        ("total(1)", "3.5"),
    ]


def test_an_answer_in_back_quotes_is_an_example_where_that_is_wanted() -> None:
    text = '`slug("A b")` is `a-b`, `find("x")` returns `None`.'
    assert examples(text) == []
    assert examples(text, bare=True) == [('slug("A b")', "a-b"), ('find("x")', "None")]


def test_a_text_without_examples_has_no_values_of_calls_and_command_lines() -> None:
    text = (
        'As `sh greet.sh Ada 10` shows: `seconds("45s")` gives 45 (s), rate(2) is 3. `--loud` is.'
    )
    assert without_examples(text) == "As `sh greet.sh Ada` shows: `seconds (s), rate. `--loud` is."


def test_signatures_stand_in_plain_text_too_where_that_is_wanted() -> None:
    text = "Add percent(part, whole); the item(s) of `cart.total(lines)`, not exit() or slug(3)."
    assert signatures(text) == {"total": "cart.total(lines)"}
    assert signatures(text, bare=True) == {
        "total": "cart.total(lines)",
        "percent": "percent(part, whole)",
    }
