"""Turns evidence and the status of criteria into an end of the run. Pure.

`judge` says what stands between a tree and COMPLETE, of criteria that have been through `settle`.
`end_at_limit` says how a run ends that may not continue. None of them trusts the planner more than
an exit code.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from msgspec import Struct

from agentrunner.state.evidence_words import Grade
from agentrunner.state.run_state import (
    Acceptance,
    Criterion,
    Evidence,
    Finding,
    Proof,
    TestOutcome,
    Verdict,
)
from agentrunner.state.worker_runs import WorkerRun
from agentrunner.text.cut import telling_line
from agentrunner.text.sentences import ended
from agentrunner.text.terminal import sanitize
from agentrunner.verification.criterion_status import is_mapped_by_planner
from agentrunner.verification.evidence.findings import approval_of, first_few
from agentrunner.verification.grades import headline

Mode = Literal["evidence", "strict", "judged"]
STRICT: frozenset[Grade] = frozenset({"proven", "accepted", "kept"})
"""Grades that `completion: strict` accepts."""
LINE = 200
"""Characters of what a test command that names no test says of its end."""
SHOWN = 10
"""Names of tests listed in one sentence, of each kind."""
NO_PROOF = "Nothing that was red before this run is green now: there is no proof of work."
NOTHING_TURNED = "no test that was red before is green now"
"""Of a command with names; it says no more than `NO_PROOF`."""
NO_CHANGE = "Nothing was changed: a tree that is as it was before the run completes nothing."
BELIEVE = ". Where the output is as it should be: agentrunner accept --reason TEXT"
NO_RED = ", though no test is red: agentrunner logs --tests shows what it printed"
"""Of an exit code that no test accounts for: a tool, or what runs when the tests are over."""
NOT_EXAMINED = "What turned green is examined as a proof as soon as nothing is red."


BY_PROOF = "a check that is red on the code before the run, or agentrunner accept --reason TEXT"
BY_LOOKING = "agentrunner accept --reason TEXT, after agentrunner diff"
BY_NO_CHANGE = "agentrunner accept --unchanged --reason TEXT, where nothing had to change"
"""What is refused of a tree in which nothing changed is no proof: a plain acceptance is, too."""


@dataclass(frozen=True)
class Unproven:
    """What lacks evidence, as a sentence, and what settles it; "" where the run itself does."""

    text: str
    remedy: str = BY_PROOF


class Judgement(Struct, frozen=True):
    """What stands between a tree and COMPLETE.

    `red` has to be fixed, `open` findings need a person's decision, `unproven` lacks evidence.
    """

    red: list[str]
    open: list[Finding]
    unproven: list[Unproven]

    @property
    def complete(self) -> bool:
        """Whether nothing stands between the tree and COMPLETE."""
        return not (self.red or self.open or self.unproven)

    @property
    def missing(self) -> list[str]:
        """Everything that stands between, one sentence each.

        Its remedies are those of a run that asks nobody: a question to a person has its own.
        """
        found = [
            _with_remedy(one.message, one.remedy_when_ended or one.remedy) for one in self.open
        ]
        found += [one.text for one in self.unproven[:-1]]
        # The remedy of the last settles all that is not proven.
        found += [_with_remedy(one.text, one.remedy) for one in self.unproven[-1:]]
        return [*self.red, *found]


def judge(
    criteria: Sequence[Criterion],
    evidence: Evidence,
    mode: Mode,
    *,
    approved: Collection[str] = (),
    acceptances: Sequence[Acceptance] = (),
    trial: bool = False,
) -> Judgement:
    """What stands between this tree and COMPLETE; `criteria` have been through `settle`.

    `approved` are ids of findings that a person allowed (`approval_of`). A blanket acceptance of
    this tree (`agentrunner accept` without criteria) stands in for missing proof and open findings.
    `trial` is a run of the mock planner, which has no work to do: only there may nothing change.
    """
    vouched = any(not yes.criteria and yes.tree == evidence.tree for yes in acceptances)
    anyone = any(yes.tree == evidence.tree for yes in acceptances)
    proven = bool(evidence.proofs)
    unproven = [_why_unproven(c, mode) for c in criteria if _lacks_proof(c, mode, proven=proven)]
    if mode != "judged" and not proven and not anyone:
        doubt = next((text for text in evidence.doubts.values() if text), "").rstrip(".")
        later = _has_turned(evidence) and not evidence.examined
        reason = NOT_EXAMINED if later else NO_PROOF
        listed = [*(u.text for u in unproven), *(f.message for f in evidence.findings)]
        known = doubt in ("", NOTHING_TURNED)
        known = known or any(doubt.lower() in text.lower() for text in listed)
        text = reason if known else f"{reason.rstrip('.')} ({doubt})."
        unproven.append(Unproven(text, "" if later else BY_PROOF))
    if mode == "judged" and evidence.unchanged and not (anyone or trial):
        unproven.append(Unproven(NO_CHANGE))
    if evidence.unchanged:
        unproven = [replace(one, remedy=BY_NO_CHANGE if one.remedy else "") for one in unproven]
    return Judgement(
        red=_red(criteria, evidence, vouched=vouched),
        open=[
            finding
            for finding in evidence.findings
            if finding.blocks
            and not vouched
            and approval_of(finding, evidence.tree) not in approved
        ],
        unproven=unproven,
    )


def _with_remedy(text: str, remedy: str) -> str:
    """What stands between, and the edit or command that settles it."""
    return f"{text.rstrip('.')}. To settle it: {remedy}" if remedy else text


def _has_turned(evidence: Evidence) -> bool:
    """Whether a test or check that was red before passes now, whatever that is worth."""
    test, checks = evidence.test, evidence.checks
    turned = any(one.outcome == "passed" and one.before == "red" for one in checks)
    return turned or bool(test and test.turned)


def _red(criteria: Sequence[Criterion], evidence: Evidence, *, vouched: bool) -> list[str]:
    red = []
    believed = vouched and evidence.test is not None and evidence.test.disbelieved
    if evidence.test is not None and not evidence.test.green and not believed:
        why = evidence.test.finding or f"exits {evidence.test.exit_code}"
        names = _red_names(evidence.test) or _why(evidence.test)
        red.append(f"`{evidence.test.command}` {why}{names}{_advice(evidence.test)}")
    doubted = {one.criterion_id for one in evidence.checks if one.disbelieved}
    red += [
        f"{criterion.id} failed: {criterion.proof}{BELIEVE * (criterion.id in doubted)}"
        for criterion in criteria
        if criterion.critical and criterion.status == "failed"
    ]
    return red


def _red_names(test: TestOutcome) -> str:
    """Lists the red tests; where the tests before the run are known, also those that turned."""
    if not (test.still_red or test.newly_red):
        unnamed = NO_RED if test.passed and not (test.failed or test.finding) else ""
        return f": {', '.join(test.failing[:3])}" if test.failing else unnamed
    rows = (
        ("turned green", test.turned, test.how_many("turned")),
        ("red before and still", test.still_red, test.how_many("still_red")),
        ("red only now", test.newly_red, test.how_many("newly_red")),
    )
    parts = [f"{word}: {first_few(names, SHOWN, number)}" for word, names, number in rows if names]
    return f": {'; '.join(parts)}"


def _why(test: TestOutcome) -> str:
    """What a command that names no test says of its end; "" where a finding says more."""
    line = "" if test.finding else telling_line(sanitize(test.tail), LINE)
    return f": {line}" if line else ""


def _advice(test: TestOutcome) -> str:
    """What would show more, and what a person can do where only tests of before are red."""
    hint = f". {test.hint[:1].upper()}{test.hint[1:]}" * bool(test.hint)
    if test.disbelieved:
        hint += BELIEVE
    several = test.turned or len(test.still_red) > 1
    if test.still_red and not test.newly_red and not test.finding:
        hint += ". Each of these counts as asked for; where one is red" if several else ". Red"
        hint += " for another reason: agentrunner accept --known-red NAME --reason TEXT"
    return hint


def _lacks_proof(criterion: Criterion, mode: Mode, *, proven: bool) -> bool:
    """Whether a critical criterion has less evidence than the mode requires.

    In `evidence` a single criterion may rest on a judgement beside others that do not.
    """
    if not criterion.critical or criterion.status == "failed":
        return False
    if criterion.status != "passed":
        return True
    if mode == "strict":
        mapped = is_mapped_by_planner(criterion) and criterion.grade == "proven"
        return criterion.grade not in STRICT or mapped
    return mode == "evidence" and criterion.grade == "judged" and not proven


def _why_unproven(criterion: Criterion, mode: Mode) -> Unproven:
    what, proof = criterion.description, criterion.proof
    if criterion.status != "passed" or mode != "strict":
        return Unproven(f"{criterion.id} is not proven yet: {proof or what}")
    why = f"{_BELOW_STRICT.get(criterion.grade, '')}: {what}"
    if criterion.withdrawn is not None:
        why = f"{_BELOW_STRICT['judged']}; {proof}"
    return Unproven(f"{criterion.id} {why}", BY_LOOKING)


_BELOW_STRICT = {
    "judged": "rests on the planner's word alone",
    "shown": "is shown by a test that the worker or a check that the planner wrote, which"
    " `strict` does not take",
    "proven": "rests on tests that no person mapped to it, which `strict` does not take",
}


def complete(criteria: Sequence[Criterion], evidence: Evidence, mode: Mode) -> Verdict:
    """The verdict of a tree that `judge` found complete; it mentions where nothing proves it."""
    critical = [c for c in criteria if c.critical]
    judged = [c.id for c in critical if c.grade == "judged"]
    grades = [c.grade for c in critical] or [proof.grade for proof in evidence.proofs]
    grade = headline(grades)
    if mode == "judged" and (not evidence.proofs or judged):
        return Verdict(
            state="COMPLETE",
            reason="unproven",
            text=f"{withdrawn_checks(criteria)}The planner's word was admitted as evidence"
            f" (completion: judged).{' Nothing was changed.' * evidence.unchanged}",
            grade=grade,
        )
    text = "; ".join(texts_of(evidence.proofs)[:2]) or "Accepted by a person"
    text += "."
    if judged:
        text = f"{len(judged)} of {len(critical)} criteria without a proof of their own. {text}"
    text = f"{withdrawn_checks(criteria)}{text}"
    if evidence.test is not None and evidence.test.known_red:
        number = evidence.test.how_many("known_red")
        names = first_few(evidence.test.known_red, SHOWN, number)
        text += f" {number} {'test was' if number == 1 else 'tests were'} red before and still"
        text += f" {'is' if number == 1 else 'are'}: {names}."
    return Verdict(state="COMPLETE", reason="complete", text=text, grade=grade)


def withdrawn_checks(criteria: Sequence[Criterion]) -> str:
    """A sentence on checks withdrawn or replaced after work had begun, by whom; "" for none."""
    late = [one for one in criteria if one.former and one.former[-1].worker_runs]
    rows = (
        ("withdrawn by the planner", [c.id for c in late if c.withdrawn and _by_planner(c)]),
        ("replaced by the planner", [c.id for c in late if not c.withdrawn and _by_planner(c)]),
        ("withdrawn by a person", [c.id for c in late if c.withdrawn and not _by_planner(c)]),
    )
    parts = [f"{what}: {first_few(ids, SHOWN)}" for what, ids in rows if ids]
    return f"Checks {'; '.join(parts)}. " if parts else ""


def _by_planner(criterion: Criterion) -> bool:
    return criterion.former[-1].by == "planner"


BY_NAMES = "confirmed by these tests alone: a run of all takes over a minute, or the task says so"
ONCE = "confirmed by no second run of what is green: task.test.confirm is `once`"
"""Notes of a proof on what its confirmation was, where not all of it ran."""


def texts_of(proofs: Sequence[Proof]) -> list[str]:
    """The texts of proofs; of proofs that rest on the same tests or command only the first.

    After them, what confirmed them, where that was not a run of all.
    """
    found: dict[tuple[str, ...], str] = {}
    for proof in proofs:
        what = proof.text.removeprefix(f"{proof.target}: ")
        found.setdefault(tuple(proof.tests) or (what,), proof.text)
    how = [note for proof in proofs for note in proof.notes if note in (BY_NAMES, ONCE)]
    return [*found.values(), *dict.fromkeys(how)]


def end_at_limit(
    criteria: Sequence[Criterion],
    evidence: Evidence | None,
    judgement: Judgement,
    reason: str,
    refused: Sequence[str] = (),
) -> Verdict:
    """The verdict of a run that may not continue: FAILED for red, else NEEDS_REVIEW.

    `refused` says why completion was last refused, if it was.
    """
    if evidence is None:
        return Verdict(state="FAILED", reason=reason, text="No worker run ended.", missing=[])
    if judgement.red:
        text = ended(judgement.red[0])
        return Verdict(state="FAILED", reason=reason, text=text, missing=judgement.missing)
    executed = any(c.evidence in ("checked", "tested") for c in criteria) or evidence.test
    text = (
        "Everything that can be executed passed; the rest is for a person to decide."
        if executed
        else "Nothing could be executed; only a person can decide."
    )
    text = f"{withdrawn_checks(criteria)}{text}"
    missing = judgement.missing
    known = {*missing, *(f.message for f in judgement.open), *(u.text for u in judgement.unproven)}
    missing += [text for text in dict.fromkeys(refused) if text not in known]
    return Verdict(state="NEEDS_REVIEW", reason=reason, text=text, missing=missing)


def not_accepted(verdict: Verdict) -> Verdict:
    """The same end, after a person's acceptance that could not change it."""
    first, *others = verdict.missing
    missing = [f"The acceptance was refused: {first}", *others]
    # A run that got stuck needs a person's decision, even where something is red.
    state = "NEEDS_REVIEW" if verdict.reason == "stuck" else verdict.state
    return verdict.model_copy(update={"missing": missing, "state": state})


def worker_trouble(recent: Sequence[WorkerRun]) -> str:
    """A sentence on why the last worker run did not succeed; "" where it did."""
    if not recent or recent[-1].outcome == "completed":
        return ""
    return f"The last worker run did not succeed: {recent[-1].error or recent[-1].outcome}"
