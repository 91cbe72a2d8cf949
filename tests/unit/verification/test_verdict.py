"""Who is believed: each row of the table of evidence, and each condition of COMPLETE."""

import re
from pathlib import Path

import pytest

from agentrunner.config.spec import Check, TestSpec
from agentrunner.state.evidence_words import Author, Grade
from agentrunner.state.run_state import (
    Acceptance,
    Assessment,
    CheckOutcome,
    Criterion,
    Evidence,
    Finding,
    Proof,
    RedTest,
    TestOutcome,
)
from agentrunner.state.worker_runs import WorkerRun
from agentrunner.verification.criterion_status import settle
from agentrunner.verification.evidence import findings
from agentrunner.verification.evidence.findings import allowed_paths, approval_of
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.grades import weakest
from agentrunner.verification.verdict import (
    NO_CHANGE,
    NO_PROOF,
    NOT_EXAMINED,
    Mode,
    complete,
    end_at_limit,
    judge,
    not_accepted,
    texts_of,
    worker_trouble,
)

TEST = TestSpec(command="pytest -q")
GREEN = TestOutcome(command="pytest -q", exit_code=0, passed=5, failed=0)
RED = TestOutcome(command="pytest -q", exit_code=1, passed=4, failed=1, failing=["test_x"])
KNOWN = RED.model_copy(update={"known_red": ["test_x"]})
KEPT = GREEN.model_copy(update={"green_before": True})
COMMAND = Check(kind="command", run="make check")
BY_TEST = Check(kind="test")
YES = Assessment(tree="t", satisfied=True, summary="all done", passed=["AC-1"])
NO = Assessment(tree="t", satisfied=False, summary="not yet", failed=["AC-1"])


def proof(
    author: Author = "person", target: str = "test", tests: tuple[str, ...] = ("test_x",)
) -> Proof:
    grade: Grade = "proven" if author == "person" else "shown"
    return Proof(target=target, author=author, grade=grade, text="test_x turned", tests=list(tests))


PROVEN, SHOWN = proof(), proof("worker")


def criterion(check: Check | None = None, **how: object) -> Criterion:
    return Criterion.model_validate({"id": "AC-1", "description": "works", "check": check, **how})


def outcome(result: str, before: str = "unknown") -> CheckOutcome:
    return CheckOutcome.model_validate(
        {"criterion_id": "AC-1", "what": "make check", "outcome": result, "before": before}
    )


def evidence(**how: object) -> Evidence:
    return Evidence.model_validate({"tree": "t", **how})


def asked(**how: object) -> Evidence:
    """Evidence of a tree that completion was asked for on."""
    return evidence(examined=True, **how)


def settled(of: Criterion, found: Evidence, claim: Assessment | None = None) -> Criterion:
    [one] = settle([of], found, claim, TEST)
    return one


@pytest.mark.parametrize(
    ("of", "found", "claim", "status", "kind"),
    [
        (criterion(COMMAND), evidence(checks=[outcome("passed")]), None, "passed", "checked"),
        (criterion(COMMAND), evidence(checks=[outcome("failed")]), YES, "failed", "checked"),
        (criterion(COMMAND), evidence(checks=[outcome("passed")]), NO, "failed", "judged"),
        (criterion(COMMAND), evidence(checks=[outcome("not_run")]), YES, "passed", "judged"),
        (criterion(BY_TEST), asked(test=GREEN, proofs=[PROVEN]), None, "passed", "tested"),
        (criterion(BY_TEST), asked(test=KNOWN, proofs=[PROVEN]), None, "passed", "tested"),
        (criterion(BY_TEST), asked(test=GREEN), None, "unknown", "none"),
        (criterion(BY_TEST), asked(test=KEPT), None, "passed", "tested"),
        (criterion(BY_TEST), evidence(test=GREEN), None, "unknown", "none"),
        (criterion(BY_TEST), evidence(), None, "unknown", "none"),
        (criterion(BY_TEST), evidence(test=RED), YES, "failed", "tested"),
        (criterion(), asked(test=GREEN, proofs=[PROVEN]), None, "passed", "tested"),
        (criterion(), asked(test=GREEN, proofs=[PROVEN]), NO, "failed", "judged"),
        (criterion(), evidence(), YES, "passed", "judged"),
        (criterion(), evidence(), NO, "failed", "judged"),
        (criterion(), evidence(), None, "unknown", "none"),
    ],
)
def test_each_criterion_gets_its_status_from_code(
    of: Criterion, found: Evidence, claim: Assessment | None, status: str, kind: str
) -> None:
    one = settled(of, found, claim)
    assert (one.status, one.evidence) == (status, kind)


