"""Tests that are gone together with the code that they were tests of."""

from __future__ import annotations

from agentrunner.verification.removed_tests import tests_gone_with as gone_with

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


def test_no_other_test_goes_along() -> None:
    assert not gone_with("tests/test_a.py", {"total_v1"}, OLD, None)


def test_the_rest_of_the_file_stays_as_it_was() -> None:
    for changed in (
        NEW.replace(b"== 2", b"== 3"),
        NEW.replace(b"import total", b"import price"),
        NEW + b"\n\ndef setup_module():\n    pass\n",
    ):
        assert not gone_with("tests/test_a.py", {"total_v1"}, OLD, changed)


def test_new_tests_may_stand_in_its_place() -> None:
    more = NEW + b"\n\ndef test_nothing():\n    assert total([]) == 0\n"
    assert gone_with("tests/test_a.py", {"total_v1"}, OLD, more) == {"test_v1"}
