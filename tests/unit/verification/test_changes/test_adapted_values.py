"""Values of tests that follow the product's own text."""

from __future__ import annotations

import pytest

from agentrunner.verification.test_changes.reworded_texts import WantedValues, follows_a_text
from agentrunner.verification.test_changes.stated_values import renamed_arguments

ASKED = "Greetings end with an exclamation mark instead of a full stop."


@pytest.mark.parametrize(
    ("was", "now", "gone", "come", "follows"),
    [
        ('"Hello Bob."', '"Hello Bob!"', '"Hello {name}."', '"Hello {name}!"', True),
        ("'EUR 0.50'", "'0.50 EUR'", '"EUR %.2f"', '"%.2f EUR"', True),
        ('"Hello Bob."', '"Hello Ann!"', '"Hello {name}."', '"Hello {name}!"', False),
        ('"Hello Bob."', '"Bye Bob!"', '"Hello {name}."', '"Bye {name}!"', False),
        ('"Hello Bob."', '"Hello Bob!"', '"Other {name}."', '"Hello {name}!"', False),
        ('"5"', '"6"', '"{n}"', '"{n}"', False),
    ],
)
def test_a_value_follows_a_text(was: str, now: str, gone: str, come: str, follows: bool) -> None:
    assert follows_a_text(was, now, WantedValues(ASKED, [gone], [come])) is follows


def test_a_value_that_is_handed_over_by_another_name() -> None:
    before = ["connect", "(", "timeout_ms", "=", "500", ")"]
    after = ["connect", "(", "timeout", "=", "0.5", ")"]
    lost, got = renamed_arguments(before, after, "Replace timeout_ms by timeout, in seconds.")
    assert (dict(lost), dict(got)) == ({"500": 1}, {"0.5": 1})
    assert renamed_arguments(before, after, "Use seconds.")[0] == {}


def test_a_text_that_is_stated_otherwise_follows_nothing() -> None:
    text = 'No more "file(s)": it is "1 file found" and "2 files found" now.'
    wanted = WantedValues(text, {'"{n} file(s) found"'}, {'"{n} files found"'})
    assert follows_a_text('"7 file(s) found"', '"7 files found"', wanted)
    assert not follows_a_text('"1 file(s) found"', '"1 files found"', wanted)
