from dataclasses import replace

import pytest

from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import (
    all_pass,
    belongs_to,
    clean,
    gone,
    is_called,
    made,
    only_of_name,
    parts_of,
    put_aside,
    stable,
    stands_for,
    unloaded,
    unstable_names,
)


def results(*each: tuple[str, str]) -> Results:
    return Results("x", tuple(made(name, outcome) for name, outcome in each))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("t.py::test[1]", "t.py::test[2]"),
        ("t.py::test[a::b[c]]", "t.py::test[x]"),
        ("run 0b8a5f0e-5d9e-4c58-9d3c-0a1f8a1b2c3d", "run 1b8a5f0e-5d9e-4c58-9d3c-0a1f8a1b2c3d"),
        ("<object at 0x7f12ab34cd56>", "<object at 0x7f99ab34cd56>"),
        ("reads /tmp/pytest-1/a.txt now", "reads /tmp/xyz/b.txt now"),
        ("on 2026-01-02T03:04:05Z", "on 2027-11-12T13:14:15Z"),
        ("adds (12.5 ms)", "adds (3 ms)"),
        ("src/lib.rs - add (line 3)", "src/lib.rs - add (line 14)"),
        ("T::testSum with data set #0", 'T::testSum with data set "big"'),
        ("shop.T#sums(int)[1]", "shop.T#sums(int)[2]"),
    ],
)
def test_what_changes_between_runs_is_cut(one: str, other: str) -> None:
    assert stable(one) == stable(other) != ""
    assert stable(stable(one)) == stable(one)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("tests/a.py::TestA::test_x", ["tests/a", "py", "TestA", "test_x"]),
        ("tests.a.TestA.test_x", ["tests", "a", "TestA", "test_x"]),
        ("TestA::test_x[1.5 a::b > c]", ["TestA", "test_x[1.5 a::b > c]"]),
        ("shop.T#sums(int, java.lang.String)", ["shop", "T#sums(int, java.lang.String)"]),
        ("a.test.js > cart > rounds cart.total", ["a.test.js", "cart", "rounds cart.total"]),
        ("a.test.js > items[0] > 2.5", ["a.test.js", "items[0]", "2.5"]),
        ("order() > when asked for a.b > keeps it", ["order()", "when asked for a.b", "keeps it"]),
        ("test[a[0] > b]", ["test[a[0] > b]"]),
        ("rounds 2.5", ["rounds 2.5"]),
        ("", [""]),
    ],
)
def test_a_name_has_parts_by_titles_or_by_words(name: str, parts: list[str]) -> None:
    assert parts_of(name) == parts


@pytest.mark.parametrize(
    ("one", "other"),
    [("t.py::test_a[1]", "t.py::test_b[1]"), ("adds 1", "adds 2"), ("v1.2", "v1.3"), ("é", "è")],
)
def test_what_tells_tests_apart_stays(one: str, other: str) -> None:
    assert stable(one) != stable(other)


def test_a_test_is_gone_when_it_passed_before_and_is_not_run_now_red_ones_are_red() -> None:
    before = results(*[(name, "passed") for name in "aabcdefg"], ("h", "failed"), ("i", "skipped"))
    now = results(
        ("g", "passed"), ("a", "passed"), ("a", "failed"), ("b", "skipped"), ("c", "xfailed"),
        ("d", "error"), ("e", "xpassed"), ("new", "passed"),
    )  # fmt: skip
    assert gone(before, now) == ["b", "c", "e", "f"]
    assert gone(before, before) == []
    assert gone(results(("a", "passed"), ("a", "passed")), results(("a", "passed"))) == ["a"]


def test_unstable_names_are_compared_by_their_stable_part_and_number() -> None:
    before = results(("t[17]", "passed"), ("t[18]", "passed"), ("u[1]", "passed"))
    again = results(("t[23]", "passed"), ("t[24]", "passed"), ("u[1]", "passed"))
    unstable = unstable_names(before, again)
    assert unstable == {"t[17]", "t[18]", "t[23]", "t[24]"}
    assert gone(before, again, unstable) == []
    assert gone(before, again) == ["t[17]", "t[18]"]
    fewer = results(("t[99]", "passed"), ("t[1]", "skipped"), ("u[2]", "passed"))
    assert gone(before, fewer, unstable) == ["t[*]", "u[1]"]


def passed(*names: str) -> Results:
    return results(*((name, "passed") for name in names))


