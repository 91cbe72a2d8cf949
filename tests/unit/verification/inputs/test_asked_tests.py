"""Which sentences ask for existing tests to be adapted."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.asked_tests import asks_to_adapt


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Update the existing tests.", "test_a test_b"),
        ("All existing tests need to be adapted accordingly.", "test_a test_b"),
        ("The existing test `test_a` has to be adapted.", "test_a"),
        ("Adapt the test `test_a`.", "test_a"),
        ("Adapt the test.", "test_a"),
        ("既存のテストも修正してください。", "test_a test_b"),
    ],
)
def test_the_text_wants_them_adapted(text: str, names: str) -> None:
    assert asks_to_adapt(text, names.split())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The existing test `test_a` has to be adapted.", "test_a test_b"),
        ("Adapt the test.", "test_a test_b"),
        ("Don't update the tests.", "test_a"),
        ("Remove the tests.", "test_a"),
        ("Update the code. All existing tests pass unchanged.", "test_a"),
        ("Update the tests. Do not change the existing tests.", "test_a"),
        ("Add tests.", "test_a"),
        ("Update the test command.", "test_a"),
        ("The tests must pass (check: `update the tests`).", "test_a"),
        ("落ちているテストを修正してください。", "test_a"),
        ("Update the existing tests.", ""),
    ],
)
def test_the_text_does_not(text: str, names: str) -> None:
    assert not asks_to_adapt(text, names.split())
