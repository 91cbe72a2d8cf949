"""Decides which proof stands for which criterion, and what evidence is worth. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agentrunner.config.spec import TestSpec
from agentrunner.state.evidence_words import Grade
from agentrunner.state.run_state import Criterion, Evidence, Proof
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import content_words
from agentrunner.verification.results.model import TestResult
from agentrunner.verification.results.names import belongs_to, own_name
from agentrunner.verification.subject_words import Own, has_any

ORDER: tuple[Grade, ...] = ("none", "judged", "shown", "accepted", "kept", "proven")
"""From the weakest to the strongest."""
TEST = "test"
TURNED = "failed before and passes now"
IN_WORDING = "in the worker's wording"
CODE_WORD = lazy_regex(r"`([^`]+)`|\b([A-Za-z_]\w*(?:[._]\w+)+|[a-z]+[A-Z]\w*)")


def weakest(grades: Iterable[Grade]) -> Grade:
    """The weakest of these grades; `none` where there are none."""
    return min(grades, key=ORDER.index, default="none")


def headline(grades: Sequence[Grade]) -> Grade:
    """The grade of a run: the weakest of its grades, where `kept` ones are left out.

    The headline is `kept` only for a run in which nothing else was asked for.
    """
    return weakest([grade for grade in grades if grade != "kept"] or grades)


def assigned(
    criteria: Sequence[Criterion], evidence: Evidence, test: TestSpec | None
) -> dict[str, Proof]:
    """The proof of each criterion, by its id.

    First comes a criterion's own check, then the tests that a person or the planner mapped to it.
    Of the suite's remaining proofs each test stands for one criterion that it names. It may stand
    for a criterion that it does not name only where nothing else was asked for, not even that the
    suite passes. Nothing proves a criterion whose check was withdrawn after work had begun.
    """
    found: dict[str, Proof] = {}
    best = _best(evidence.proofs)
    spent: set[str] = set()
    others: list[Criterion] = []
    is_suite_asked = False
    for criterion in criteria:
        if criterion.check is not None:
            whole = criterion.check.kind == "test" and not criterion.check.name and test is not None
            if proof := best.get(TEST if whole else criterion.id):
                found[criterion.id] = proof
            is_suite_asked = is_suite_asked or whole
            if not whole and criterion.check.kind in ("command", "test"):
                others.append(criterion)  # a test cannot be about a text in a file
            if criterion.check.name:
                spent.update(*(one.tests for one in evidence.proofs if one.target == criterion.id))
    mapped_ones = [
        (one, names_meant(one.tests, evidence.proofs))
        for one in criteria
        if one.check is None and one.tests and not (one.late or one.withdrawn is not None)
    ]
    for criterion, names in mapped_ones:
        if criterion.tests_of_person:  # as a check of this test, but for where it runs
            if proof := _proof_of_mapped(names, evidence.proofs):
                found[criterion.id] = proof
            others.append(criterion)
            spent.update(names)
    for criterion, names in mapped_ones:
        free = [name for name in names if name not in spent]
        if not criterion.tests_of_person and (proof := _proof_of_mapped(free, evidence.proofs)):
            found[criterion.id] = proof
            spent.update(proof.tests)
    without = [c for c in criteria if c.check is None and c.withdrawn is None]
    open_ones = [c for c in without if c.id not in found and not c.tests_of_person]
    mapped = [c for c in without if c.id in found]
    is_alone = len(open_ones) == 1 and not (others or mapped or is_suite_asked)
    for criterion, proof in _by_subject(
        open_ones, others, evidence.proofs, spent, mapped, is_alone=is_alone
    ):
        found[criterion.id] = proof
    nameless = next((p for p in evidence.proofs if p.target == TEST and not p.tests), None)
    if is_alone and nameless is not None:
        found.setdefault(open_ones[0].id, nameless)  # nothing else that it could be about
    return found


def of_number(what: str, number: int) -> str:
    """A phrase about one test, adapted to `number` of them: "fails" becomes "fail"."""
    return what if number == 1 else re.sub(r"\b(pass|fail)(es|s)\b", r"\1", what)


def _best(proofs: Sequence[Proof]) -> dict[str, Proof]:
    best: dict[str, Proof] = {}
    for proof in proofs:
        known = best.get(proof.target)
        if known is None or ORDER.index(proof.grade) > ORDER.index(known.grade):
            best[proof.target] = proof
    return best


def names_meant(names: Iterable[str], proofs: Sequence[Proof]) -> list[str]:
    """Names as the tool reports them: a person may write only the end of one, or a group's name.

    A name that no test of the proofs has stays as it is.
    """
    known = list(dict.fromkeys(one for proof in proofs for one in proof.tests))
    found: list[str] = []
    for name in names:
        meant = [one for one in known if belongs_to(TestResult(one, "passed"), name)]
        found += [name] if name in known or not meant else meant
    return list(dict.fromkeys(found))


def _proof_of_mapped(names: Sequence[str], proofs: Sequence[Proof]) -> Proof | None:
    """The proof made of the tests mapped to a criterion; None where any of them proves nothing."""
    grades: list[Grade] = []
    if not names:
        return None
    for name in names:
        proofs_of_name = [proof for proof in proofs if name in proof.tests]
        if not proofs_of_name:
            return None
        grades.append(max((proof.grade for proof in proofs_of_name), key=ORDER.index))
    grade = weakest(grades)
    more = f" and {len(names) - 2} more tests" * (len(names) > 2)
    return Proof(
        target=TEST,
        author="person" if grade == "proven" else "worker",
        grade=grade,
        text=f"{', '.join(names[:2])}{more} {of_number(TURNED, len(names))}",
        tests=list(names),
    )


def _by_subject(
    criteria: Sequence[Criterion],
    others: Sequence[Criterion],
    proofs: Sequence[Proof],
    spent: set[str],
    rivals: Sequence[Criterion],
    *,
    is_alone: bool,
) -> list[tuple[Criterion, Proof]]:
    """Criteria with the suite's test that is about each of them, best match first.

    A test that is as much about one of `others`, which have their own checks, stands for none.
    A test is specific to a criterion if it has a word that only this criterion has. Of the tests
    that are specific to none, only one stands for a criterion: it is about the others as well.
    `rivals` are the criteria that already have a proof by mapped tests. One that `is_alone` takes
    any test that was asked for: there is nothing else that it could be about.
    """
    tests = [
        (name, proof)
        for proof in sorted(proofs, key=lambda one: -ORDER.index(one.grade))
        for name in proof.tests
        if proof.target == TEST and name not in spent
    ]
    own = Own([_text(one) for one in [*criteria, *rivals]])
    ranked = sorted(
        (
            (specific, score, -place, number)
            for number, criterion in enumerate(criteria)
            for place, (name, proof) in enumerate(tests)
            if (score := _likeness(criterion, name, proof)) > 0
            and all(_likeness(other, name, proof) < score for other in others)
            and ((specific := _is_specific_to(own, number, name, proof)) or not own.code(number))
        ),
        reverse=True,
    )
    taken: set[int] = set()
    place_of: dict[int, int] = {}
    vague = 0
    for specific, _, place, number in ranked:
        if number not in place_of and -place not in taken and (specific or not vague):
            place_of[number] = -place
            taken.add(-place)
            vague += not specific
    asked = [place for place, (name, proof) in enumerate(tests) if name not in proof.unasked]
    if is_alone and asked and not place_of:
        place_of[0] = asked[0]
    return [
        (criteria[number], _proof_of_one_test(*tests[place]))
        for number, place in sorted(place_of.items())
    ]


def _is_specific_to(own: Own, number: int, name: str, proof: Proof) -> bool:
    """Whether a test has a word that only this criterion has, or its text is unknown."""
    words = own.words(number)
    if name not in proof.about:
        return True
    return has_any([*proof.about[name], *proof.names], {*words, *own.code(number)})


def _text(criterion: Criterion) -> str:
    return f"{criterion.description}\n{criterion.detail}"


def _likeness(criterion: Criterion, name: str, proof: Proof) -> int:
    """Words that a criterion shares with a test's name, plus twice the code words that it uses."""
    text = _text(criterion)
    words = content_words(text)
    code = {part for hit in CODE_WORD.finditer(text) for part in re.findall(r"\w+", hit[0])}
    return len(words & content_words(own_name(name).rpartition("/")[2])) + 2 * len(
        code.intersection(proof.names)
    )


def _proof_of_one_test(name: str, proof: Proof) -> Proof:
    """The part of a proof that rests on one test."""
    whose = f"{IN_WORDING} " if IN_WORDING in proof.text else "of the worker's own "
    as_it_was = proof.author == "person" or proof.text.endswith((TURNED, of_number(TURNED, 2)))
    what = TURNED if as_it_was else f"{whose}fails on the old code and passes now"
    return proof.model_copy(update={"tests": [name], "text": f"{name} {what}"})
