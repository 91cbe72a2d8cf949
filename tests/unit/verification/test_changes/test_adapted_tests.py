"""What a change of tests may be that a PRD asks for in ordinary words."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentrunner.verification.test_changes.adapted_tests import (
    adapted_in,
    adapts_snapshots,
    exchanged_values,
    has_same_values,
    with_guarded_imports,
)
from agentrunner.verification.test_changes.reworded_texts import WantedValues
from agentrunner.verification.test_changes.stated_values import hands_over_more

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


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (
            "@mark.parametrize('n', [10, 12])\ndef test_overdraw(n):\n"
            "    with raises(NoFunds, match='none left'):\n        account(n)\n",
            True,
        ),
        ("def test_overdraw():\n    with raises(OSError):\n        account(12)\n", False),
        ("def test_overdraw():\n    with raises(NoFunds):\n        account(12)\n", False),
        (
            "def test_overdraw():\n    with raises(NoFunds):\n        account(10)\n"
            "    assert account(12) == 'x'\n",
            False,
        ),
    ],
    ids=["more of it", "another error", "not what it asked for", "something else besides"],
)
def test_a_test_of_wanted_errors_may_hand_over_more(test: str, expected: bool) -> None:
    start, end = BEFORE.index("def test_overdraw"), BEFORE.index("def test_more")
    after = BEFORE[:start] + test + "\n\n" + BEFORE[end:]
    found = adapted_in(BEFORE.encode(), after.encode(), "python", WantedValues(WANTED))
    assert bool(found) == expected


def test_rows_in_the_place_of_lines_say_the_same() -> None:
    before = "def test_a ( ) : { assert f ( 1 ) == 2 assert f ( 3 ) == 4 }"
    after = (
        '@ mark . parametrize ( ( "n" , "m" ) , [ ( 1 , 2 ) , ( 3 , 4 ) ] )\n'
        "def test_a ( n , m ) : { assert f ( n ) == m }"
    )
    assert has_same_values(before, after)
    assert not has_same_values(before, after.replace("3 , 4", "3 , 5"))
    assert not has_same_values(before, after.replace("assert ", ""))
    assert not has_same_values(before, "return " + after)
    assert not has_same_values(before, after + " or more")


def test_a_stated_key_may_be_handed_over() -> None:
    wanted = "Orders get a required `currency` (EUR or USD)."
    before = 'assert problems ( { "id" : 1 } ) == [ ]'
    after = before.replace("1 }", '1 , "currency" : "EUR" }')
    assert hands_over_more(before, after, wanted)
    assert not hands_over_more(before, after.replace("EUR", "GBP"), wanted)
    assert not hands_over_more(before, after.replace('"id" : 1 , ', ""), wanted)
    assert not hands_over_more(before, after + " or True", wanted)
    either = f"{wanted} `check` returns the id or 0."
    for word in ("return ", "not "):
        assert not hands_over_more(before, word + after, either)
    assert not hands_over_more(before, after + " or check", either)
    assert not hands_over_more(before, after + " or 0", either)


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        ("assert f ( 1 ) == 2", "assert f ( 1 , abs = 3 ) == 2", True),
        ("assert f ( 1 ) == 2", "assert f ( 1 , 7 ) == 2", True),
        ("assert f ( 1 ) == 2", "assert f ( 1 , 8 ) == 2", False),
        ("assert g ( 1 ) == 2", "assert g ( 1 , 7 ) == 2", False),
        ("f ( 1 ) == pytest . approx ( 2 )", "f ( 1 ) == pytest . approx ( 2 , abs = 3 )", False),
        (
            "self . assertAlmostEqual ( f ( ) , 2 )",
            "self . assertAlmostEqual ( f ( ) , 2 , 3 )",
            False,
        ),
        ("expect ( f ( ) ) . toBeCloseTo ( 2 )", "expect ( f ( ) ) . toBeCloseTo ( 2 , 3 )", False),
        ("expect ( f ( ) ) . toBe ( 2 )", "expect ( f ( 3 ) ) . toBe ( 2 )", True),
        ("test ( 'a' , { b : 1 } , g )", "test ( 'a' , { b : 1 , abs : 3 } , g )", False),
        ("test ( 'a' , g )", "test ( 'a' , g , 3 )", False),
        (
            "test ( 'a' , ( ) => { f ( { b : 1 } ) })",
            "test ( 'a' , ( ) => { f ( { b : 1 , abs : 3 } ) })",
            True,
        ),
    ],
)
def test_what_the_kit_takes_is_not_handed_over(before: str, after: str, more: bool) -> None:
    wanted = "`abs` of `f` may be 3."
    head = "" if before.startswith("test") else "def test_it ( ) : { "
    assert hands_over_more(head + before, head + after, wanted, {"7"}, {"pytest"}) is more


@pytest.mark.parametrize(
    ("line", "now", "expected"),
    [
        ("self.assertEqual(vat(1000), 200)", "190", True),
        ("self.assertEqual(vat(1000), 200)", "180", False),
        ("self.assertEqual(tax(1000), 200)", "190", False),
        ("assert [(vat, 1000), (other(3), 200)]", "190", False),
    ],
    ids=["stated", "stated nowhere", "of nothing named", "of another row"],
)
def test_a_value_is_of_the_call_before_it(line: str, now: str, expected: bool) -> None:
    wanted = WantedValues("VAT is 19 % instead of 20 %: 1000 gives 190.")
    before = f"class T(TestCase):\n    def test_vat(self):\n        {line}\n"
    after = before.replace("200", now)
    assert bool(adapted_in(before.encode(), after.encode(), "python", wanted)) == expected


@pytest.mark.parametrize(
    ("now", "wanted", "adapted"),
    [
        ("assert f() == 20", "`f` gives 20.", True),
        ("assert f() >= 20", "`f` gives 20.", False),
        ("assert 20 <= f()", "`f` gives 20.", False),
        ("self.assertGreaterEqual(f(), 20)", "`f` gives 20.", False),
        ("assert f() >= 20", "`f` gives at least 20, not 6.", True),
    ],
)
def test_a_bound_is_no_value(now: str, wanted: str, adapted: bool) -> None:
    before = b"from a import f\n\n\ndef test_f():\n    assert f() == 6\n"
    after = before.replace(b"assert f() == 6", now.encode())
    found = adapted_in(before, after, "python", WantedValues(f"{wanted} It gave 6."))
    assert found == ({"test_f"} if adapted else set())


@pytest.mark.parametrize(
    ("was", "now", "adapted"),
    [
        ("f() == {'a': [1]}", "f() == {'a': [1], 'total': 2, 'page': 1}", True),
        ("f() == {'a': [1]}", "f() == {'a': [1], 'sum': 2}", False),
        ("f() == {'a': [1]}", "f() == {'a': [3], 'total': 2}", False),
        ("f() == {'a': [1, 2]}", "f() == {'a': [1], 'total': 2}", False),
        ("f(1) == 2", "f(2) == 1", False),
        ("f(3) == [1, 2]", "f(3) == [2, 1]", False),
        ("f({'a': 1}) == 1", "f({'a': 1, 'total': 2}) == 1", False),
        ("f() == {'a': f(1)}", "f() == {'a': f(1), 'total': g({'page': 7})}", False),
        ("f() == 1", "f(total=2) == 1", False),
    ],
)
def test_an_expected_mapping_gets_stated_keys(was: str, now: str, adapted: bool) -> None:
    head = "from a import f\n\n\ndef test_f():\n    assert "
    wanted = WantedValues("`f` also gives `total` and `page`. Update the tests.")
    names = adapted_in((head + was).encode(), (head + now).encode(), "python", wanted)
    assert bool(names) is adapted


def test_a_matcher_is_handed_a_mapping_with_stated_keys() -> None:
    before = b"test('f', () => { expect(f()).toEqual({ a: 1 }); });"
    after = before.replace(b"a: 1", b"a: 1, total: 2")
    wanted = WantedValues("It gives `total`, too.")
    assert adapted_in(before, after, "javascript", wanted)
    was, now = (
        one.replace(b"f()).toEqual(", b"f(").replace(b"});", b"})).toBe(1);", 1)
        for one in (before, after)
    )
    assert not adapted_in(was, now, "javascript", wanted)
