"""Tests that are gone together with the code that they were tests of."""

from __future__ import annotations

import pytest

from agentrunner.verification.test_changes.removed_tests import deprecated_names
from agentrunner.verification.test_changes.removed_tests import tests_gone_with as gone_from

ALIVE = frozenset({"total"})


def gone_with(path: str, names: set[str], before: bytes, after: bytes | None) -> set[str]:
    return gone_from(path, names, before, after, ALIVE)


OLD = b"""from shop import total, total_v1


def test_v1():
    assert total_v1([1]) == 1


def test_total():
    assert total([2]) == 2
"""
NEW = b"""from shop import total


def test_total():
    assert total([2]) == 2
"""


def test_a_test_goes_with_its_code() -> None:
    assert gone_with("tests/test_a.py", {"total_v1"}, OLD, NEW) == {"test_v1"}
    assert not gone_with("tests/test_a.py", {"other"}, OLD, NEW)


def test_new_tests_beside_count_as_nothing() -> None:
    more = (
        b"import shop\n\n"
        + NEW
        + b"\n\ndef test_v1_is_gone():\n    assert not hasattr(shop, 'v1')\n"
    )
    assert gone_with("tests/test_a.py", {"total_v1"}, OLD, more) == {"test_v1"}
    weaker = more.replace(b"total([2]) == 2", b"total([2])")
    assert not gone_with("tests/test_a.py", {"total_v1"}, OLD, weaker)


def test_a_new_test_does_not_ask_in_the_place_of_one_that_goes() -> None:
    both = OLD.replace(b"total_v1([1]) == 1", b"total_v1([1]) == total([1])")
    only = both[: both.index(b"\n\ndef test_total")]
    new = b"from shop import total\n\n\ndef test_more():\n    assert total([1])\n"
    assert not gone_with("tests/test_a.py", {"total_v1"}, only, new)


def test_no_other_test_goes_along() -> None:
    assert not gone_with("tests/test_a.py", {"total_v1"}, OLD, None)


def test_the_rest_of_the_file_stays_as_it_was() -> None:
    for changed in (
        NEW.replace(b"== 2", b"== 3"),
        NEW.replace(b"import total", b"import price"),
        NEW + b"\n\ndef setup_module():\n    pass\n",
    ):
        assert not gone_with("tests/test_a.py", {"total_v1"}, OLD, changed)


def test_a_test_that_alone_asks_what_stays_does_not_go() -> None:
    both = OLD.replace(b"total_v1([1]) == 1", b"total_v1([1]) == total([1])")
    assert gone_with("tests/test_a.py", {"total_v1"}, both, NEW) == {"test_v1"}
    only = both.replace(b"total([2]) == 2", b"True")
    assert not gone_with(
        "tests/test_a.py", {"total_v1"}, only, NEW.replace(b"total([2]) == 2", b"True")
    )


def test_a_variable_or_a_set_up_of_that_name_is_no_use_of_it() -> None:
    local = OLD.replace(b"assert total_v1([1]) == 1", b"total_v1 = 1\n    assert total_v1 == 1")
    assert not gone_with("tests/test_a.py", {"total_v1"}, local, NEW)
    setup = OLD.replace(b"assert total_v1([1]) == 1", b"assert total([1]) == 1")
    setup = setup.replace(
        b"def test_v1", b"def setup_function():\n    total_v1([])\n\n\ndef test_v1"
    )
    assert not gone_with("tests/test_a.py", {"total_v1"}, setup, NEW)


GIVEN_UP_PYTHON = """
def sum_lines(lines):
    \"\"\"Deprecated: use total.\"\"\"
    return 2


def total(lines, fmt=None):
    \"\"\"Adds up.

    What fmt gives is deprecated.
    \"\"\"
    if fmt:
        warn("fmt is deprecated")


def old():
    warn("old() is deprecated")


@deprecated("use total")
def older():
    pass


class Cart:
    def add(self):
        \"\"\"Deprecated.\"\"\"

    def put(self):
        pass
"""
GIVEN_UP_SCRIPT = """/** @deprecated use total */
export function sum() { return 1; }
export function total() { return 1; }
// deprecated
const add = () => 3;
"""
GIVEN_UP_GO = """package cart

// Sum adds up.
//
// Deprecated: use Total.
func Sum() int { return 1 }

func Total() int { return 1 }
"""


@pytest.mark.parametrize(
    ("source", "language", "names"),
    [
        (GIVEN_UP_PYTHON, "python", {"sum_lines", "old", "older", "add"}),
        (GIVEN_UP_SCRIPT, "javascript", {"sum", "add"}),
        (GIVEN_UP_GO, "go", {"Sum"}),
        ("OLD = 3  # deprecated\ndef total(): return 1\n", "python", set()),
        ("# This is not deprecated\ndef total(): return 1\n", "python", set()),
        ("#[deprecated]\npub fn sum() {}\npub fn total() {}\n", "rust", {"sum"}),
        (
            "class A { @Deprecated int sum() { return 1; } int total() { return 2; } }",
            "java",
            {"sum"},
        ),
    ],
)
def test_deprecated_names(source: str, language: str, names: set[str]) -> None:
    assert deprecated_names(source.encode(), language) == names