def test_words_of_a_hash_and_places_of_tests_without_a_name_have_no_order() -> None:
    """As in ack, whose tests go through a Perl hash and put its files into their names."""
    before = passed("a.t > no error: ack x y z", "a.t > types > 3", "a.t > types > perl", "b.t > 1")
    again = passed("a.t > no error: ack z x y", "a.t > types > 2", "a.t > types > perl", "b.t > 1")
    unstable = unstable_names(before, again)
    now = passed("a.t > no error: ack y x z", "a.t > types > 4", "a.t > types > perl", "b.t > 1")
    assert gone(before, now, unstable) == []
    fewer = passed("a.t > no error: ack y x", "a.t > types > perl", "b.t > 2")
    lost = ["a.t > no error: ack x y z", "a.t > types > *", "b.t > 1"]
    assert gone(before, fewer, unstable) == lost


def test_names_are_shown_on_one_line() -> None:
    assert clean("a\nb\x1b[31m\u202e\ud800é") == "a\\x0ab\\x1b[31m\\x202e\\xd800é"
    assert len(clean("x" * 5_000)) == 1_000
    assert made("a", "strange").outcome == "error"
    assert len(made("a", "failed", message="x" * 5_000).message) == 2_000
    assert made("a", "passed", message="secret").message == ""
    assert made("a", "failed", message="a\nb\x1b[2J").message == "a\nb?[2J"


def cases(*ids: str) -> Results:
    return results(*[(f"t.py::test_a[{one}]", "passed") for one in ids])


@pytest.mark.parametrize(
    ("before", "now", "lost"),
    [
        # A case was put in front: the others have another place in the list.
        (["style0-red", "style1-blue"], ["style0-bold", "style1-red", "style2-blue"], []),
        # One of them was exchanged, and one left out.
        (["style0-red", "style1-blue"], ["style0-bold", "style1-red"], ["style1-blue"]),
        (["style0-red", "style1-red"], ["style0-red"], ["style1-red"]),
        # Somebody wrote these ids: the number is no place.
        (["utf8", "latin1"], ["utf16", "latin1"], ["utf8"]),
        (["case0-utf8"], ["case0-utf16"], ["case0-utf8"]),
        (["x1", "x2"], ["x0", "x1"], ["x2"]),
    ],
)
def test_a_case_at_another_place_of_its_list_is_not_gone(
    before: list[str], now: list[str], lost: list[str]
) -> None:
    assert gone(cases(*before), cases(*now)) == [f"t.py::test_a[{one}]" for one in lost]


def test_a_case_that_is_skipped_now_is_not_at_another_place() -> None:
    now = results(
        ("t.py::test_a[one0]", "passed"), ("t.py::test_a[one1]", "passed"),
        ("t.py::test_a[one2]", "skipped"), ("t.py::test_a[one3]", "passed"),
    )  # fmt: skip
    assert gone(cases("one0", "one1", "one2"), now) == ["t.py::test_a[one2]"]


def test_a_red_test_is_put_aside_when_it_is_only_skipped_or_expected_to_fail_now() -> None:
    outcomes = {"a": "skipped", "b": "xfailed", "c": "xpassed", "d": "passed", "e": "failed"}
    before = Results("x", tuple(made(name, "failed") for name in [*outcomes, "gone"]))
    now = Results("x", tuple(made(*one) for one in [*outcomes.items(), ("listed", "skipped")]))
    assert put_aside(before, now) == ["a", "b", "c"]
    twice = Results("x", (made("a", "skipped"), made("a", "passed")))
    assert put_aside(before, twice) == []


@pytest.mark.parametrize(
    ("name", "file", "test", "of"),
    [
        ("tests.test_far", "tests/test_far.py", "tests.test_far.FarTest.test_a", ""),
        ("tests.far", "", "tests.far.test_a.FarTest.test_a", ""),
        ("setUpClass (tests.test_db.DbTest)", "", "tests.test_db.DbTest.test_a", ""),
        ("t/test_far.py", "t/test_far.py", "t/test_far.py::test_a", "t/test_far.py"),
        ("t/__init__.py", "t/__init__.py", "t/test_far.py::test_a", "t/test_far.py"),
        ("x/far", "", "x/far.TestPay", "far/far_test.go"),
        ("far.test.js", "far.test.js", "far.test.js > total > is paid", "far.test.js"),
        ('t/a.js > far > "before all" hook for "a"', "", "t/a.js > far > a", ""),
        ('t/a.js > far > "after each" hook in "far"', "", "t/a.js > far > b", ""),
    ],
)
def test_what_could_not_be_loaded_stands_for_its_own_tests_alone(
    name: str, file: str, test: str, of: str
) -> None:
    one = unloaded(name, file)
    assert stands_for(one, made(test, "passed", of))
    others = ("tests.test_near.T.test_a", "x/near.TestPay", "x.TestPay", "t/b.js > far > a")
    assert not any(stands_for(one, made(other, "passed", "other.py")) for other in others)


