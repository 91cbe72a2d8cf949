"""Which reds on the old code say something about the work."""

import pytest

from agentrunner.verification.proof.struck import _is_sound
from agentrunner.verification.results.names import made

QUOTED = "AssertionError: Regex pattern did not match.\n  Actual: 'M' object has no attribute 'p'"


@pytest.mark.parametrize(
    ("outcome", "message", "sound"),
    [
        ("failed", "assert 2 == 3", True),
        ("failed", QUOTED, True),
        ("failed", "assert 'is not a function' in 'no'", True),
        ("failed", "AttributeError: module 'shop' has no attribute 'other'", False),
        ("failed", "AttributeError: module 'shop' has no attribute 'total'", True),
        ("failed", "fixture 'cart' not found", False),
        ("error", QUOTED, False),
    ],
)
def test_a_red_is_sound_by_an_assertion_or_by_what_the_work_adds(
    outcome: str, message: str, sound: bool
) -> None:
    assert _is_sound(made("test_a", outcome, message=message), {"total"}) is sound
