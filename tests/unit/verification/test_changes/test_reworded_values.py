"""Tests whose texts changed just as the requirements state."""

from __future__ import annotations

import pytest

from agentrunner.verification.test_changes.adapted_tests import reworded_in
from agentrunner.verification.test_changes.reworded_texts import WantedValues, reworded

TYPO = 'It says "Unkown option", should be "Unknown option".'
BOXES = "`list` shows done items with `[x]`, others with `[ ]`."


@pytest.mark.parametrize(
    ("was", "now", "wanted"),
    [
        ("assert f ( ) == 'Unkown option: a'", "assert f ( ) == 'Unknown option: a'", TYPO),
        ("assert f ( ) == '1. milk'", "assert f ( ) == '1. [ ] milk'", BOXES),
        ("f ( ) == 'a'", "f ( ) == Path ( 'a' )", "Functions return a Path."),
        ("f ( ) == [ 'en' , 'de' ]", "f ( ) == [ 'en' , 'de' , 'fr' ]", "Add a French one."),
    ],
)
def test_a_test_follows_what_is_stated(was: str, now: str, wanted: str) -> None:
    assert reworded(was, now, WantedValues(wanted, ['"Unkown option: {x}"'], ["'fr'"], {"fr"}))


@pytest.mark.parametrize(
    ("was", "now", "wanted"),
    [
        ("assert f ( ) == 'Unkown option: a'", "assert f ( ) == 'Unknown option: b'", TYPO),
        ("assert f ( ) == 'Unkown option: a'", "assert f ( ) == 'anything'", TYPO),
        ("assert f ( ) == '1. milk'", "assert f ( ) == '2. [ ] milk'", BOXES),
        ("assert f ( ) == '1. milk'", "f ( ) == '1. [ ] milk'", BOXES),
        ("assert f ( ) == '1. milk'", "assert f ( ) == '1. [ ] milk' or True", BOXES),
        ("f ( ) == 'a'", "f ( ) == 'a' or Path ( 'a' )", "Functions take a str or a Path."),
        ("f ( ) == [ 'en' ]", "f ( ) == [ 'en' , 'xx' ]", "Add a French one."),
        ("assert f ( ) == 3", "assert f ( ) == 4", "There are 4 of 3."),
        ("assert f ( ) == 'a'", "assert f ( ) == 'a'", "Anything."),
    ],
)
def test_nothing_else_may_change(was: str, now: str, wanted: str) -> None:
    assert not reworded(was, now, WantedValues(wanted, ['"Unkown option: {x}"'], ["'xx'"], {"fr"}))


def test_all_tests_of_the_file_stay() -> None:
    before = b"def test_a():\n    assert f() == 'Unkown'\n\ndef test_b():\n    assert g()\n"
    after = before.replace(b"Unkown", b"Unknown")
    wanted = 'Say "Unknown", not "Unkown".'

    def names(text: bytes) -> set[str]:
        return reworded_in(before, text, "python", WantedValues(wanted, ["Unkown"]))

    assert names(after) == {"test_a"}
    assert names(after.partition(b"\n\ndef test_b")[0] + b"\n") == set()
    assert names(after + b"\ng = bool\n") == set()


def test_a_text_that_is_stated_otherwise_is_no_other_wording() -> None:
    wanted = WantedValues('No "file(s)": it says "1 file found" and "2 files found".')
    was = "assert f ( 1 ) == '1 file(s) found'"
    assert not reworded(was, "assert f ( 1 ) == '1 files found'", wanted)
