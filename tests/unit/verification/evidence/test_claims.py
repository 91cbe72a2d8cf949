"""Which red tests have to turn, and which were red for another reason."""

from dataclasses import replace

import pytest

from agentrunner.config.agents import PlannerSpec
from agentrunner.config.spec import Check, PrdSpec, RunnerSection, TaskSection, TaskSpec, TestSpec
from agentrunner.state.run_state import Criterion
from agentrunner.text.mentions import content_words
from agentrunner.verification.evidence.claims import (
    Claims,
    Picked,
    claims_of,
    fresh,
    listed_but_green,
    listed_for_nothing,
    pick,
    red_names,
    turned,
)
from agentrunner.verification.evidence.wanted import wanted_by
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult

CART = "tests/test_cart.py::test_total"
TAX = "tests/test_tax.py::test_rate"


def results(*rows: tuple[str, TestOutcomeKind], weak: bool = False) -> Results:
    tests = tuple(TestResult(name, kind, file=name.partition("::")[0]) for name, kind in rows)
    return Results("pytest", tests, weak=weak)


BEFORE = results((CART, "failed"), (TAX, "error"), ("tests/test_ok.py::test_ok", "passed"))


@pytest.mark.parametrize(
    "wanted",
    [
        "make test_total pass",
        "see tests/test_cart.py",
        "see test_cart.py",
        "The cart adds up.",
        "Carts add up.",
    ],
)
def test_what_was_asked_names_a_red_test_by_name_file_or_subject(wanted: str) -> None:
    claims = claims_of(BEFORE, [wanted])
    assert claims == Claims(frozenset({CART}), frozenset({TAX}))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Money.Get", "Widgets have a Getter."),
        ("Money.Is", "This Is a bug of widgets, and so is an Issue."),
        ("unit.money.a", "Make a widget."),
        ("Many/Money.Sum/0", "It costs 10, or 0."),
        ("Shop.Tests.MoneyTests.Sum", "The Summary page shows the widgets."),
        ("money.js > rate", "Separate widgets."),
        ("test_it", "Make test_items pass."),
        ("money.js > rate", "See easymoney.js."),
    ],
)
def test_a_part_of_a_word_and_a_word_that_says_nothing_name_no_test(name: str, wanted: str) -> None:
    file = "money.js" if " > " in name else ""
    before = Results("x", (TestResult(name, "failed", file=file), TestResult(CART, "failed")))
    claims = claims_of(before, [f"test_total: {wanted}"])
    assert claims.claimed == {CART}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Money.Get", "Money is what get returns."),
        ("Money.testIt", "Make testIt pass."),
        ("t::test_error", "`test_error` fails."),
        ("money > is 0 for none", "It is 0 for none."),
        ("t::test_値", "test_値を通す。"),
    ],
)
def test_a_whole_name_names_its_test(name: str, wanted: str) -> None:
    before = results((name, "failed"), (TAX, "failed"))
    assert claims_of(before, [wanted]).claimed == {name}


@pytest.mark.parametrize(
    "aside",
    [
        "(The tax test is red on machines without rates, ignore it.)",
        "Ignore the red test_rate.",
        "tests/test_tax.py fails since May; that can be ignored.",
    ],
)
def test_a_test_that_is_to_be_ignored_is_not_asked_for(aside: str) -> None:
    claims = claims_of(BEFORE, [f"Carts add up.\n{aside}"])
    assert claims == Claims(frozenset({CART}), frozenset({TAX}))


def test_a_product_that_ignores_something_is_what_is_asked_for() -> None:
    claims = claims_of(BEFORE, ["Carts add up.", "The tax has to ignore rates below zero."])
    assert claims.claimed == {CART, TAX}


def test_where_nothing_red_is_named_all_of_it_is_claimed() -> None:
    claims = claims_of(BEFORE, ["Fix the build."])
    assert claims == Claims(frozenset({CART, TAX}))


def test_what_a_criterion_is_mapped_to_is_claimed() -> None:
    assert claims_of(BEFORE, ["Add it up."], mapped={TAX}).claimed == {TAX}
    for name in (TAX, "test_rate", "test_tax.py::test_rate"):
        assert claims_of(BEFORE, ["Add it up."], named={name}).claimed == {TAX}


@pytest.mark.parametrize("pattern", [TAX, "test_rate", "tests/test_tax.py::*", "*rate"])
def test_a_person_lists_known_reds_by_name_or_glob(pattern: str) -> None:
    claims = claims_of(BEFORE, ["tax rates"], listed=[pattern])
    assert claims == Claims(frozenset({CART}), frozenset({TAX}), frozenset({TAX}))


def test_what_a_criterion_stands_on_cannot_be_listed_away() -> None:
    assert TAX in claims_of(BEFORE, [], listed=["*"], mapped={TAX}).claimed
    assert TAX in claims_of(BEFORE, [], listed=["*"], named={"test_rate"}).claimed
    # A planner's word for a whole file takes nothing off a person's list.
    assert claims_of(BEFORE, [], listed=["*"], mapped={"tests/test_tax.py"}).claimed == set()


