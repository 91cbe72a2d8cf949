"""Whether a commit may become a branch's head, from what was measured on it. Pure.

Only what was green before and is red now counts. Each verdict says what causes that: two pieces of
work that are clean together, or one commit alone that lacks what its run had.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from msgspec import Struct

from agentrunner.config.prd import describe_check
from agentrunner.errors import EnvironmentNotReady
from agentrunner.plans.execution.merging.proofs import ProvenCriterion, RunFindings
from agentrunner.state.run_state import TestOutcome
from agentrunner.text.cut import some_of
from agentrunner.verification.evidence.claims import red_names
from agentrunner.verification.evidence.outcomes import counts_of
from agentrunner.verification.results.counts import disbelief
from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.results.names import changing, gone, settled
from agentrunner.verification.syntax.word_tests import number_of_definitions
from agentrunner.verification.test_changes.moves import not_moved


class NamedTests(Struct, frozen=True):
    """Results of one commit by name, and its files."""

    results: Results
    read: ReadFile
    cwd: str = "."
    """The folder that the test command runs in."""


MAX_NAMES = 20
"""Failing tests that are listed by name."""
MAX_LISTED = 5
"""Broken checks that are listed with their output."""

ALONE = "on a fresh checkout of this task's commit alone"
TOGETHER = "on this task's work and that of others, which are clean together"
ONTO = "on the plan's result and that branch, which are clean together"
LACKS = (
    "Where it is green in the run's work tree, the commit lacks something that is there, such as"
    " what is in folders that git ignores, and no set-up makes it.\n"
)
GONE = "These tests passed before, and are missing or skipped:\n{}"
FAILING = "These pass on this task's own commit, and fail with the work of others:\n{}"
MISSING = "These pass on this task's own commit, and are missing or skipped here:\n{}"
TWICE = (
    "Each side wrote a test of this name, and the merge has both definitions in one file, of which"
    " the tool runs one. Give this task's own test another name:\n{}"
)


@dataclass(frozen=True)
class MergeCandidate(RunFindings):
    """A commit that a branch is about to move to, and what has to hold on it: what the task's run
    has shown of `mine`."""

    commit: str
    before: str
    """The commit that the branch is at."""
    mine: str
    """The task's own commit; `commit` itself where nothing had to be merged."""
    task_id: str = ""
    """"" for a whole plan that is merged into another branch; `mine` is the plan's head then."""
    removed: int = 0
    """How many tests fewer there are for a good reason."""
    allowed: tuple[str, ...] = ()
    """Checks of others that a person permits it to leave hollow: only those that the person saw.
    Each is a `ProvenCriterion.key`."""


class MergeVerdict(Struct, frozen=True):
    """The verdict on a candidate."""

    evidence: str = ""
    """Why it is refused, for the run that has to fix it; "" where it may be merged."""
    broken: tuple[ProvenCriterion, ...] = ()
    """Checks that it breaks, or that only hollow tests keep green."""
    doubts: tuple[ProvenCriterion, ...] = ()
    """Checks of the task that are red on a fresh checkout of its own commit as well."""
    stuck: bool = False
    """Whether no run could start on it, to fix it: set-up, tests or such a check do not start."""
    anew: bool = False
    """Whether nothing is red on it, so that no run that starts on it could prove its work."""
    asks: str = ""
    """What a person has to decide, as the change may be intended; "" for nothing."""


class CheckOutput(Struct, frozen=True):
    """The outcome of a check on a whole commit."""

    red: bool
    """False also where the outcome is unknown."""
    output: str = ""
    """The end of it."""
    started: bool = True
    """False where its program is missing."""


class SetUpFailed(Struct, frozen=True):
    """The set-up command failed, so that nothing else could be run."""

    error: EnvironmentNotReady
    output: str
    """The end of it."""


def _nothing(path: str) -> bytes | None:
    return None


