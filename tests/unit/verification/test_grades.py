"""Which proof stands for which criterion."""

import pytest

from agentrunner.config.spec import Check, TestSpec
from agentrunner.state.evidence_words import Author, Grade
from agentrunner.state.run_state import Criterion, Evidence, Proof
from agentrunner.verification.grades import TURNED, assigned, headline, of_number, weakest

TEST = TestSpec(command="pytest -q")
TOTAL, RATE = "tests/test_cart.py::test_total", "tests/test_tax.py::test_rate"


def proof(*tests: str, target: str = "test", author: Author = "person", names: str = "") -> Proof:
    grade: Grade = "proven" if author == "person" else "shown"
    return Proof(
        target=target,
        author=author,
        grade=grade,
        text="it turned",
        tests=list(tests),
        names=names.split(),
    )


def criterion(number: int = 1, description: str = "It works", **how: object) -> Criterion:
    return Criterion.model_validate({"id": f"AC-{number}", "description": description, **how})


def given(criteria: list[Criterion], *proofs: Proof) -> dict[str, list[str]]:
    """The tests that each criterion is given."""
    found = assigned(criteria, Evidence(tree="t", proofs=list(proofs)), TEST)
    return {name: one.tests for name, one in found.items()}


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        (["proven", "shown"], "shown"),
        (["kept", "judged", "accepted"], "judged"),
        (["proven", "kept"], "kept"),
        ([], "none"),
    ],
)
def test_a_whole_is_worth_what_its_weakest_part_is(grades: list[Grade], expected: str) -> None:
    assert weakest(grades) == expected


@pytest.mark.parametrize(
    ("grades", "expected"),
    [
        (["proven", "kept"], "proven"),
        (["shown", "kept", "proven"], "shown"),
        (["kept", "kept"], "kept"),
        (["kept", "none"], "none"),
        ([], "none"),
    ],
)
def test_what_was_so_before_does_not_lower_the_headline(grades: list[Grade], expected: str) -> None:
    assert headline(grades) == expected


def test_a_check_stands_on_its_own_proof_the_better_one() -> None:
    of = criterion(check=Check(kind="command", run="make check"))
    mine, better = proof(target="AC-1", author="worker"), proof(target="AC-1")
    evidence = Evidence(tree="t", proofs=[mine, better, proof(TOTAL)])
    assert assigned([of], evidence, TEST) == {"AC-1": better}
    assert given([of], proof(TOTAL)) == {}


def test_a_criterion_about_all_tests_stands_on_the_suite() -> None:
    assert given([criterion(check=Check(kind="test"))], proof(TOTAL, RATE)) == {
        "AC-1": [TOTAL, RATE]
    }


def test_mapped_tests_all_have_to_prove_something_and_the_weakest_counts() -> None:
    of = criterion(tests=[TOTAL, RATE])
    proofs = [proof(TOTAL), proof(RATE, author="worker")]
    found = assigned([of], Evidence(tree="t", proofs=proofs), TEST)["AC-1"]
    assert (found.grade, found.author, found.tests) == ("shown", "worker", [TOTAL, RATE])
    assert "AC-1" not in given([of, criterion(2)], proof(TOTAL))


def test_what_the_planner_maps_stands_for_one_criterion() -> None:
    both = [criterion(n, tests=[TOTAL], tests_origin="model") for n in (1, 2)]
    assert given(both, proof(TOTAL)) == {"AC-1": [TOTAL]}


def test_what_a_person_maps_may_stand_for_several() -> None:
    both = [criterion(n, tests=[TOTAL]) for n in (1, 2)]
    assert given(both, proof(TOTAL)) == {"AC-1": [TOTAL], "AC-2": [TOTAL]}


def test_each_test_goes_to_the_criterion_that_it_names() -> None:
    both = [criterion(1, "The tax rate is 19 %"), criterion(2, "The total adds up")]
    assert given(both, proof(TOTAL, RATE)) == {"AC-1": [RATE], "AC-2": [TOTAL]}


def test_one_test_is_not_about_two_criteria() -> None:
    both = [criterion(1, "The total is there"), criterion(2, "The total of totals adds up")]
    assert len(given(both, proof(TOTAL))) == 1


def test_code_that_a_test_uses_says_more_than_a_word_of_its_name() -> None:
    both = [criterion(1, "The total is there"), criterion(2, "`add_up` handles nothing")]
    found = given(both, proof(TOTAL, author="worker", names="add_up sum"))
    assert found == {"AC-2": [TOTAL]}


def test_among_several_criteria_a_test_that_names_none_stands_for_none() -> None:
    both = [criterion(1, "Pages are printed"), criterion(2, "Errors are friendly")]
    assert given(both, proof(TOTAL)) == {}


