"""The content of a task note before it is worded: plain facts, in no language, not escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from agentrunner.state.evidence_words import EvidenceKind, Grade
from agentrunner.state.lifecycle import EndName, NextStep, end_of

Label = EndName | Literal["UNPROVEN", "WAITING", "STOPPED"]
"""The end of a run, COMPLETE without a proof, or why the run does not continue."""
Shown = Literal["passed", "failed", "open"]


def next_step_of(label: Label) -> NextStep | None:
    """Return what the reader should do about an end; None if the run has not ended."""
    if label == "UNPROVEN":
        return "use"
    end = end_of(label)
    return end.next_step if end else None


def fell_short(label: Label) -> bool:
    """Whether the run has ended without what was wanted."""
    return next_step_of(label) in ("review", "retry")


class Line(Struct, frozen=True):
    """A sentence: its key in the phrase tables, and the values to insert."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


def line(key: str, **values: Any) -> Line:
    """Short for `Line(key, values)`."""
    return Line(key, values)


class Attachment(Struct, frozen=True):
    """A file of the run's folder; `text` is only set for a full note."""

    path: str
    size: int
    """Bytes."""
    text: str = ""


class CriterionRow(Struct, frozen=True):
    """One acceptance criterion."""

    id: str
    description: str
    critical: bool
    status: Shown
    """`open` also if only the model calls it met and the task does not accept that."""
    evidence: EvidenceKind
    proof: Line
    grade: Grade = "none"
    """What the evidence is worth; `none` until completion was requested."""

    @property
    def needs_eyes(self) -> bool:
        """Whether a person should look: it did not pass, or rests on the planner's word."""
        return self.status != "passed" or self.evidence in ("judged", "none")


class RedRow(Struct, frozen=True):
    """A red test: its name with its place, and the first line of its message."""

    title: str
    message: str


class TestFacts(Struct, frozen=True):
    """The test command, now and before the run. None: the output does not show it."""

    __test__ = False

    command: str
    exit_code: int | None
    passed: int | None
    failed: int | None
    finding: str = ""
    failing: tuple[str, ...] = ()
    red: tuple[RedRow, ...] = ()
    """The first red tests with their messages, if these are known."""
    red_more: int = 0
    """Number of further red tests."""
    known: tuple[RedRow, ...] = ()
    """The first of the tests that were red before and may be: they are none of `red`."""
    known_count: int = 0
    """Number of those."""
    before_exit: int | None = None
    before_passed: int | None = None
    before_failed: int | None = None
    added: int = 0
    seconds: float = 0
    output: Attachment | None = None
    tail: str = ""
    named: bool = True
    """Whether its tests are known by name; else its exit code counts."""

    @property
    def known_names(self) -> list[str]:
        """The known reds that are shown, each with its place."""
        return [one.title for one in self.known]

    @property
    def green(self) -> bool:
        """Whether it exits 0, or only known reds are red, and no finding contradicts that."""
        return (self.exit_code == 0 or self.known_count > 0) and not self.finding


class PlannerCallRow(Struct, frozen=True):
    """One attempt to ask the planner."""

    type: str
    at: str
    seconds: float
    tokens: int
    model: str = ""
    error: str = ""
    request: Attachment | None = None
    response: Attachment | None = None


class CommandRow(Struct, frozen=True):
    """A command that a worker reports."""

    command: str
    status: str


class WorkerRunRow(Struct, frozen=True):
    """One worker run, with the decision for it."""

    number: int
    id: str
    worker: str
    outcome: str
    exit_code: int | None
    started_at: str
    ended_at: str
    seconds: float
    decision: str = ""
    patterns: tuple[str, ...] = ()
    summary: str = ""
    error: str = ""
    commands: tuple[CommandRow, ...] = ()
    commands_omitted: int = 0
    changes: tuple[str, ...] = ()
    changes_omitted: int = 0
    output: Attachment | None = None
    errors: Attachment | None = None
    """Standard error, if the worker wrote any."""