@dataclass(frozen=True)
class CommitFindings:
    """What was measured on one commit, as far as it was asked for."""

    test: TestOutcome | None = None
    seen: Mapping[str, CheckOutput] = field(default_factory=dict)
    """By `ProvenCriterion.key`."""
    failed: SetUpFailed | None = None
    started: bool = True
    """False where the test command could not decide anything."""
    results: Results | None = None
    """Of the test command by name, where it reports them."""
    read: ReadFile = field(default=_nothing, compare=False)
    """Reads a file of the commit."""
    cwd: str = "."
    """The folder that the test command runs in."""
    unsteady: tuple[str, ...] = ()
    """Tests that were red once and green once here, and were not so before."""
    excused: frozenset[str] = frozenset()
    """Tests that were both here, and on the commit before, too."""

    def red(self, proofs: Iterable[ProvenCriterion]) -> list[ProvenCriterion]:
        """Return those that are red here."""
        return [proof for proof in proofs if proof.key in self.seen and self.seen[proof.key].red]


def judge(
    candidate: MergeCandidate,
    landed: Sequence[ProvenCriterion],
    now: CommitFindings,
    before: CommitFindings,
    alone: CommitFindings,
    lost: LostInMerge | None = None,
) -> MergeVerdict:
    """Judge a candidate: `now` is its commit, `before` the branch's, `alone` that of `mine`.

    `landed` are checks of tasks that were merged before. A check that was not run then was green.
    `lost` are tests that `before` does not have and `mine` does.
    """
    lost = lost or LostInMerge()
    lone = candidate.commit == candidate.mine
    where = TOGETHER if candidate.task_id else ONTO
    if now.failed is not None:
        here = ALONE if lone or alone.failed else where
        return MergeVerdict(_text_of_set_up(now.failed, here), stuck=True)
    text, stuck, anew = "", False, False
    if red := newly_red(before, now, candidate):
        apart = lone or newly_red(before, alone, candidate)
        text = _text_of_tests(red, ALONE if apart else where)
        stuck = before.test is not None and not now.started
        anew = bool(red.lost) and not red.red
    elif lost.any:
        text, anew = _text_of_lost(lost, now, where), not lost.red
    own = now.red(candidate.proofs)
    doubts = tuple(own if lone or alone.failed else alone.red(own))
    broken = _each_once(
        chain(
            (proof for proof in now.red(landed) if proof not in before.red([proof])),
            (proof for proof in own if proof not in doubts),
        )
    )
    if broken:
        shown = _text_of_checks(broken, now, ALONE if lone else where)
        text = "\n".join(filter(None, [text, shown]))
        stuck = stuck or not all(now.seen[proof.key].started for proof in broken)
    return MergeVerdict(text, broken, doubts, stuck, anew=anew and not broken)


def judge_old_tests(
    landed: Sequence[ProvenCriterion], old: CommitFindings, touched: Sequence[str]
) -> MergeVerdict:
    """Judge the commit with its tests, and what steers them, as they were before (`old`); see
    `judge`.

    `touched` are the files that differ on the commit itself, where all of `landed` is green.
    """
    unproven = _each_once(old.red(landed))
    if not unproven:
        return MergeVerdict()
    names = some_of(touched, MAX_LISTED)
    what = f"It changes what proves other tasks: {names}.\n"
    text = _text_of_checks(unproven, old, f"with {names} as before")
    asks = f"{what}With that as it was before, these are red:\n{_listed(unproven)}"
    return MergeVerdict(what + text, unproven, asks=asks)


def _each_once(proofs: Iterable[ProvenCriterion]) -> tuple[ProvenCriterion, ...]:
    found: dict[str, ProvenCriterion] = {}
    for proof in proofs:
        found.setdefault(proof.key, proof)
    return tuple(found.values())


# -- the test command -----------------------------------------------------------------------------


class NewRed(Struct, frozen=True):
    """What the test command fails with now and did not before."""

    test: TestOutcome
    why: str
    names: tuple[str, ...] = ()
    """Failing tests, where its output names them."""
    lost: tuple[str, ...] = ()
    """Tests that passed before and are missing or skipped now."""
    red: bool = True
    """Whether a run that starts here finds something red."""


class LostInMerge(Struct, frozen=True):
    """Tests of the commit's own work that are not what they were, once it is merged."""

    missing: tuple[str, ...] = ()
    """They pass on its own commit, and are missing or skipped on the merge."""
    failing: tuple[str, ...] = ()
    """They pass on its own commit, and fail on the merge."""
    twice: tuple[str, ...] = ()
    """Each side defines such a test, and one of the two definitions is not run."""

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.missing or self.failing or self.twice)

    @property
    def red(self) -> bool:
        """Whether a run that starts on the merge finds something red."""
        return bool(self.failing)


