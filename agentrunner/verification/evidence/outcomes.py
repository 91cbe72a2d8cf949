"""Turns a run of the test command or a check into an outcome; doubts some green ones. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from agentrunner.state.run_state import CheckOutcome, Criterion, RedTest, TestOutcome
from agentrunner.state.state_model import FileRef
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import sanitize
from agentrunner.verification.evidence.claims import Claims, red_names
from agentrunner.verification.evidence.findings import first_few
from agentrunner.verification.evidence.target import Measured
from agentrunner.verification.results.counts import Counts, disbelief
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import belongs_to, changing, gone, settled
from agentrunner.verification.rooms.decision_sandbox import TIMED_OUT

CARGO_STOPPED = lazy_regex(r"(?m)^error: test failed, to rerun pass ")
CARGO_RAN_ALL = lazy_regex(r"(?m)^error: \d+ targets? failed:$")
MINITEST = lazy_regex(r"(?m)^\d+ (?:runs|tests), \d+ assertions, \d+ failures, ")

Colour = Literal["green", "red", "unknown"]
MOST_NAMES = 50
MOST_RED = 10
MESSAGE = 600


def check_outcome(
    measured: Measured,
    what: str,
    why: str,
    before: Colour = "unknown",
    results: FileRef | None = None,
    *,
    unsure: bool | None = None,
    excused: bool = False,
) -> CheckOutcome:
    """The outcome of a criterion's check; `why` says why it never started, "" where it did.

    An `excused` red exit counts as green: `stands_for_others` was found of it.
    A check that never started counts as not run with `unsure`, else as failed. Without `unsure`
    a planner's check counts as not run and a person's as failed.
    """
    target, ran = measured.target, measured.ran
    by_name = measured.results
    absent = measured.names_no_test
    doubt = f"no test is called {target.test}" if absent else ""
    if measured.passed and not absent:
        doubt = (
            _why_not_believed(by_name) if by_name else disbelief(ran.exit_code, ran.counts, None)
        )
    detail = why or doubt or (f"timed out after {target.timeout_sec:g} s" * ran.timed_out)
    if excused:
        detail = "passes, beside known reds"
    elif measured.others_red and not detail:
        detail = "passes, beside red tests whose names contain its own"
    elif not (measured.passed or detail) and (words := _last_words(measured)):
        detail = f"exit {ran.exit_code}: {words[:200]}"
    silent = target.author == "planner" if unsure is None else unsure
    green = (measured.passed and not doubt) or excused
    return CheckOutcome(
        criterion_id=target.id,
        what=what,
        outcome="not_run" if why and silent else "passed" if green else "failed",
        exit_code=TIMED_OUT if ran.timed_out else ran.exit_code,
        before=before,
        detail=detail,
        output=ran.output,
        reader=by_name.reader if by_name else "",
        results=results,
        red=red_tests(by_name),
        unstarted=bool(why),
        disbelieved=bool(doubt) and not absent and ran.exit_code == 0 and not red_tests(by_name),
    )


def named_outcome(criterion: Criterion, now: Results, before: Results | None) -> CheckOutcome:
    """The outcome of the tests that a person named for a criterion, as the suite reports them.

    They cannot be run alone.
    """
    tests = criterion.tests_of_person
    detail = next((why for name in tests if (why := _why_not_green(name, now))), "")
    was = [] if before is None else [_why_not_green(name, before) for name in tests]
    return CheckOutcome(
        criterion_id=criterion.id,
        what=f"test {', '.join(tests)}",
        outcome="failed" if detail else "passed",
        before="unknown" if before is None else "red" if any(was) else "green",
        detail=detail,
        reader=now.reader,
    )


def _why_not_green(name: str, results: Results) -> str:
    """Why the tests of a name are not green; "" where they are."""
    tests = [test for test in results.tests if belongs_to(test, name)]
    if not tests:
        return f"no test is called {name}"
    if red := [test.name for test in tests if test.red]:
        return f"{first_few(red, 3)} failed"
    ran = any(test.outcome == "passed" for test in tests)
    return "" if ran else f"{first_few([test.name for test in tests], 3)} did not run"


def outcome_of(
    measured: Measured,
    before: TestOutcome | None = None,
    before_results: Results | None = None,
    claims: Claims | None = None,
    *,
    fewer_is_wanted: bool = False,
    one_stage: bool = False,
    results: FileRef | None = None,
) -> TestOutcome:
    """The outcome of a run of the test command.

    `before` is the same command's outcome on the tree to compare with, `before_results` its
    results by name. Known reds excuse a red exit only where the report is complete and no other
    stage of the command can be what failed (`one_stage`).
    """
    ran, by_name = measured.ran, measured.results
    known: list[str] = []
    if by_name is None:
        finding = disbelief(
            ran.exit_code, ran.counts, counts_of(before), fewer_is_wanted=fewer_is_wanted
        )
        if measured.passed and not finding and before_results is not None and before_results.tests:
            finding = f"exit 0, but {before_results.reader} reports no test by name any more"
    else:
        finding = _why_not_believed(by_name, claims) if measured.passed else ""
        known = _excused(measured, by_name, claims, one_stage=one_stage)
    if ran.timed_out:
        finding = f"timed out after {measured.target.timeout_sec:g} s"
    counts = ran.counts if by_name is None else _counts(by_name)
    lost = (
        gone(before_results, by_name, changing(before_results))
        if before_results and by_name
        else []
    )
    moved = _changed_colours(before_results, by_name, claims)
    lists = {
        "gone": lost,
        "known_red": known,
        "turned": moved[0],
        "still_red": moved[1],
        "newly_red": moved[2],
        "added": _added(before_results, by_name),
    }
    return TestOutcome(
        command=measured.target.shell,
        exit_code=ran.exit_code,
        green_before=_green_before(before, before_results, known),
        passed=counts.passed if counts else None,
        failed=counts.failed if counts else None,
        skipped=counts.skipped if counts else None,
        errors=counts.errors if counts else 0,
        failing=counts.failing if counts else [],
        red=red_tests(by_name),
        reader=by_name.reader if by_name else "",
        results=results,
        **{name: names[:MOST_NAMES] for name, names in lists.items()},
        totals={name: len(names) for name, names in lists.items() if len(names) > MOST_NAMES},
        finding=finding,
        hint=hint_of(measured.target.shell, ran.exit_code, ran.tail, by_name),
        output=ran.output,
        tail=ran.tail,
        duration_sec=ran.duration_sec,
    )


def _changed_colours(
    before: Results | None, now: Results | None, claims: Claims | None
) -> tuple[list[str], list[str], list[str]]:
    """Names that turned green, are still red, and are red only now; known reds left out."""
    if before is None or now is None:
        return [], [], []
    red_before, red_now = red_names(before), red_names(now)
    known = claims.known if claims else frozenset()
    same, red = {settled(name) for name in red_before}, frozenset(red_now)
    return (
        [name for name in red_before if name not in red and now.passed(name)],
        [name for name in red_before if name in red and name not in known],
        [name for name in red_now if settled(name) not in same],
    )


def _added(before: Results | None, now: Results | None) -> list[str]:
    """Names that pass now and were not there before."""
    if before is None or now is None:
        return []
    known = {settled(name) for name in before.names}
    passing = dict.fromkeys(test.name for test in now.tests if test.outcome == "passed")
    return [name for name in passing if settled(name) not in known and now.passed(name)]


def counts_of(outcome: TestOutcome | None) -> Counts | None:
    """An outcome's totals; None where its output does not tell them."""
    if outcome is None or outcome.passed is None:
        return None
    return Counts(outcome.passed, outcome.failed or 0, outcome.skipped or 0, errors=outcome.errors)


