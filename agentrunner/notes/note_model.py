"""What a task note says, before it is worded: plain facts, in no language and not yet escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentrunner.state.lifecycle import EndName, NextStep, end_of
from agentrunner.state.run_state import EvidenceKind, Grade

Label = EndName | Literal["UNPROVEN", "WAITING", "INTERRUPTED"]
"""The end of a run, COMPLETE without a proof, or why it stands still."""
Shown = Literal["passed", "failed", "open"]


def next_step_of(label: Label) -> NextStep | None:
    """What the note has its reader do about an end; None where the run stands still."""
    if label == "UNPROVEN":
        return "use"
    end = end_of(label)
    return end.next_step if end else None


def fell_short(label: Label) -> bool:
    """Whether the run has ended without what was wanted."""
    return next_step_of(label) in ("review", "retry")


@dataclass(frozen=True)
class Line:
    """A sentence: its key in the phrase tables, and what is filled in."""

    key: str
    values: Mapping[str, Any] = field(default_factory=dict)


def line(key: str, **values: Any) -> Line:
    """Short for `Line(key, values)`."""
    return Line(key, values)


@dataclass(frozen=True)
class Attachment:
    """A file of the run's folder; `text` only where the note is to be full."""

    path: str
    size: int
    """Bytes."""
    text: str = ""


@dataclass(frozen=True)
class CriterionRow:
    """One acceptance criterion."""

    id: str
    description: str
    critical: bool
    status: Shown
    """`open` also where only the model calls it met and the task admits no such word."""
    evidence: EvidenceKind
    proof: Line
    grade: Grade = "none"
    """What the evidence is worth; `none` until completion was asked for."""

    @property
    def needs_eyes(self) -> bool:
        """Whether a person should look: it did not pass, or rests on the model's word."""
        return self.status != "passed" or self.evidence in ("judged", "none")


@dataclass(frozen=True)
class RedRow:
    """A red test: its name with its place, and the first line of what it says."""

    title: str
    message: str


@dataclass(frozen=True)
class TestFacts:
    """The test command, now and before the run. None: the output does not tell."""

    __test__ = False

    command: str
    exit_code: int | None
    passed: int | None
    failed: int | None
    finding: str = ""
    failing: tuple[str, ...] = ()
    red: tuple[RedRow, ...] = ()
    """The first of them with their messages, where these are known."""
    red_more: int = 0
    """How many more there are."""
    before_exit: int | None = None
    before_passed: int | None = None
    before_failed: int | None = None
    added: int = 0
    seconds: float = 0
    output: Attachment | None = None
    tail: str = ""

    @property
    def green(self) -> bool:
        """Exit 0 and nothing that says otherwise."""
        return self.exit_code == 0 and not self.finding


@dataclass(frozen=True)
class PlannerCallRow:
    """One attempt to ask the planner."""

    type: str
    at: str
    seconds: float
    tokens: int
    model: str = ""
    error: str = ""
    request: Attachment | None = None
    response: Attachment | None = None


@dataclass(frozen=True)
class CommandRow:
    """A command that a worker says it ran."""

    command: str
    status: str


@dataclass(frozen=True)
class WorkerRunRow:
    """One worker run with the decision that ordered it."""

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
    """Standard error, where the worker wrote any."""


@dataclass(frozen=True)
class Log:
    """What happened, newest kept where there is too much."""

    meta_calls: tuple[PlannerCallRow, ...] = ()
    meta_calls_omitted: int = 0
    runs: tuple[WorkerRunRow, ...] = ()
    runs_omitted: int = 0
    decisions: tuple[Line, ...] = ()
    """Those that ordered no worker."""
    notes: tuple[Line, ...] = ()
    """Questions, answers, edits, acceptances, warnings, what is open."""


@dataclass(frozen=True)
class RunFigures:
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
    """Those of the changed files that are gone."""
    added_lines: int = 0
    removed_lines: int = 0
    protected_touched: bool = False
    waited: float = 0
    """Seconds that it waited for people, quotas and providers; 0 where that is hardly any."""
    hosts_reached: tuple[str, ...] = ()
    """As host:port, in the order of their first time."""
    hosts_refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class BillLine:
    """What calls of one model cost."""

    who: str
    """The role, its candidate, and the worker run."""
    model: str
    calls: int | None
    """None where nobody counted them."""
    tokens_in: int
    tokens_out: int
    known: Literal["counted", "reported", "unknown"]
    unknown_calls: int = 0
    usd: float | None = None
    """None where nobody knows."""
    unpriced: bool = False
    """Whether some of the calls have a cost that nobody knows, so that `usd` is the least."""
    subscription: bool = False
    """Whether it is part of a subscription, so that no price is paid for it."""
    tokens_cached: int = 0
    """The part of `tokens_in` that came from a cache."""

    @property
    def cached_share(self) -> int:
        """The same in per cent."""
        return min(100, round(100 * self.tokens_cached / self.tokens_in)) if self.tokens_in else 0


@dataclass(frozen=True)
class PersonRow:
    """What a person decided."""

    at: str
    by: str
    asked: str
    decision: str
    """A phrase's key: answer, approve, reject, message or accept."""
    text: str


@dataclass(frozen=True)
class NoteView:
    """All that a template can show. Texts are one-to-one what came in, secrets removed."""

    run_id: str
    task_id: str
    title: str
    repo: str
    host: str
    """`user@machine` where the commands are to be given."""
    state: str
    label: Label
    started_at: str
    finished_at: str
    """Empty while the run waits."""
    period: str
    """Start to end or now, as short as can be."""
    tree: str
    verdict: tuple[Line, ...]
    basis: tuple[Line, ...]
    """What the verdict rests on, or why it is none."""
    decide: tuple[Line, ...]
    criteria: tuple[CriterionRow, ...]
    criteria_omitted: int
    test: TestFacts | None
    proof: tuple[str, ...]
    facts: RunFigures
    bill: tuple[BillLine, ...]
    """The newest lines, and last their sum where there are several."""
    bill_omitted: int
    risks: tuple[str, ...]
    """The model's words."""
    commands: tuple[Line, ...]
    summary: str
    """The model's words."""
    prd_summary: str
    prd_text: str
    people: tuple[PersonRow, ...]
    """What people decided, the newest last."""
    people_older: tuple[str, ...]
    """The decisions before those, in one line each."""
    people_omitted: int
    """How many are in the run log only."""
    log: Log
    full: bool
    """`note.detail: full`."""

    def first(self, limit: int) -> tuple[CriterionRow, ...]:
        """At most `limit` criteria in their order, those that need eyes before the others."""
        ranked = sorted(self.criteria, key=lambda row: not row.needs_eyes)[: max(0, limit)]
        return tuple(row for row in self.criteria if row in ranked)
