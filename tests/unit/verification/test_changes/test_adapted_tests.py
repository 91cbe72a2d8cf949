"""What a change of tests may be that a PRD asks for in ordinary words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentrunner.verification.test_changes.adapted_tests import (
    WantedValues,
    adapted_in,
    adapts_snapshots,
    exchanged_values,
    with_guarded_imports,
)

BEFORE = """\
from bank import account


def test_overdraw():
    assert account(10) is False


def test_more():
    assert account(3) == 7
"""
WANTED = "`account` raises `NoFunds` instead of returning False."


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("assert account(10) is False", "with raises(NoFunds):\n        account(10)", True),
        ("account(3) == 7", "account(3) == 8", False),
        ("account(3) == 7", "account(3)", False),
        ("def test_more", "def test_others", False),
        ("from bank import account", "from fakes import account", False),
        ("from bank import account\n", "from bank import account\naccount.raises = 1\n", False),
    ],
    ids=["stated", "another value", "a value less", "another name", "another import", "beside"],
)
def test_a_change_is_an_adaptation(old: str, new: str, expected: bool) -> None:
    adapted = BEFORE.replace("account(10) is False", "not account(10)")  # by itself it may
    after = (BEFORE if expected else adapted).replace(old, new)
    found = adapted_in(BEFORE.encode(), after.encode(), "python", WantedValues(WANTED))
    assert bool(found) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"retries": 3', '"retries": 5', True),
        ('"port": 8080', '"port": 5', False),
        ('"retries": 3', '"retries": 4', False),
        ('"retries": 3, ', "", False),
    ],
    ids=["stated of it", "stated of something else", "not stated", "left out"],
)
def test_a_value_that_is_not_stated_gives_way_to_one_that_is(
    old: str, new: str, expected: bool
) -> None:
    before = 'def test_all():\n    assert load() == {"retries": 3, "port": 8080}\n'
    wanted = "Operations asks for 5 retries. The test of the defaults follows."
    found = adapted_in(
        before.encode(), before.replace(old, new).encode(), "python", WantedValues(wanted)
    )
    assert bool(found) == expected


def test_a_name_that_cannot_be_imported_leaves_the_others_alone() -> None:
    source = b"import os.path as path, nowhere\nfrom json import (\n    dumps,\n    nothing,\n)\n"
    guarded = with_guarded_imports(source, "python")
    assert guarded is not None
    run = guarded + b"print(dumps([path.sep]))\n"
    assert subprocess.check_output([sys.executable, "-c", run]) == b'["/"]\n'
    assert with_guarded_imports(b"import a from 'a';\n", "typescript") is None


def test_an_inline_snapshot_is_told_from_the_rest_of_its_test() -> None:
    before = b"it('shows', () => { expect(f(90)).toMatchInlineSnapshot(`\"1:30\"`); });\n"
    shown = before.replace(b"1:30", b"1 h 30 min")
    assert adapts_snapshots(
        before, shown + b"it('zero', () => { expect(f(0)).toBe(0); });\n", "typescript"
    )
    assert not adapts_snapshots(before, shown.replace(b"f(90)", b"f(30)"), "typescript")


TABLE = """\
import pytest
from color import color


@pytest.mark.parametrize("n, name", [(100, "green"), (90, "green"), (89, "yellow"), (0, "red")])
def test_color(n, name):
    assert color(n) == name
"""
GONE = '(90, "green"), (89, "yellow")'
STATED = '(80, "green"), (79, "yellow")'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (GONE, STATED, True),
        (GONE, f'{STATED}, (60, "yellow"), (59, "red"), (33, "red")', True),
        (GONE, '(81, "green"), (79, "yellow")', True),
        (GONE, '(82, "green"), (79, "yellow")', False),
        (GONE, '(80, "green")', False),
        (', (0, "red")', "", False),
        (f'{GONE}, (0, "red")', f'{STATED}, (59, "red"), (0, "none")', False),
        (GONE, f'{STATED}, (90, "blue")', False),
        ('(0, "red")', '(59, "red")', False),
        (GONE, '(80, "green"), (60, "yellow")', True),
        ('(100, "green")', '(59, "red")', False),
    ],
    ids=[
        "stated", "with more rows", "next to a stated one", "not stated", "one row less", "dropped",
        "as it came out", "the same asked, else answered", "no limit of the product",
        "another limit", "nothing kept and no limit",
    ],
)  # fmt: skip
def test_rows_give_way_to_rows_that_are_stated(old: str, new: str, expected: bool) -> None:
    wanted = "Green starts at 80 percent now, yellow at 60. `color(79)` is yellow, `color(59)` red."
    after = TABLE.replace(old, new).encode()
    found = adapted_in(TABLE.encode(), after, "python", WantedValues(wanted, {"90", "70"}))
    assert bool(found) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("account(3) == 7", "account(3) == 8", [("account", "7", "8")]),
        ("account(3) == 7", "account(3) >= 7", None),
        ("account(3) == 7", "account(3)", None),
        ("account(3) == 7", "count(3) == 7", None),
    ],
    ids=["a value", "an operator", "a value less", "a name"],
)
def test_values_are_exchanged_for_others(
    old: str, new: str, expected: list[tuple[str, str, str]] | None
) -> None:
    after = BEFORE.replace(old, new).encode()
    assert exchanged_values(BEFORE.encode(), after, "python") == expected