@pytest.mark.parametrize(
    ("of", "found", "claim", "grade", "author"),
    [
        (criterion(BY_TEST), asked(test=GREEN, proofs=[PROVEN]), None, "proven", "person"),
        (criterion(BY_TEST), asked(test=GREEN, proofs=[SHOWN]), None, "shown", "worker"),
        (
            criterion(COMMAND),
            asked(checks=[outcome("passed", "red")], proofs=[proof(target="AC-1")]),
            None,
            "proven",
            "person",
        ),
        (
            criterion(COMMAND, check_origin="model"),
            asked(checks=[outcome("passed", "red")], proofs=[proof("planner", "AC-1")]),
            None,
            "shown",
            "planner",
        ),
        (criterion(COMMAND), asked(checks=[outcome("passed", "green")]), None, "kept", "person"),
        (criterion(COMMAND), asked(checks=[outcome("passed")]), None, "kept", "person"),
        (criterion(), evidence(), YES, "judged", "planner"),
        (criterion(), evidence(), None, "none", ""),
    ],
)
def test_evidence_is_worth_what_its_author_makes_it(
    of: Criterion, found: Evidence, claim: Assessment | None, grade: str, author: str
) -> None:
    one = settled(of, found, claim)
    assert (one.grade, one.author) == (grade, author)


@pytest.mark.parametrize(
    ("before", "kind"), [("red", "checked"), ("green", "judged"), ("unknown", "judged")]
)
def test_a_check_of_the_model_counts_only_if_it_was_red_before(before: str, kind: str) -> None:
    of = criterion(COMMAND, check_origin="model")
    assert settled(of, evidence(checks=[outcome("passed", before)]), YES).evidence == kind


def test_a_check_that_the_examination_doubts_counts_no_more() -> None:
    found = asked(checks=[outcome("passed", "red")], doubts={"AC-1": "it cannot say no"})
    one = settled(criterion(COMMAND), found)
    assert one.status == "unknown" and "but it cannot say no" in one.proof


def test_a_doubt_about_the_suite_is_told() -> None:
    found = asked(test=GREEN, doubts={"test": "test_x is skipped now"})
    assert "test_x is skipped now" in settled(criterion(BY_TEST), found).proof


def test_the_workers_own_test_is_named_as_such() -> None:
    found = asked(checks=[outcome("passed", "red")], proofs=[proof("worker", "AC-1")])
    assert "by the worker's own test" in settled(criterion(COMMAND), found).proof


def test_an_assessment_of_another_tree_is_no_word_about_this_one() -> None:
    stale = YES.model_copy(update={"tree": "older"})
    assert settled(criterion(), evidence(), stale).status == "unknown"


def accepted(tree: str = "t", criteria: list[str] | None = None) -> Acceptance:
    return Acceptance(criteria=criteria or [], reason="I looked", by="hana", at="", tree=tree)


@pytest.mark.parametrize(
    ("yes", "kind"),
    [
        (accepted(), "accepted"),
        (accepted(criteria=["AC-1"]), "accepted"),
        (accepted(criteria=["AC-2"]), "judged"),
        (accepted(tree="other"), "judged"),
    ],
)
def test_a_persons_yes_holds_for_what_and_for_the_tree_it_was_said_of(
    yes: Acceptance, kind: str
) -> None:
    [one] = settle([criterion()], evidence(), YES, TEST, [yes])
    assert (one.evidence, one.grade) == (kind, kind)


def test_a_persons_yes_never_stands_in_for_a_red_check() -> None:
    found = evidence(checks=[outcome("failed")])
    [one] = settle([criterion(COMMAND)], found, YES, TEST, [accepted()])
    assert one.status == "failed"


