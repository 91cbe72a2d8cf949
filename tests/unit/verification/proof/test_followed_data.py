"""Which changed lines of expected data say something that the PRD does not state."""

from __future__ import annotations

import pytest

from agentrunner.verification.proof.turned_tests import unstated

BEFORE = "Values\n======\n2.5\n12.0\n"


@pytest.mark.parametrize(
    ("after", "stated", "expected"),
    [
        ("Daily values\n============\n2.5\n12.0\n", ["Daily values"], ""),
        ("Daily values\n============\n2\n12.0\n", ["Daily values"], "2"),
        ("VALUES\n======\n2.5\n12.0\n", ["Daily values"], "VALUES"),
        ("Values\n======\n2.50\n12.00\n", [], ""),
        ("Values\n======\n2.5\n", ["Daily values"], "less than before"),
        ("Values\n======\n3.5\n12.0\n", ["Values"], "3.5"),
        ("Values\n======\npaid: 2.5\n12.0\n", ["id"], "paid: 2.5"),
    ],
    ids=["stated", "more", "something else", "none stated", "less", "stated before", "in a word"],
)
def test_a_line_with_other_words_has_to_state_what_is_asked_for(
    after: str, stated: list[str], expected: str
) -> None:
    assert unstated(BEFORE, after, stated) == expected