def newly_red(
    was: CommitFindings, now: CommitFindings, candidate: MergeCandidate | None = None
) -> NewRed | None:
    """Return what is red now and was not before; None for nothing.

    Names decide where there are any. Else, where both are red, names and numbers of the failing
    tests in the output do; where a runner reports neither, red counts as unchanged. Tests that the
    candidate's own run took away are no reason.
    """
    if now.test is None:
        return None
    if was.results is not None and was.results.tests and was.test is not None:
        taken = candidate.taken if candidate else frozenset()
        return _newly_red_by_name(was, was.results, now, now.test, taken)
    return newly_red_by_count(was.test, now.test, candidate.removed if candidate else 0)


def _newly_red_by_name(
    was: CommitFindings,
    results: Results,
    now: CommitFindings,
    test: TestOutcome,
    taken: frozenset[str],
) -> NewRed | None:
    assert was.test is not None
    if now.results is None:
        if test.green:
            why = f"exit 0, but {results.reader} reports no test by name any more"
            return NewRed(test, why, red=False)
        return NewRed(test, test.finding or f"exits {test.exit_code}", tuple(test.failing))
    before, after = named(was), named(now)
    red = [name for name in red_since(before, after) if name not in now.excused]
    red = list(dict.fromkeys([*red, *now.unsteady]))
    lost = tuple(lost_since(before, after, taken))
    exits = f"exits {test.exit_code}" if test.exit_code else "exit 0"
    if red or lost:
        why = test.finding or (exits if red else f"{exits}, and does not run tests that passed")
        if now.unsteady and set(red) <= set(now.unsteady):
            why = "is red once and green once on this very tree"
        return NewRed(test, why, tuple(red), lost, red=bool(red) or test.exit_code != 0)
    excused = now.excused.issuperset(red_names(now.results)) and bool(now.results.red)
    if test.green or excused or not was.test.green:
        complete = now.results.complete or not results.complete
        return None if complete else NewRed(test, "the report of the tests ends too early")
    return NewRed(test, test.finding or exits, tuple(test.failing), red=not test.disbelieved)


def named(found: CommitFindings) -> NamedTests:
    """What is known of a commit's tests by name; empty results where there are none."""
    return NamedTests(found.results or Results(""), found.read, found.cwd)


def newly_red_by_count(
    was: TestOutcome | None, now: TestOutcome, removed: int = 0
) -> NewRed | None:
    """The same where the tests have no names; `removed` tests fewer are no reason."""
    if was is not None and was.passed is not None:
        was = was.model_copy(update={"passed": max(0, was.passed - removed)})
    doubt = disbelief(now.exit_code, counts_of(now), counts_of(was))
    if now.green and not doubt:
        return None
    why = now.finding or doubt or f"exits {now.exit_code}"
    if was is None or was.green:
        return NewRed(now, why, tuple(now.failing))
    if was.failed is None and now.failed is None:
        return None
    fresh = tuple(name for name in now.failing if name not in was.failing)
    fewer = (now.passed or 0) + (now.failed or 0) < (was.passed or 0) + (was.failed or 0)
    if was.failed is None or now.failed is None or fewer or fresh or now.failed > was.failed:
        return NewRed(now, why, fresh)
    return None


# -- words ----------------------------------------------------------------------------------------


def _text_of_tests(red: NewRed, where: str) -> str:
    text = f"The tests fail {where}: `{red.test.command}` {red.why}.\n"
    text += "".join(f"- {name}\n" for name in red.names[:MAX_NAMES])
    text += GONE.format(_rows(red.lost)) * bool(red.lost)
    return text + LACKS * (where == ALONE) + _end_of(red.test.tail)


def _text_of_lost(lost: LostInMerge, now: CommitFindings, where: str) -> str:
    command = now.test.command if now.test else ""
    text = f"Not every test that each side brought holds {where}: `{command}`.\n"
    text += FAILING.format(_rows(lost.failing)) * bool(lost.failing)
    text += MISSING.format(_rows(lost.missing)) * bool(lost.missing)
    return text + TWICE.format(_rows(lost.twice)) * bool(lost.twice)


def _rows(names: Sequence[str]) -> str:
    more = f"- and {len(names) - MAX_NAMES} more\n" * (len(names) > MAX_NAMES)
    return "".join(f"- {name}\n" for name in names[:MAX_NAMES]) + more