@pytest.mark.parametrize(
    ("name", "short", "called"),
    [
        ("tests/a.py::test_mean", "test_mean", True),
        ("tests/a.py::test_mean[1.5]", "test_mean", True),
        ("tests/a.py::test_mean[1.5]", "test_mean[1.5]", True),
        ("tests/a.py::test_mean[2.5]", "test_mean[1.5]", False),
        ("tests/a.py::test_mean_of_nothing", "test_mean", False),
        ("tests/a.py::TestA::test_mean", "TestA.test_mean", True),
        ("tests/a.py::TestB::test_mean", "TestA::test_mean", False),
        ("tests.a.TestA.test_mean", "test_mean", True),
        ("a.test.js > cart > adds", "adds", True),
        ("a.test.js > cart > adds", "cart > adds", True),
        ("a.test.js > cart > adds nothing", "adds", False),
        ("Cart > uses Math.max", "uses Math.max", True),
        ("Cart > reads a::b", "reads a::b", True),
        ("Cart > takes /users#1", "takes /users#1", True),
        ("TestX/sub[a > b]", "TestX/sub", True),
        ("Sum.Adds/0", "Sum.Adds/0", True),
        ("Sum.Adds/1", "Sum.Adds/0", False),
    ],
)
def test_a_test_is_called_by_its_whole_name_or_the_end_of_it(
    name: str, short: str, called: bool
) -> None:
    assert is_called(name, short) is called


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Many/Sum.Adds/0", "Sum.Adds"),
        ("Sum/1.Adds", "Sum.Adds"),
        ("ATest::testTotal with data set #0", "testTotal"),
        ('ATest::testTotal with data set "tax"', "testTotal"),
        ("a.feature > A > adds -- @1.1 rows", "adds"),
        ("com.shop.SumTest#adds", "adds"),
        ("com.shop.SumTest#adds(int)[1]", "SumTest.adds"),
        ("com.shop.SumTest#adds{int, int}[1]", "adds"),
        ("Shop.Tests.Sum(a: 1, b: 2)", "Sum"),
        ("example.com/far.TestPay", "TestPay"),
        ("t/a.py::TestA::test_mean (n=1)", "test_mean"),
    ],
)
def test_a_case_is_a_test_of_that_name_in_every_tools_spelling(name: str, short: str) -> None:
    assert is_called(name, short)
    assert not is_called(name, f"{short}x") and not is_called(name, short[1:])


@pytest.mark.parametrize(
    ("passed", "red", "short"),
    [
        ("t/a.js > cart > total", "t/a.js > total > adds tax", "total"),
        ("t/a.js > cart > total", "t/a.js > cart > total > of none > is 0", "cart > total"),
        ("ATest::testTotal", 'BTest::testTotal with data set "tax"', "testTotal"),
        ("shop a::total", "shop b::total::case_1", "total"),
        ("shop lib tests::total", "shop cart total::case_1", "total"),
        ("Sum.Adds", "Many/Sum.Adds/0", "Sum.Adds"),
        ("a.feature > A > adds", "b.feature > B > adds -- @1.1 rows", "adds"),
        ("x/far.TestPay", "x/near.TestPay/of_none", "TestPay"),
        ("t/a.js > cart > f(x)", "t/a.js > f(x) > is 3", "f(x)"),
        ("com.shop.ATest#Total", "com.shop.BTest$Total.Total#adds", "Total"),
    ],
)
def test_a_red_case_or_group_of_the_name_is_no_other_test(
    passed: str, red: str, short: str
) -> None:
    other = "t/a.js > a subtotal" if " > " in red else "ATest::testSubtotal"
    every = results((passed, "passed"), (red, "failed"), (other, "failed"))
    found, others_red = only_of_name(every, short)
    assert [one.name for one in found.tests] == [passed, red]
    assert not others_red


@pytest.mark.parametrize(
    ("of", "separator"),
    [
        ("tests/test_mean.py", "tests/test_mean.py::"),
        ("tests/test_mean.py", "tests.test_mean.MeanTest."),
        ("test_mean", "test_mean > "),
    ],
)
def test_a_file_of_the_name_is_no_group_of_it(of: str, separator: str) -> None:
    tests = (
        made(f"{separator}test_mean", "passed", of),
        made(f"{separator}test_mean_of_nothing", "failed", of),
    )
    found, others_red = only_of_name(Results("x", tests), "test_mean")
    assert (found.tests, others_red) == (tests[:1], True)


def test_of_one_name_only_that_test_counts() -> None:
    both = results(("a::test_mean", "passed"), ("a::test_mean_of_nothing", "failed"))
    found, others_red = only_of_name(both, "test_mean")
    assert [one.name for one in found.tests] == ["a::test_mean"]
    assert others_red
    found, others_red = only_of_name(both, "test_mean_of_nothing")
    assert [one.name for one in found.tests] == ["a::test_mean_of_nothing"]
    assert not others_red
    assert only_of_name(both, "test_me") == (replace(both, tests=()), False)


