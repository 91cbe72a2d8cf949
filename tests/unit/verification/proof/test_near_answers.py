"""Whether the words of a failing test say what it got."""

from __future__ import annotations

import pytest

from agentrunner.verification.proof.pinned_answers import _shows_values

OF_PYTEST = """assert {0}
 +  where {1} = add(1235, 5678)
    def test_adds():
>       assert add(1235, 5678) == 6912
E       assert {0}
E        +  where {1} = add(1235, 5678)

test_calc.py:5: AssertionError"""


@pytest.mark.parametrize(
    ("message", "shows"),
    [
        ("0 != 6912", True),
        ("invalid literal for int() with base 10: '46s'", True),
        (OF_PYTEST.format("0 == 6912", "0"), True),
        (OF_PYTEST.format("False", "False"), False),
        ("assertion `left == right` failed\n  left: 0\n right: 6912", True),
        ("assertion failed: add(1235, 5678) == 6912", False),
        ("The expression evaluated to a falsy value:\n\n  assert(f(1) === 2)\n", False),
        ("False is not true", False),
        ("wrong", False),
    ],
)
def test_words_say_what_was_got(message: str, shows: bool) -> None:
    assert _shows_values(message) is shows
