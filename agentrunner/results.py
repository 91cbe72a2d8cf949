"""What runs and plans come to: the objects that `--json`, `show`, `list` and the Python API give.

Every key is always there: None where something is not known, an empty list where there is none.
The JSON Schemas of `agentrunner schema` are made from these models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from agentrunner.errors import AgentRunnerError
from agentrunner.state.evidence_words import (
    NOT_IN_GIT,
    Author,
    EvidenceKind,
    Grade,
    Origin,
    Status,
)
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Question, QuestionKind
from agentrunner.state.rounds import round_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Contract(BaseModel):
    """A JSON object that other programs read. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @classmethod
    def of(cls, source: object, **others: object) -> Self:
        """Make one of the attributes of `source` with the same names, and of `others`."""
        alike = {name: getattr(source, name) for name in cls.model_fields if hasattr(source, name)}
        return cls.model_validate({**alike, **others}, from_attributes=True)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, keys in the order of the model."""
        return self.model_dump(mode="json", by_alias=True)


class Problem(Contract):
    """An error: its code (`agentrunner explain CODE`), place, sentence and remedy."""

    code: str
    path: str = ""
    message: str
    remedy: str = ""


class TokenCount(Contract):
    """Tokens of one role."""

    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def known(self) -> int | None:
        """In and out, as far as is known; None where nothing is."""
        counts = [one for one in (self.input_tokens, self.output_tokens) if one is not None]
        return sum(counts) if counts else None


class UsageTotals(Contract):
    """What a run has used. `usd` is None unless every price is known."""

    meta: TokenCount = TokenCount()
    worker: TokenCount = TokenCount()
    usd: float | None = None

    @property
    def tokens(self) -> int:
        """All that were counted or reported."""
        return (self.meta.known or 0) + (self.worker.known or 0)


class BillEntry(Contract):
    """What one candidate in one role has cost; the rows of a bill add up to the usage."""

    role: Literal["planner", "assess", "worker"]
    candidate: str
    run: str
    model: str
    calls: int | None
    input_tokens: int = Field(ge=0)
    cached_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    usd: float | None
    unpriced_calls: int = Field(ge=0)
    unknown_calls: int = Field(ge=0)
    known: Literal["counted", "reported", "unknown"]
    subscription: bool


class FormerCheckEntry(Contract):
    """A check that was withdrawn or replaced in mid-run, with what it said last."""

    what: str
    outcome: Literal["passed", "failed", "not_run"]
    detail: str
    reason: str
    by: Literal["planner", "person"]
    replaced: bool
    worker_runs: int = Field(ge=0)


class CriterionResult(Contract):
    """An acceptance criterion and what it rests on. All but the description is set by code."""

    id: str
    description: str
    critical: bool
    """Whether COMPLETE needs it."""
    status: Status
    """What code found."""
    evidence: EvidenceKind
    """By what."""
    grade: Grade
    """What that is worth, see below."""
    author: Author
    """Who wrote what proves it."""
    tests: list[str]
    """Names that stand for it, as `mapped_by` says."""
    mapped_by: Literal["person", "planner"] | None
    """Who mapped them."""
    origin: Origin
    """Who wrote the criterion."""
    detail: str
    """What was run or read, and its outcome."""
    former_checks: list[FormerCheckEntry] = []
    """Those that were withdrawn or replaced in mid-run."""


class RedTestEntry(Contract):
    """A red test; `line` is None where it is not known."""

    name: str
    file: str
    line: int | None
    message: str


class TestSummary(Contract):
    """The test command at the end, beside what it said before the run."""

    __test__ = False

    command: str
    """What was run."""
    exit_code: int | None
    passed: int | None
    failed: int | None
    finding: str
    """Why exit 0 is not believed."""
    failing: list[str]
    """Names of tests that fail."""
    reader: str | None
    """The test tool whose report by name was read, or None where its output tells totals at most.
    """
    red: list[RedTestEntry]
    """The first ten red tests."""
    known_red: list[str]
    """Red before, stand for nothing that was asked, and are red still; they excuse an exit code
    that is not 0."""
    turned: list[str]
    """Red before, and pass now; at most 50 names, as in the lists below."""
    still_red: list[str]
    """Have to turn and did not."""
    newly_red: list[str]
    """Were not red before."""
    gone: list[str]
    """Passed before and are missing or skipped now."""
    flaky: list[str]
    """Red and green on the same tree."""
    totals: dict[str, int] = {}
    """How many names a list has in all, where it has been cut to 50."""
    baseline_exit_code: int | None
    baseline_passed: int | None
    baseline_failed: int | None
    added: int
    """How many tests are new."""
    measured: bool = True
    """Whether it ran in this run since its baseline; if not, all of this is of before the run."""

    def how_many(self, names: str) -> int:
        """How many names there are in all in a list of names that may have been cut."""
        return self.totals.get(names) or len(getattr(self, names))


class ProofEntry(Contract):
    """One thing that was red before the run and is green now. `target`: a criterion or `test`."""

    target: str
    """A criterion's id or `test`."""
    author: Author
    grade: Grade
    text: str
    tests: list[str]
    notes: list[str]
    """What could not be tried."""