@pytest.mark.parametrize(("weak", "complete"), [(True, True), (False, False)])
def test_a_report_that_may_lack_tests_is_not_narrowed(weak: bool, complete: bool) -> None:
    both = results(("a::test_mean", "passed"), ("a::test_mean_of_nothing", "failed"))
    both = replace(both, weak=weak, complete=complete)
    assert only_of_name(both, "test_mean") == (both, False)
    none = (both if not complete else replace(both, tests=()), False)
    assert only_of_name(both, "test_me") == none, "what is printed has a test of each name, too"


def test_what_could_not_be_loaded_may_hold_the_test() -> None:
    tests = (made("a::test_mean", "passed"), unloaded("b.py"))
    found, others_red = only_of_name(Results("x", tests), "test_mean")
    assert (found.tests, others_red) == (tests, False)


@pytest.mark.parametrize(
    ("name", "short", "called"),
    [
        ("t/a.js > cart > adds up", "cart adds up", True),
        ("t/a.js > cart > adds up", "cart > adds up", True),
        ("t/a.js > a > b c", "bc", False),
        ("t/a.js > cart > adds up to 10", "adds up to 1 0", False),
        ("shop.TestTotal/three_pieces", "TestTotal/three pieces", True),
        ("tests/test_cart.py::test_a", "test_cart.py::test_a", True),
        ("tests/my_test_cart.py::test_a", "test_cart.py::test_a", False),
        ("kit src/lib.rs tests::odd", "tests::odd", True),
        ("kit src/lib.rs clock::tests::odd", "tests::odd", True),
        ("kit tests/outside.rs odd", "odd", True),
        ("kit src/lib.rs tests::odd", "lib.rs tests::odd", False),
        ("kit src/lib.rs tests::even_odd", "tests::odd", False),
        ("kit src/lib.rs tests::odd", "other src/lib.rs tests::odd", False),
        ("api.test.js > api > GET /users", "users", False),
        ("api.test.js > api > GET /users", "GET /users", True),
        ("cart.test.js > cart > is empty", "cart › is empty", True),
        ("cart.test.js > cart > is empty", "art › is empty", False),
    ],
)
def test_names_as_people_write_or_tools_print_them(name: str, short: str, called: bool) -> None:
    assert is_called(name, short) is called


@pytest.mark.parametrize(
    "name",
    [
        "kit src/lib.rs clock::tests::odd",
        "doc kit src/lib.rs - largest (line 8)",
        "tests/test_a.py::TestA::test_a[x y/z-1.5]",
        "tests/test_a.py::TestA::test_a [half] (n=1)",
        "a.test.js > x > y z",
        "Many/Sum.Adds/0",
        "example.com/shop/cart.TestGood/a_b",
        "shop.CartTest#sums(int)[1]",
        "CartTest::testSum with data set #0",
    ],
)
def test_a_whole_name_is_that_of_its_test(name: str) -> None:
    assert belongs_to(made(name, "passed"), name)


def test_a_file_stands_for_its_tests_by_its_path_or_the_end_of_it() -> None:
    test = made("tests/test_cart.py::test_a", "passed", "tests/test_cart.py")
    assert belongs_to(test, "tests/test_cart.py") and belongs_to(test, "test_cart.py")
    assert not belongs_to(test, "cart.py") and not belongs_to(test, "test_cart")


@pytest.mark.parametrize(
    ("rows", "passes"),
    [
        ([("t.py::test_a", "passed"), ("t.py::test_a (n=1)", "passed")], True),
        ([("t.py::test_a", "passed")], True),
        ([("t.py::test_a", "passed"), ("t.py::test_a (n=2)", "failed")], False),
        ([("t.py::test_a", "passed"), ("t.py::test_a (n=1)", "skipped")], False),
        ([("t.py::test_b", "passed")], False),
        ([("t.py::test_a", "passed"), ("t.py::test_a [row [2]] (n=3)", "failed")], False),
        ([], False),
    ],
)
def test_a_case_passes_with_its_test_where_its_values_are_others_by_now(
    rows: list[tuple[str, str]], passes: bool
) -> None:
    assert all_pass(["t.py::test_a (n=1)"], results(*rows)) is passes


@pytest.mark.parametrize(
    ("name", "short", "belongs"),
    [
        ("shop tests::adds", "tests::adds", True),
        ("shop api adds", "adds", True),
        ("shop src/lib.rs tests::adds", "src/lib.rs tests::adds", True),
        ("shop src/lib.rs tests::adds", "other src/lib.rs tests::adds", False),
    ],
)
def test_a_test_of_cargos_is_found_by_each_end_of_its_name(
    name: str, short: str, belongs: bool
) -> None:
    assert belongs_to(made(name, "passed"), short) is belongs