def test_the_only_criterion_needs_no_common_word() -> None:
    assert given([criterion(description="Pages are printed")], proof(TOTAL)) == {"AC-1": [TOTAL]}


def test_a_test_that_another_check_names_or_is_about_stands_for_nothing_else() -> None:
    """The README was not touched, and was "proven" by the test of the other criterion."""
    readme = criterion(2, "The README says how")
    named = criterion(1, "The tax rate is 19 %", check=Check(kind="test", name="test_rate"))
    run = criterion(1, "The tax rate is 19 %", check=Check(kind="command", run="make tax"))
    about = criterion(2, "The README says how the rate is found")
    for first in (named, run):
        for second in (readme, about):
            proofs = (proof(RATE), proof(RATE, target="AC-1"))
            assert given([first, second], *proofs) == {"AC-1": [RATE]}
            assert "AC-2" not in given([first, second], proof())  # an exit code alone
    whole = criterion(1, "All tests pass", check=Check(kind="test"))
    assert "AC-2" not in given([whole, readme], proof(RATE)), "the suite is about it"
    assert given([whole, about], proof(RATE))["AC-2"] == [RATE]
    text = criterion(1, "The README names the rate", check=Check(kind="file", path="README.md"))
    assert given([text, about], proof(RATE))["AC-2"] == [RATE]
    suite = criterion(1, "All tests pass", check=Check(kind="command", run="pytest -q"))
    more = criterion(2, "The tax rate is 19 %")
    assert given([suite, more], proof(RATE), proof(RATE, target="AC-1"))["AC-2"] == [RATE]


def test_what_a_person_named_is_left_for_no_criterion_beside_it() -> None:
    named = criterion(1, "The tax rate is 19 %", tests=["test_rate"])
    for beside in (criterion(2, "The README says how"), criterion(2, "The rate is in the README")):
        assert given([named, beside], proof(RATE)) == {"AC-1": [RATE]}
    assert given([named, criterion(2, "Pages are printed")], proof(TOTAL)) == {}
    planned = criterion(2, "The rate is known", tests=["test_rate"], tests_origin="model")
    assert given([planned, named], proof(RATE)) == {"AC-1": [RATE]}


def test_two_tests_of_one_criterion_stand_for_no_other_one() -> None:
    """Half of the work was done, and the other half was "proven" by one common word."""
    both = [
        criterion(1, "`total` multiplies price by count"),
        criterion(2, "`total` of a negative count raises ValueError"),
    ]
    three, many = "test_total_of_three", "test_total_of_many"
    half = proof(three, many).model_copy(
        update={"about": {three: ["total", "three"], many: ["total", "many"]}}
    )
    assert given(both, half) == {"AC-1": [three]}
    whole = half.model_copy(update={"about": {three: ["total"], many: ["total", "ValueError"]}})
    assert given(both, whole) == {"AC-1": [three], "AC-2": [many]}
    vague = [criterion(1, "The total counts"), criterion(2, "A total warns when stock is low")]
    assert len(given(vague, half)) == 1


@pytest.mark.parametrize(
    ("text", "of_one"),
    [
        ("a and b failed before and pass now", "failed before and passes now"),
        ("a and b in the worker's wording fail on the old code and pass now",
         "in the worker's wording fails on the old code and passes now"),
        ("a and b of the worker's own fail on the old code and pass now",
         "of the worker's own fails on the old code and passes now"),
    ],
)  # fmt: skip
def test_what_is_told_of_tests_is_told_of_one_of_them(text: str, of_one: str) -> None:
    shown = proof(TOTAL, RATE, author="worker").model_copy(update={"text": text})
    of = criterion(1, "The total adds up")
    found = assigned([of, criterion(2, "Pages")], Evidence(tree="t", proofs=[shown]), TEST)
    assert found["AC-1"].text == f"{TOTAL} {of_one}"


def test_a_test_without_a_common_word_proves_nothing() -> None:
    unasked = proof(TOTAL).model_copy(update={"unasked": [TOTAL]})
    assert given([criterion(description="Pages are printed")], unasked) == {}


def test_the_suite_of_a_check_is_no_test_of_the_suite() -> None:
    assert given([criterion()], proof("test_it_works", target="AC-2")) == {}


def test_several_tests_are_told_of_in_the_plural() -> None:
    assert of_number(TURNED, 1) == "failed before and passes now"
    assert of_number(TURNED, 2) == "failed before and pass now"
    own = "of the worker's own fails on the old code and passes now"
    assert of_number(own, 3) == "of the worker's own fail on the old code and pass now"