class FindingEntry(Contract):
    """Something about the tree that a person has to say yes to, or that was refused."""

    code: str
    message: str
    paths: list[str]
    blocks: bool
    remedy: str
    tests: list[str]
    diff: str = ""
    """Where the run ended while it was open."""


class CommitMade(Contract):
    """Where the work is committed."""

    id: str
    branch: str


class DecisionEntry(Contract):
    """What a person decided; `round` is the latest that had ended by then."""

    id: str
    kind: str
    asked: str
    decision: str
    text: str
    at: str
    by: str
    round: int


class PeopleSummary(Contract):
    """What people decided, oldest first: the last in full, older ones in one line each."""

    decisions: list[DecisionEntry] = []
    older: list[str] = []
    omitted: int = 0


class InboxItem(Contract):
    """A question that waits for a person. `subject` is JSON text of what it is about."""

    id: str
    kind: QuestionKind
    text: str
    options: list[str]
    subject: str = "{}"

    def question(self) -> Question:
        """The same as the engine takes it; the state is that of any run that waits."""
        return Question(**dict(self), state=TaskState.PENDING)


class Result(Contract):
    """What a run came to. `state`, `run_id` and others are None where no run came to be."""

    run_id: str | None = None
    """Which run; None where none was created."""
    task_id: str | None = None
    """Of the task file or PRD."""
    title: str | None = None
    """Of the task."""
    state: TaskState | None = None
    """One of the eight states; at a pause the state kept; None where no run was created."""
    exit_code: int = Field(ge=0)
    """Of the process that printed it."""
    reason: str | None = None
    """Why it ended: `complete`, `unproven`, `loop_limit`, `stuck`, `aborted`, `cancelled`,
    `interrupted`, `budget: NAME`, …; `not_started` where it failed before anything was spent."""
    text: str | None = None
    """How it stands, in a sentence."""
    missing: list[str] = []
    """What COMPLETE lacks, a sentence each."""
    error: Problem | None = None
    """What ended the command."""
    note: str | None = None
    """The task note, absolute."""
    repo: str | None = None
    """Absolute."""
    attempt: int | None = None
    """Its number, from 1."""
    loops: int | None = None
    """How often work was ordered again in this attempt."""
    max_loops: int | None = None
    """The attempt's limit of `loops`."""
    rounds: int | None = None
    """Rounds over all attempts."""
    worker_runs: int | None = None
    """A count, over all attempts."""
    meta_calls: int | None = None
    """Calls of the planner, over all attempts."""
    completion: Literal["evidence", "strict", "judged"] | None = None
    """The mode."""
    grade: Grade | None = None
    """Of COMPLETE: the weakest `grade` of the critical criteria, see below; `none` of another end,
    None before the end."""
    acceptance_criteria: list[CriterionResult] = []
    """What each rests on, see below."""
    test: TestSummary | None = None
    """The test command, see below; None where there is none."""
    proof: list[str] = []
    """What was red before the run and is green now, a sentence each."""
    proofs: list[ProofEntry] = []
    """The same with what it is worth."""
    findings: list[FindingEntry] = []
    """What a person has to settle, or what was refused."""
    changed_files: list[str] = []
    """Relative, sorted, without the note."""
    deleted_files: list[str] = []
    """Those of them that are gone."""
    lines_added: int = 0
    """Summed over the worker runs."""
    lines_removed: int = 0
    """Summed over the worker runs."""
    tree: str | None = None
    """The id of the tree that the verdict is about."""
    usage: UsageTotals = UsageTotals()
    """`usd` is None unless every price is known."""
    bill: list[BillEntry] = []
    """Rows that add up to `usage`; see [budgets](../how-to/budgets.md)."""
    duration_sec: float | None = None
    """Seconds that it started and worked, pauses and waits left out."""
    waited_sec: float | None = None
    """Seconds from the command that began it to its end or latest step that are not in
    `duration_sec`: waiting for people, quotas and providers, or not driven; None where that is not
    known."""
    commit: CommitMade | None = None
    """Where the work is committed."""
    worktree: str | None = None
    """Where it works outside of the checkout, absolute."""
    undone: bool = False
    """Whether a person put the files back as they were before the run."""
    part_of: Literal["plan"] | None = None
    """For the run of a plan's task."""
    people: PeopleSummary = PeopleSummary()
    """What people decided, oldest first, the last twenty in full."""
    waiting: InboxItem | None = None
    """The question that waits for a person."""
    waiting_until: str | None = None
    """When a run that waits for a quota or a provider continues by itself (UTC, ISO 8601)."""

    @classmethod
    def of_error(
        cls, error: AgentRunnerError, *, run_id: str | None = None, state: str | None = None
    ) -> Self:
        """The result of a command that failed with `error`, before or in the middle of a run."""
        return cls(
            run_id=run_id,
            state=TaskState(state) if state else None,
            exit_code=error.exit_code,
            reason=error.code,
            error=Problem(**error.as_dict()),
        )

    @property
    def rounds_done(self) -> int:
        """Rounds over all attempts; of a result of an earlier version those of its last one."""
        if self.rounds is not None:
            return self.rounds
        return min(round_of(None, self.loops), self.worker_runs or 0)

    @property
    def complete(self) -> bool:
        """Whether it ended COMPLETE."""
        return self.state == TaskState.COMPLETE

    @property
    def to_commit(self) -> list[str]:
        """The changed files that `git add` takes: not those that git ignores."""
        left_out = {path for one in self.findings if one.code == NOT_IN_GIT for path in one.paths}
        return [path for path in self.changed_files if path not in left_out]

    @property
    def red(self) -> bool:
        """Whether a test or a check says no: a person's yes does not stand in for that."""
        if any(one.status == "failed" for one in self.acceptance_criteria):
            return True
        if self.test is None or not self.test.exit_code:
            return False
        return self.test.failed is None or self.test.failed > self.test.how_many("known_red")