class Log(Struct, frozen=True):
    """The history, with only the newest entries if there are too many."""

    meta_calls: tuple[PlannerCallRow, ...] = ()
    meta_calls_omitted: int = 0
    runs: tuple[WorkerRunRow, ...] = ()
    runs_omitted: int = 0
    decisions: tuple[Line, ...] = ()
    """Decisions that started no worker."""
    notes: tuple[Line, ...] = ()
    """Questions, answers, edits, acceptances, warnings, open points."""


class RunFigures(Struct, frozen=True):
    """The figures of the run."""

    loops: int
    worker_runs: int
    meta_calls: int
    tokens: int
    seconds: float
    """Without pauses."""
    worker: str
    meta: str
    sandbox: str
    network: str
    completion: str
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    """The changed files that were deleted."""
    added_lines: int = 0
    removed_lines: int = 0
    protected_touched: bool = False
    waited: float = 0
    """Seconds that the run waited for people, quotas and providers; 0 if negligible."""
    hosts_reached: tuple[str, ...] = ()
    """As host:port, in the order of first use."""
    hosts_refused: tuple[str, ...] = ()


class BillLine(Struct, frozen=True):
    """The cost of calls of one model."""

    who: str
    """The role, its candidate, and the worker run."""
    model: str
    calls: int | None
    """None if they were not counted."""
    tokens_in: int
    tokens_out: int
    known: Literal["counted", "reported", "unknown"]
    unknown_calls: int = 0
    usd: float | None = None
    """None if unknown."""
    unpriced: bool = False
    """Whether the cost of some calls is unknown, so that `usd` is a minimum."""
    subscription: bool = False
    """Whether a subscription covers the calls, so that no price is paid for them."""
    tokens_cached: int = 0
    """The part of `tokens_in` that came from a cache."""

    @property
    def cached_share(self) -> int:
        """The cached share of the input, in per cent."""
        return min(100, round(100 * self.tokens_cached / self.tokens_in)) if self.tokens_in else 0


class PersonRow(Struct, frozen=True):
    """A person's decision."""

    at: str
    by: str
    asked: str
    decision: str
    """Key of a phrase: answer, approve, reject, message or accept."""
    text: str


class NoteView(Struct, frozen=True):
    """Everything that a template can show. Texts are unchanged except that secrets are removed."""

    run_id: str
    task_id: str
    title: str
    repo: str
    host: str
    """`user@machine` where the commands must be given."""
    state: str
    label: Label
    started_at: str
    finished_at: str
    """Empty while the run waits."""
    period: str
    """From start to end or now, as short as possible."""
    tree: str
    verdict: tuple[Line, ...]
    basis: tuple[Line, ...]
    """What the verdict rests on, or why there is none."""
    decide: tuple[Line, ...]
    criteria: tuple[CriterionRow, ...]
    criteria_omitted: int
    test: TestFacts | None
    proof: tuple[str, ...]
    facts: RunFigures
    bill: tuple[BillLine, ...]
    """The newest lines, then their sum if there are several."""
    bill_omitted: int
    risks: tuple[str, ...]
    """In the planner's words."""
    commands: tuple[Line, ...]
    summary: str
    """In the planner's words."""
    prd_summary: str
    prd_text: str
    people: tuple[PersonRow, ...]
    """People's decisions, newest last."""
    people_older: tuple[str, ...]
    """The decisions before those, one line each."""
    people_omitted: int
    """Number of decisions that only the run log has."""
    log: Log
    full: bool
    """Whether `note.detail` is `full`."""

    def first(self, limit: int) -> tuple[CriterionRow, ...]:
        """Return at most `limit` criteria in order, preferring those that a person should see."""
        ranked = sorted(self.criteria, key=lambda row: not row.needs_eyes)[: max(0, limit)]
        return tuple(row for row in self.criteria if row in ranked)
