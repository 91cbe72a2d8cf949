"""Code that a PRD wants removed together with its tests."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.removed import removed_with_tests


@pytest.mark.parametrize(
    "text",
    [
        "Remove `show` and its tests.",
        "`money.show` uses floats. Delete it and its tests.",
        "# Remove `show`\n\nIt is deprecated since 0.1. Remove the function and its test.",
        "Remove the function `show` from money/show.py together with its tests.",
        "`show` is old. Please delete it and the tests of it.",
        "`Money.show` is deprecated; remove it with its tests.",
        "`show` は非推奨です。関数とそのテストを削除してください。",
        "`show` とそのテストを削除する。",
    ],
)
def test_code_with_its_tests(text: str) -> None:
    assert removed_with_tests(text) == {"show"}


@pytest.mark.parametrize(
    "text",
    [
        "Remove `show`.",
        "Do not remove `show` and its tests.",
        "`show` and `tell` are old. Delete it and its tests.",
        "Delete it and its tests.",
        "Fix `show` and its tests. Delete the log.",
        "`show` とそのテストを削除しない。",
        "It is gone (check: `rm x`). Delete it and its tests.",
    ],
)
def test_nothing_if_in_doubt(text: str) -> None:
    assert removed_with_tests(text) == set()