def test_a_persons_yes_does_not_lower_what_is_proven() -> None:
    found = asked(test=GREEN, proofs=[PROVEN])
    [one] = settle([criterion(BY_TEST)], found, None, TEST, [accepted()])
    assert one.grade == "proven"


def judged(of: Criterion, found: Evidence, mode: Mode = "evidence", **how: object) -> list[str]:
    return judge([settled(of, found, YES)], found, mode, **how).missing  # type: ignore[arg-type]


def test_complete_needs_green_tests_proof_and_every_critical_criterion() -> None:
    assert judged(criterion(), asked(test=GREEN, proofs=[PROVEN])) == []
    assert judged(criterion(), asked(test=KNOWN, proofs=[SHOWN])) == []


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (asked(test=RED, proofs=[PROVEN]), "exits 1: test_x"),
        (
            asked(test=GREEN.model_copy(update={"finding": "no count"}), proofs=[PROVEN]),
            "no count",
        ),
        (asked(test=GREEN), "no proof of work"),
        (asked(test=GREEN, doubts={"test": "nothing was struck."}), "(nothing was struck)"),
        (
            asked(
                test=GREEN,
                proofs=[PROVEN],
                findings=[Finding(code="tests_changed", message="weak")],
            ),
            "weak",
        ),
    ],
)
def test_each_missing_condition_is_named(found: Evidence, word: str) -> None:
    assert word in " ".join(judged(criterion(), found))


def test_a_finding_that_does_not_block_stands_in_no_ones_way() -> None:
    note = Finding(code="flaky", message="weak", blocks=False)
    assert judged(criterion(), asked(test=GREEN, proofs=[PROVEN], findings=[note])) == []


def test_non_critical_criteria_never_block() -> None:
    found = asked(proofs=[PROVEN])
    assert judge([settled(criterion(critical=False), found, NO)], found, "evidence").complete


OTHER = proof(tests=("test_other",))


@pytest.mark.parametrize(
    ("of", "found", "word"),
    [
        (criterion(), asked(proofs=[OTHER, PROVEN]), "word alone"),
        (criterion(BY_TEST), asked(test=GREEN, proofs=[SHOWN]), "shown by a test that the worker"),
        (
            criterion(tests=["test_x"], tests_origin="model"),
            asked(test=GREEN, proofs=[PROVEN]),
            "rests on tests that no person mapped to it",
        ),
    ],
)
def test_strict_names_what_it_does_not_take(of: Criterion, found: Evidence, word: str) -> None:
    second = Criterion(id="AC-2", description="more")  # so that not all is about the only one
    claim = YES.model_copy(update={"passed": ["AC-1", "AC-2"]})
    rows = settle([of, second], found, claim, TEST)
    assert word in judge(rows[:1], found, "strict").unproven[0].text


@pytest.mark.parametrize(
    ("of", "found"),
    [
        (criterion(BY_TEST), asked(test=GREEN, proofs=[PROVEN])),
        (criterion(tests=["test_x"]), asked(test=GREEN, proofs=[PROVEN])),
        (criterion(COMMAND), asked(checks=[outcome("passed", "green")], proofs=[PROVEN])),
    ],
)
def test_strict_takes_what_persons_wrote(of: Criterion, found: Evidence) -> None:
    assert judged(of, found, "strict") == []


def test_strict_takes_a_persons_yes() -> None:
    found, yes = asked(test=GREEN), accepted(criteria=["AC-1"])
    rows = settle([criterion()], found, YES, TEST, [yes])
    assert judge(rows, found, "strict", acceptances=[yes]).complete


def test_a_person_may_believe_exit_0_where_only_the_output_speaks_against_it() -> None:
    doubted = GREEN.model_copy(update={"finding": "exit 0, but the output ends without a count"})
    red = RedTest(name="test_x", message="1 != 2")
    for test, settled_ in ((doubted, True), (doubted.model_copy(update={"red": [red]}), False)):
        found, yes = evidence(examined=True, test=test), accepted()
        rows = settle([criterion(BY_TEST)], found, YES, TEST, [yes])
        judgement = judge(rows, found, "evidence", acceptances=[yes])
        assert judgement.complete is settled_
        (unsettled,) = judge(rows, found, "evidence").red[:1]
        assert ("agentrunner accept --reason" in unsettled) is settled_