def red_tests(results: Results | None) -> list[RedTest]:
    """The first red tests, with their messages."""
    red = results.red if results else ()
    return [
        RedTest(name=test.name, file=test.file, line=test.line, message=test.message[:MESSAGE])
        for test in red[:MOST_RED]
    ]


def _last_words(measured: Measured) -> str:
    """The line that says most of a red run: of its first red test, else the end of the output."""
    for test in measured.results.red if measured.results else ():
        if lines := sanitize(test.message).strip().splitlines():
            return lines[0]
    return ["", *sanitize(measured.ran.tail).strip().splitlines()][-1]


def _why_not_believed(results: Results, claims: Claims | None = None) -> str:
    """Why exit 0 is not believed, given the results by name; "" where it is."""
    known = claims.known if claims else frozenset()
    red = [name for name in red_names(results) if name not in known]
    if red:
        return f"exit 0, but {first_few(red, 3)} failed"
    if not any(test.outcome in ("passed", "xpassed", "xfailed") for test in results.tests):
        return "exit 0, but no test ran"
    if not results.complete:
        return "exit 0, but the report of the tests ends too early"
    return ""


def _green_before(
    before: TestOutcome | None, results: Results | None, known: Collection[str]
) -> bool | None:
    """Whether the command was green before, or red for nothing but what is a known red now."""
    if before is None:
        return None
    return before.green or bool(known and results and set(known).issuperset(red_names(results)))


def _excused(
    measured: Measured, results: Results, claims: Claims | None, *, one_stage: bool
) -> list[str]:
    """The known reds that excuse a red run; [] where anything else is red too."""
    if claims is None or not claims.known or measured.ran.timed_out:
        return []
    red = red_names(results)
    if not any(test.outcome == "passed" for test in results.tests):
        return []
    if not measured.passed and (results.weak or not results.complete or not one_stage):
        return []
    return red if red and claims.known.issuperset(red) else []


def stands_for_others(results: Results | None, listed: Collection[str]) -> bool:
    """Whether a red run of some tests is red only for files or packages that a person listed.

    Those could not be loaded, and hold none of the tests that were asked for: these passed.
    """
    if results is None or results.weak or not results.complete or not results.red:
        return False
    passed = any(test.outcome == "passed" for test in results.tests)
    return passed and all(test.unloaded and test.name in listed for test in results.red)


def _counts(results: Results) -> Counts:
    by_outcome = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
    for test in results.tests:
        if test.outcome in by_outcome:
            by_outcome[test.outcome] += 1
    return Counts(
        by_outcome["passed"],
        by_outcome["failed"] + by_outcome["error"],
        by_outcome["skipped"],
        red_names(results)[:MOST_NAMES],
        errors=by_outcome["error"],
    )


def hint_of(shell: str, exit_code: int, tail: str, results: Results | None) -> str:
    """One sentence without a full stop; "" where there is nothing to say."""
    stopped = CARGO_STOPPED.search(tail) and not CARGO_RAN_ALL.search(tail)
    if exit_code and stopped and "--no-fail-fast" not in shell:
        return (
            "cargo stops at the first test program that fails, so the later ones did not run;"
            " `--no-fail-fast` runs them all"
        )
    if results is None and MINITEST.search(tail):
        return (
            "nothing is known by the names of its tests, as totals are all that it reports;"
            " Minitest from 5 on, with its plug-ins, and test-unit give the names (`--verbose`"
            " shows them)"
        )
    return ""
