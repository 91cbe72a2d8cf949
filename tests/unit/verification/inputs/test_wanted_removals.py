"""Code that a PRD wants removed, and its tests with it."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.wanted_removals import removed_names, removes_deprecated


@pytest.mark.parametrize(
    "text",
    [
        "Remove `show`.",
        "`show` を削除する。",
        "Remove `show` and its tests.",
        "`money.show` uses floats. Delete it and its tests.",
        "# Remove `show`\n\nIt is deprecated since 0.1. Remove the function and its test.",
        "Remove the function `show` from money/show.py together with its tests.",
        "`show` is old. Please delete it and the tests of it.",
        "`Money.show` is deprecated; remove it with its tests.",
        "Remove `show`, which has been deprecated since 0.0.9, together with its test. Bump it.",
        "Remove `show` (deprecated) and its tests.",
        "Nobody wants it. Remove it: the function `show`, its module and its tests.",
        "`show` is deprecated. Remove it: function, its test and the mention in README.md.",
        "Remove this: `show`, but keep `tell`. `other` stays.",
        "show() is deprecated; please delete it and its test.",
        "`show` は非推奨です。関数とそのテストを削除してください。",
        "`show` とそのテストを削除する。",
    ],
)
def test_code_with_its_tests(text: str) -> None:
    assert removed_names(text) == {"show"}


@pytest.mark.parametrize("name", ["old_show", "oldShow", "OldShow", "old_show()"])
def test_a_name_spelt_as_code_needs_no_back_quotes(name: str) -> None:
    text = f"{name} is deprecated; please delete it and its test."
    assert removed_names(text) == {name.removesuffix("()")}


@pytest.mark.parametrize(
    "text",
    [
        "Do not remove `show` and its tests.",
        "`show` and `tell` are old. Delete it and its tests.",
        "Delete it and its tests.",
        "Delete it: do not touch `show`.",
        "Old is deprecated. Delete it and its tests.",
        "Fix `show` and its tests. Delete the log.",
        "`show` とそのテストを削除しない。",
        "It is gone (check: `rm x`). Delete it and its tests.",
    ],
)
def test_nothing_if_in_doubt(text: str) -> None:
    assert removed_names(text) == set()


def test_what_is_deprecated_need_not_be_named() -> None:
    for text in (
        "Version 2: remove the deprecated functions from money.py, with their tests.",
        "Drop all deprecated APIs.",
        "非推奨の関数を削除する。",
    ):
        assert removes_deprecated(text)
    for text in (
        "Don't remove the deprecated functions yet.",
        "`total` is deprecated.",
        "非推奨の関数を削除しない。",
        "Remove the deprecated warning.",
        "Remove all calls of deprecated functions.",
        "Remove uses of the deprecated API.",
    ):
        assert not removes_deprecated(text)