def test_a_person_may_believe_a_check_that_exits_0() -> None:
    for disbelieved in (True, False):
        failed = outcome("failed").model_copy(update={"exit_code": 0, "disbelieved": disbelieved})
        found, yes = evidence(examined=True, checks=[failed]), accepted()
        rows = settle([criterion(COMMAND)], found, YES, TEST, [yes])
        assert judge(rows, found, "evidence", acceptances=[yes]).complete is disbelieved
        alone = settle([criterion(COMMAND)], found, YES, TEST)
        (red,) = judge(alone, found, "evidence").red
        assert ("agentrunner accept --reason" in red) is disbelieved


def test_an_exit_code_that_no_test_accounts_for_names_what_shows_its_cause() -> None:
    silent = TestOutcome(command="pytest -q", exit_code=1, passed=2, failed=0)
    (text,) = judge([criterion()], evidence(test=silent), "evidence").red
    assert text.endswith(
        "exits 1, though no test is red: agentrunner logs --tests shows what it printed"
    )
    (text,) = judge([criterion()], evidence(test=RED), "evidence").red
    assert "logs --tests" not in text
    broken = silent.model_copy(update={"passed": 0, "tail": "a.go:1:1: syntax error"})
    (text,) = judge([criterion()], evidence(test=broken), "evidence").red
    assert text.endswith("exits 1: a.go:1:1: syntax error")


def test_each_refusal_names_what_would_settle_it() -> None:
    red = RED.model_copy(update={"still_red": ["test_x"]})
    (text,) = judge([criterion()], evidence(test=red), "evidence").red
    assert text.endswith("for another reason: agentrunner accept --known-red NAME --reason TEXT")
    *others, last = judge([criterion()], evidence(test=GREEN), "evidence").missing
    assert "To settle it: a check that is red on the code before the run, or agentrunner" in last
    assert not any("To settle it" in one for one in others)
    shown = asked(proofs=[PROVEN.model_copy(update={"grade": "shown", "author": "worker"})])
    rows = settle([criterion(BY_TEST)], shown, YES, TEST)
    (text,) = judge(rows, shown, "strict").missing
    assert text.endswith("To settle it: agentrunner accept --reason TEXT, after agentrunner diff")
    target = Target("test", "pytest -q")
    for finding in (
        findings.tool_changed(target, "it answers"),
        findings.tests_gone(target, ["a"], findings.NOT_LOADED_BEFORE),
        findings.tests_gone(target, ["a"], findings.RAN_BEFORE),
    ):
        assert findings.WAITING.yes in finding.remedy
        assert "wanted?" not in findings.question_about(finding)


def test_what_an_ended_run_misses_names_what_is_taken_from_there() -> None:
    """Nobody is asked there, so `approve` and `reject` would find nothing that waits."""
    target = Target("test", "pytest -q")
    for finding in (
        findings.tool_changed(target, "it answers"),
        findings.looks_at_nothing(target, ["tests"]),
        findings.inputs_written(["a"]),
        findings.packages_changed(target, ["a"], ["t"]),
    ):
        assert findings.WAITING.yes in finding.remedy
        (text, *_) = judge([criterion()], asked(findings=[finding]), "evidence").missing
        assert "agentrunner accept --reason TEXT" in text
        assert not re.search("approve|reject", text)


def test_a_name_that_reads_like_a_command_stays_as_it_is() -> None:
    name = findings.WAITING.yes
    finding = findings.left_in_submodule(name, [f"{name}/a.py"])
    (text, *_) = judge([criterion()], asked(findings=[finding]), "evidence").missing
    assert f"git -C '{name}' push" in text and text.count(findings.ENDED.yes) == 1


def test_every_remedy_says_yes_and_no_in_the_words_of_its_run() -> None:
    source = Path(findings.__file__).read_text("utf-8")
    words = re.findall(r"\b(?:approve|reject)\b", source)
    assert len(words) == 2, "a remedy takes those of `Ways`"