def _text_of_set_up(failed: SetUpFailed, where: str) -> str:
    details = [(label, text) for label, text in failed.error.details if label != "output"]
    facts = "\n".join(f"{label}: {text}" for label, text in details)
    text = f"The set-up command fails {where}, and did not before.\n{facts}\n"
    return text + LACKS * (where == ALONE) + _end_of(failed.output)


def _end_of(output: str) -> str:
    return f"\nThe end of its output:\n\n```\n{output.strip()}\n```\n" if output.strip() else ""


def _text_of_checks(broken: Sequence[ProvenCriterion], now: CommitFindings, where: str) -> str:
    names = some_of([f"{one.task_id} ({one.criterion.id})" for one in broken], MAX_LISTED)
    text = f"Checks that were green are red {where}: {names}. Keep what those tasks did.\n"
    for proof in broken[:MAX_LISTED]:
        words = " ".join(proof.criterion.description.split())
        text += f"\n{proof.task_id}, {proof.criterion.id}: {words}\n"
        text += f"`{describe_check(proof.criterion.check)}`\n"
        if output := now.seen[proof.key].output.strip():
            text += f"\n```\n{output}\n```\n"
    return text


def _listed(proofs: Sequence[ProvenCriterion]) -> str:
    """Return a line for each, without its output: for a person, who may not want to fix it."""
    text = ""
    for proof in proofs[:MAX_LISTED]:
        words = " ".join(proof.criterion.description.split())
        check = describe_check(proof.criterion.check)
        text += f"- {proof.task_id} ({proof.criterion.id}): {words}: `{check}`\n"
    return text + f"- and {len(proofs) - MAX_LISTED} more\n" * (len(proofs) > MAX_LISTED)


def text_of_doubts(doubts: Sequence[ProvenCriterion]) -> str:
    """Return the sentence about red checks of a task that was merged all the same; "" for none."""
    if not doubts:
        return ""
    names = ", ".join(proof.criterion.id for proof in doubts)
    was = "was" if len(doubts) == 1 else "were"
    return (
        f"{names} {was} green in the run, not on a fresh checkout of its commit, which lacks what"
        " is in folders that git ignores, or a set-up that makes it."
    )


def red_since(before: NamedTests, now: NamedTests) -> list[str]:
    """Names that are red now and were not before."""
    known = {settled(name) for name in red_names(before.results)}
    return [name for name in red_names(now.results) if settled(name) not in known]


def lost_since(before: NamedTests, now: NamedTests, taken: Collection[str] = ()) -> list[str]:
    """Names that passed before and are missing or skipped now, without those `taken` away.

    A test that passes under another name with the same text is not lost.
    """
    was, is_now = before.results, now.results
    lost = [name for name in gone(was, is_now, changing(was)) if name not in taken]
    return not_moved(lost, was, is_now, now.cwd, (before.read, now.read))


def not_kept_of(
    own: NamedTests, base: Results | None, before: Results, now: NamedTests
) -> list[str]:
    """Names that pass in one's own work and do not on the merge, though nobody else decided that.

    What passed on `base`, which both sides began with, and not on `before`, the other side, was
    decided there.
    """
    passing = [one.name for one in own.results.tests if one.outcome == "passed"]
    missing = [
        name
        for name in dict.fromkeys(passing)
        if own.results.passed(name)
        and not now.results.passed(name)
        and not (base is not None and base.passed(name) and not before.passed(name))
    ]
    red = set(red_names(now.results))
    lost = lost_since(own, now)
    return [name for name in missing if name in red or name in lost]


def defined_twice(
    now: NamedTests, sides: tuple[ReadFile, ReadFile], files: Collection[str]
) -> list[str]:
    """Names of tests that the merge defines more often than each side, and that run less often.

    `files` are those that both sides changed.
    """
    found = []
    for name, times in now.results.names.items():
        file = next(one.file for one in now.results.named(name))
        path = posixpath.normpath(posixpath.join(now.cwd, file)) if file else ""
        if path not in files:
            continue
        here = _definitions(now.read, path, name)
        if here > times and here > max(_definitions(read, path, name) for read in sides):
            found.append(name)
    return found


def _definitions(read: ReadFile, path: str, name: str) -> int:
    source = read(path)
    return number_of_definitions(source, path, name) if source is not None else 0