class RunEntry(Contract):
    """A run in `agentrunner list --json`. Times are UTC, ISO 8601."""

    run_id: str
    task_id: str
    title: str
    repo: str
    """Yours, also where the run has a work tree of its own."""
    state: str
    """What the run itself has saved: of one that is stopped or waits, the step in which it goes on,
    as VALIDATING."""
    stands: str
    """The state in the word of all lists and screens, as `stopped`: nobody drives the run; or
    `not started`: it failed before anything was spent."""
    waiting: str | None
    """The kind of the question that it waits with."""
    waiting_until: str | None
    """When it continues by itself."""
    started_at: str
    finished_at: str | None
    part_of: str | None
    """`plan` for the run of a plan's task."""


class Undone(Contract):
    """What an undo of a run's files has done.

    `refused` were edited since and are as they were. `not_kept` cannot be put back: nobody has what
    was in them before the run.
    """

    files: list[str]
    refused: list[str]
    not_kept: list[str]
    undo_taken_back: bool
    """Whether it took back an earlier undo."""


class PlanQuestionEntry(Contract):
    """A question of a plan that waits for a person."""

    id: int
    task_id: str
    text: str


class PlanUsage(Contract):
    """What all runs of a plan have used."""

    tokens: int
    usd: float


class PlanResult(Contract):
    """What carrying a plan out came to; `tasks` are the states by id."""

    exit_code: int = Field(ge=0)
    """Of the process that printed it."""
    tasks: dict[str, str] = {}
    """The status of each task that was wanted, by id."""
    blocked: list[str] = []
    """Ids of tasks that wait for one that did not become COMPLETE."""
    questions: list[PlanQuestionEntry] = []
    """For a person."""
    branch: str | None = None
    """Of your repository; None before anything is merged."""
    commit: str | None = None
    """Where that is."""
    onto: str | None = None
    """The branch that it was brought onto."""
    request: str | None = None
    """The address of its pull or merge request."""
    budget_spent: str | None = None
    """The limit of the plan that is spent."""
    usage: PlanUsage | None = None
    """Of all its runs."""
    interrupted: bool = False
    """Whether it was stopped by a signal."""
    error: Problem | None = None
    """What ended it, or kept its result from being handed over."""
    note: str | None = None
    """The [plan's note](plan-files.md#the-plan-note), absolute."""

    @classmethod
    def of_error(cls, error: AgentRunnerError) -> Self:
        """The result of a `plan run` that failed with `error` and has no other."""
        return cls(exit_code=error.exit_code, error=Problem(**error.as_dict()))

    @classmethod
    def of_event(cls, event: Mapping[str, Any]) -> Self:
        """What a `plan_result` says, also one of an earlier version."""
        known = {name: value for name, value in event.items() if name in cls.model_fields}
        return cls.model_validate(known)


def result_schema() -> dict[str, Any]:
    """The JSON Schema of `Result`."""
    schema = Result.model_json_schema(mode="serialization", by_alias=True)
    return {"$schema": DRAFT, **schema, "title": "AgentRunner result"}