@pytest.mark.parametrize(("trial", "complete_"), [(False, False), (True, True)])
def test_a_tree_without_a_change_completes_nothing_whatever_the_planner_says(
    trial: bool, complete_: bool
) -> None:
    found = evidence(examined=True, unchanged=True)
    rows = settle([criterion()], found, YES, None)
    judgement = judge(rows, found, "judged", trial=trial)
    assert judgement.complete is complete_
    assert any(one.startswith(NO_CHANGE) for one in judgement.missing) is not complete_
    assert "Nothing was changed." in complete(rows, found, "judged").text


def test_a_person_may_accept_a_tree_without_a_change() -> None:
    found = evidence(examined=True, unchanged=True)
    rows = settle([criterion()], found, YES, None)
    assert judge(rows, found, "judged", acceptances=[accepted()]).complete


def test_judged_admits_the_models_word_without_proof_and_says_so() -> None:
    found = evidence()
    rows = [settled(criterion(), found, YES)]
    assert judge(rows, found, "judged").complete
    verdict = complete(rows, found, "judged")
    assert (verdict.reason, verdict.grade) == ("unproven", "judged")


def test_complete_is_worth_what_its_weakest_critical_criterion_is() -> None:
    rows = [
        criterion(status="passed", grade="proven"),
        criterion(id="AC-2", status="passed", grade="shown"),
        criterion(id="AC-3", grade="judged", critical=False),
    ]
    rows = [Criterion.model_validate(row) for row in rows]
    assert complete(rows, asked(proofs=[PROVEN, SHOWN]), "evidence").grade == "shown"
    assert complete([], asked(proofs=[PROVEN]), "evidence").grade == weakest(["proven"])


def test_complete_tells_of_judged_criteria_and_of_known_reds() -> None:
    rows = [criterion(grade="judged"), criterion(id="AC-2", grade="proven")]
    text = complete(rows, asked(test=KNOWN, proofs=[PROVEN]), "evidence").text
    assert text.startswith("1 of 2 criteria without a proof of their own. test_x turned.")
    assert text.endswith("1 test was red before and still is: test_x.")


def test_an_approved_finding_is_no_longer_open() -> None:
    finding = Finding(code="tests_changed", message="weak", paths=["t.py"])
    found = asked(test=GREEN, proofs=[PROVEN], findings=[finding])
    assert judged(criterion(), found, approved=[approval_of(finding, found.tree)]) == []
    other = finding.model_copy(update={"paths": ["u.py"]})
    assert judged(criterion(), found, approved=[approval_of(other, found.tree)]) == ["weak"]
    others = finding.model_copy(update={"tests": ["test_y"]})
    assert judged(criterion(), found, approved=[approval_of(others, found.tree)]) == ["weak"]
    later = approval_of(finding, "e" * 40)
    assert judged(criterion(), found, approved=[later]) == ["weak"]


def test_paths_of_an_approved_finding_count_as_the_worker_left_them() -> None:
    finding = Finding(code="tests_changed", message="weak", paths=["t.py", "a.py"])
    found = evidence(findings=[finding], allowed=["u.py"])
    assert allowed_paths(found, []) == ["u.py"]
    assert allowed_paths(found, [approval_of(finding, "older")]) == ["u.py"]
    assert allowed_paths(found, [approval_of(finding, "t")]) == ["a.py", "t.py", "u.py"]


def blanket(found: Evidence, yes: Acceptance) -> list[str]:
    rows = settle([criterion()], found, YES, TEST, [yes])
    return judge(rows, found, "evidence", acceptances=[yes]).missing


def test_a_blanket_yes_stands_in_for_findings_and_proof_but_for_no_red() -> None:
    finding = Finding(code="tests_changed", message="weak")
    found = asked(test=GREEN, findings=[finding])
    assert blanket(found, accepted()) == []
    assert "weak" in blanket(found, accepted("other"))
    red = blanket(asked(test=RED), accepted())
    assert red == ["`pytest -q` exits 1: test_x"]


