"""Which sentences ask for existing tests to be adapted."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.wanted_tests import (
    asks_for_tests_alone,
    asks_to_adapt,
    asks_to_add,
    says_it_becomes,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Update the existing tests.", "test_a test_b"),
        ("All existing tests need to be adapted accordingly.", "test_a test_b"),
        ("The existing test `test_a` has to be adapted.", "test_a"),
        ("Adapt the test `test_a`.", "test_a"),
        ("Adapt the test.", "test_a"),
        ("The existing test looks for the old wording and has to be adapted.", "test_a"),
        ("The test of the defaults follows.", "test_a"),
        ("Adapt the existing table of tests.", "test_a"),
        ("Change the rows of the test table.", "test_a"),
        ("Existing tests will have to change.", "test_a test_b"),
        ("The sign comes first. Tests included.", "test_a test_b"),
        ("- docs\n- tests updated", "test_a test_b"),
        ("Adjust the existing test to check the log instead of stdout.", "test_a"),
        ("Update any tests that break.", "test_a test_b"),
        ("Tests must cover the new behaviour; update those that break.", "test_a test_b"),
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
        ("It is forbidden to change the tests.", "test_a"),
        ("No tests included.", "test_a"),
        ("Update the linter that the tests use.", "test_a"),
        ("Remove the tests.", "test_a"),
        ("Update the code. All existing tests pass unchanged.", "test_a"),
        ("Update the tests. Do not change the existing tests.", "test_a"),
        ("Add tests.", "test_a"),
        ("The test of the defaults follows the style guide.", "test_a"),
        ("Adapt the inline snapshot.", "test_a"),
        ("Update the test command.", "test_a"),
        ("The tests must pass (check: `update the tests`).", "test_a"),
        ("落ちているテストを修正してください。", "test_a"),
        ("Update the existing tests.", ""),
    ],
)
def test_the_text_does_not(text: str, names: str) -> None:
    assert not asks_to_adapt(text, names.split())


def test_a_snapshot_is_adapted_where_nothing_else_in_the_test_is() -> None:
    assert asks_to_adapt("Adapt the inline snapshot.", ["test_a"], snapshots=True)
    assert not asks_to_adapt("Adapt the inline snapshot.", ["a", "b"], snapshots=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Add tests for circles and for unknown kinds to test_shapes.py. No more.", True),
        ("Write the missing test cases in `tests/test_shapes.py`.", True),
        ("Do not add tests to test_shapes.py.", False),
        ("Add tests to test_shapes.py.bak.", False),
        ("Add tests for test_shapes.py.", False),
        ("Add tests. Do not look in test_shapes.py.", False),
    ],
)
def test_the_text_wants_tests_added_to_a_file(text: str, expected: bool) -> None:
    assert asks_to_add(text, "tests/test_shapes.py") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The default timeout becomes 30 seconds.", True),
        ("Raise the timeout from 10 to 30.", True),
        ("The timeout is now 30.", True),
        ("timeout の既定値を30に変更する。", True),
        ("The timeout does not become 30.", False),
        ("The port becomes 30. Mind the timeout.", False),
        ("The timeout becomes 30.5 seconds.", False),
        ("A timeout of 30 is too long.", False),
        ("The timeout becomes longer than 30.", False),
    ],
)
def test_the_text_says_that_something_becomes_so(text: str, expected: bool) -> None:
    assert says_it_becomes(text, "timeout", "30") == expected


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("Add tests for `luhn.py`, there are none. Cover spaces. No change to the code.", True),
        ("Write more unit tests for the parser.", True),
        ("Add tests to tests/test_cart.py until 90 percent of cart.py are covered.", True),
        ("luhn.py のテストを追加してください。", True),
        ("`spans.merge` has no tests. Add tests for it, the edge cases included.", True),
        ("Add tests for luhn.py, including empty texts.", True),
        ("Add tests for luhn.py, including a fix of what they find.", False),
        ("Add `slug` to text.py with tests for it.", False),
        ("Add slug and write tests for it.", False),
        ("Fix the bug. Add tests for it.", False),
        ("Implement `slug` in text.py. Add tests for text.py.", False),
        ("Don't add tests for x.py.", False),
    ],
)
def test_the_text_wants_tests_alone(text: str, alone: bool) -> None:
    assert asks_for_tests_alone(text) is alone


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It says `1 file found` now. Please fix the tests too.", True),
        ("Rename it everywhere, tests included.", True),
        ("Rename it everywhere, including the existing tests.", True),
        ("Also fix up the tests.", True),
        ("Fix the tests.", False),
        ("Fix the failing tests.", False),
        ("Don't fix the tests too.", False),
        ("Do not change anything, tests included.", False),
        ("Everything has to pass, including the tests.", False),
        ("The whole suite, including the existing tests, must stay green.", False),
        ("All checks pass, tests included.", False),
        ("Leave the API as it is, including the tests.", False),
        ("The API stays unchanged, tests included.", False),
        ("Fix `total`; keep everything else, tests included.", False),
        ("Nothing else changes, tests included.", False),
        ("CI runs all jobs including tests; one is red.", False),
    ],
)
def test_tests_go_along(text: str, expected: bool) -> None:
    assert asks_to_adapt(text, {"test_a", "test_b"}) == expected