def test_strict_and_weak_results_know_listed_reds_only() -> None:
    strict = claims_of(BEFORE, ["cart"], listed=["test_rate"], only_listed=True)
    assert strict == Claims(frozenset({CART}), frozenset({TAX}), frozenset({TAX}))
    weak = results((CART, "failed"), (TAX, "failed"), weak=True)
    assert claims_of(weak, ["cart"]).claimed == {CART, TAX}


def test_without_results_nothing_is_claimed() -> None:
    assert not claims_of(None, ["cart"]).claimed


def test_what_is_listed_for_no_test_is_known_where_all_tests_have_names() -> None:
    assert listed_for_nothing(["test_ok", "test_rate", "nothing"], BEFORE) == ["nothing"]
    assert listed_for_nothing(["nothing"], None) == []
    assert listed_for_nothing(["nothing"], replace(BEFORE, weak=True)) == []


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("tests.test_calc.CalcTest.test_mul", "test_mul"),
        ("tests.test_calc.CalcTest.test_mul", "CalcTest.test_mul"),
        ("cart > adds up", "adds up"),
        ("TestCart/adds_up", "adds_up"),
    ],
)
def test_a_short_name_means_a_test_with_every_tool(name: str, short: str) -> None:
    before = results((name, "passed"), ("other", "failed"))
    assert listed_but_green([short], before) == [short]
    assert listed_but_green([short[1:]], before) == []


def test_a_listed_red_that_is_green_is_a_mistake_in_the_list() -> None:
    assert listed_but_green(["test_ok", "test_rate", "nothing"], BEFORE) == ["test_ok"]
    assert listed_but_green(["test_ok"], None) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("test_duplicateEmails", {"duplicate", "email"}),
        ("a taken e-mail", {"taken", "mail"}),
        ("カートの合計を返す", {"カート", "合計"}),
        ("HTTPServer and the URLs", {"http", "server", "url"}),
        ("合計を返す", {"合計"}),
    ],
)
def test_words_say_what_something_is_about(text: str, words: set[str]) -> None:
    assert content_words(text) == words


def test_what_was_claimed_and_passes_has_turned() -> None:
    now = results((CART, "passed"), (TAX, "skipped"), ("new", "passed"))
    assert turned(BEFORE, now, {CART, TAX}) == [CART]
    assert turned(None, now, {CART}) == []


def test_one_red_result_of_a_name_is_enough_to_keep_it_from_turning() -> None:
    assert turned(BEFORE, results((CART, "passed"), (CART, "failed")), {CART}) == []


def test_what_was_not_there_before_and_passes_is_fresh() -> None:
    now = results((CART, "passed"), ("new", "passed"), ("other", "failed"))
    assert fresh(BEFORE, now) == ["new"]
    assert fresh(None, now) == [CART, "new"]


def test_red_names_stand_once_each_in_their_order() -> None:
    assert red_names(results((TAX, "error"), (CART, "failed"), (TAX, "failed"))) == [TAX, CART]


@pytest.mark.parametrize(
    ("said", "picked"),
    [
        (["test_rate"], Picked((TAX,))),
        (["tests/test_tax.py::*"], Picked((TAX,))),
        (["test_ok"], Picked((), green=("test_ok",))),
        (["test_total"], Picked((), claimed=(CART,))),
        (["*"], Picked((TAX,), claimed=(CART,))),
        (["test_nothing", TAX], Picked((TAX,), unknown=("test_nothing",))),
    ],
)
def test_what_a_person_calls_a_known_red_is_held_against_the_old_results(
    said: list[str], picked: Picked
) -> None:
    assert pick(said, BEFORE, ["The cart adds up."], ()) == picked


def test_a_person_may_settle_what_nothing_names() -> None:
    assert pick([TAX], BEFORE, ["Fix the build."], ()).names == (TAX,)
    assert pick([TAX], BEFORE, ["Fix the build."], {TAX}).claimed == (TAX,)


def test_a_criterion_asks_for_what_it_and_its_check_say_and_for_no_name_of_a_field() -> None:
    test = TestSpec(command="pytest tests/test_tax.py")
    spec = TaskSpec.model_validate(
        {
            "task_id": "a", "title": "Carts", "repo": "/r", "prd_text": "Add it up.",
            "base_dir": "/r", "runner": RunnerSection(meta=PlannerSpec()),
            "task": TaskSection(prd=PrdSpec(text="Add it up."), test=test),
        }
    )  # fmt: skip
    quoted = f"The tests pass: `{test.command}`."
    check = Check(kind="test", name="test_rate")
    model = Criterion(id="AC-1", description=quoted, origin="model", check=check)
    asked = content_words("\n".join(wanted_by(spec, [model])))
    assert asked == content_words("Carts Add it up. The tests pass test_rate")
    person = Criterion(id="AC-1", description=quoted)
    assert "tax" in content_words("\n".join(wanted_by(spec, [person])))