def end(found: Evidence, claim: Assessment | None = YES) -> str:
    rows = [settled(criterion(), found, claim)]
    return end_at_limit(rows, found, judge(rows, found, "evidence"), "loop_limit").state


@pytest.mark.parametrize(
    ("found", "claim", "state"),
    [
        (evidence(test=RED), YES, "FAILED"),
        (evidence(test=GREEN.model_copy(update={"finding": "fewer"})), YES, "FAILED"),
        (evidence(test=GREEN), NO, "FAILED"),
        (evidence(test=GREEN), YES, "NEEDS_REVIEW"),
        (evidence(test=KNOWN), YES, "NEEDS_REVIEW"),
        (evidence(), None, "NEEDS_REVIEW"),
    ],
)
def test_at_the_limit_red_fails_and_the_rest_is_for_a_person(
    found: Evidence, claim: Assessment | None, state: str
) -> None:
    assert end(found, claim) == state


def test_an_end_says_why_completion_and_an_acceptance_were_refused() -> None:
    found = evidence(test=GREEN)
    rows = [settled(criterion(), found, YES)]
    judgement = judge(rows, found, "evidence")
    verdict = end_at_limit(rows, found, judgement, "loop_limit", ["a person said no"])
    assert verdict.missing == [*judgement.missing, "a person said no"]
    assert not_accepted(verdict).missing[0].startswith("The acceptance was refused: ")
    stuck = verdict.model_copy(update={"reason": "stuck", "state": "FAILED"})
    assert not_accepted(stuck).state == "NEEDS_REVIEW"  # as it had ended


def test_the_last_workers_trouble_is_told() -> None:
    run = WorkerRun(worker_run_id="w1", worker="codex", loop=1, outcome="timeout")
    assert worker_trouble([]) == ""
    assert worker_trouble([run]).endswith("timeout")
    assert worker_trouble([run.model_copy(update={"outcome": "completed"})]) == ""


def test_a_refusal_for_red_does_not_say_that_nothing_turned() -> None:
    red = RED.model_copy(update={"turned": ["a"], "still_red": ["b"], "newly_red": ["c"]})
    found = judge([criterion()], evidence(test=red), "evidence")
    assert found.red[0].endswith(": turned green: a; red before and still: b; red only now: c")
    assert found.unproven[-1].text == NOT_EXAMINED and not found.complete
    green = GREEN.model_copy(update={"turned": ["a"]})
    assert not judge([criterion()], evidence(test=green), "evidence").complete
    assert NO_PROOF in judge([criterion()], evidence(test=RED), "evidence").unproven[-1].text


def test_a_proof_is_told_once_where_several_rest_on_the_same_tests_or_command() -> None:
    def told(target: str, *tests: str) -> Proof:
        what = ", ".join(tests) or "`make test`"
        text = f"{target}: {what} turned".removeprefix("test: ")
        return proof("person", target, tests).model_copy(update={"text": text})

    proofs = [told("test", "a"), told("AC-1", "a"), told("AC-2", "b")]
    assert texts_of(proofs) == ["a turned", "AC-2: b turned"]
    assert texts_of([told("test"), told("AC-1")]) == ["`make test` turned"]


def test_a_command_without_test_names_is_quoted_with_the_line_that_says_why() -> None:
    maven = "[ERROR] Failed to execute goal a:b:test: no c\n[ERROR] \n[ERROR]   mvn -rf :shop\n"
    broken = TestOutcome(command="mvn test", exit_code=1, tail=maven)
    (text, *_) = judge([criterion()], evidence(test=broken), "evidence").red
    assert text == "`mvn test` exits 1: [ERROR] Failed to execute goal a:b:test: no c"
    silent = TestOutcome(command="sh t.sh", exit_code=3, tail="building\nno such table: shop\n\n")
    found = judge([criterion()], evidence(test=silent), "evidence")
    assert found.red[0] == "`sh t.sh` exits 3: no such table: shop"
    named = judge(
        [criterion()], evidence(test=RED.model_copy(update={"tail": "1 failed"})), "evidence"
    )
    assert named.red[0] == "`pytest -q` exits 1: test_x"
