"""What runs and plans come to: the objects that `--json`, `show`, `list` and the Python API give.

Every key is always there: None where something is not known, an empty list where there is none.
The JSON Schemas of `agentrunner schema` are made from these models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from agentrunner.errors import AgentRunnerError
from agentrunner.state.evidence_words import Author, EvidenceKind, Grade, Origin, Status
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Question, QuestionKind

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
    status: Status
    evidence: EvidenceKind
    grade: Grade
    author: Author
    tests: list[str]
    mapped_by: Literal["person", "planner"] | None
    origin: Origin
    detail: str
    former_checks: list[FormerCheckEntry] = []


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
    exit_code: int | None
    passed: int | None
    failed: int | None
    finding: str
    failing: list[str]
    reader: str | None
    red: list[RedTestEntry]
    known_red: list[str]
    turned: list[str]
    still_red: list[str]
    newly_red: list[str]
    gone: list[str]
    flaky: list[str]
    totals: dict[str, int] = {}
    """How many names a list has in all, where it has been cut to 50."""
    baseline_exit_code: int | None
    baseline_passed: int | None
    baseline_failed: int | None
    added: int
    measured: bool = True
    """Whether it ran in this run since its baseline; if not, all of this is of before the run."""

    def how_many(self, names: str) -> int:
        """How many names there are in all in a list of names that may have been cut."""
        return self.totals.get(names) or len(getattr(self, names))


class ProofEntry(Contract):
    """One thing that was red before the run and is green now. `target`: a criterion or `test`."""

    target: str
    author: Author
    grade: Grade
    text: str
    tests: list[str]
    notes: list[str]


class FindingEntry(Contract):
    """Something about the tree that a person has to say yes to, or that was refused."""

    code: str
    message: str
    paths: list[str]
    blocks: bool
    remedy: str
    tests: list[str]
    diff: str


class CommitMade(Contract):
    """Where the work is committed."""

    id: str
    branch: str


class DecisionEntry(Contract):
    """What a person decided; `round` is the number of worker runs by then."""

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
    task_id: str | None = None
    title: str | None = None
    state: TaskState | None = None
    exit_code: int = Field(ge=0)
    reason: str | None = None
    text: str | None = None
    missing: list[str] = []
    error: Problem | None = None
    note: str | None = None
    repo: str | None = None
    attempt: int | None = None
    loops: int | None = None
    max_loops: int | None = None
    worker_runs: int | None = None
    meta_calls: int | None = None
    completion: Literal["evidence", "strict", "judged"] | None = None
    grade: Grade | None = None
    acceptance_criteria: list[CriterionResult] = []
    test: TestSummary | None = None
    proof: list[str] = []
    proofs: list[ProofEntry] = []
    findings: list[FindingEntry] = []
    changed_files: list[str] = []
    deleted_files: list[str] = []
    lines_added: int = 0
    lines_removed: int = 0
    tree: str | None = None
    usage: UsageTotals = UsageTotals()
    bill: list[BillEntry] = []
    duration_sec: float | None = None
    waited_sec: float | None = None
    commit: CommitMade | None = None
    worktree: str | None = None
    undone: bool = False
    """Whether a person put the files back as they were before the run."""
    part_of: Literal["plan"] | None = None
    people: PeopleSummary = PeopleSummary()
    waiting: InboxItem | None = None
    waiting_until: str | None = None

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
    def complete(self) -> bool:
        """Whether it ended COMPLETE."""
        return self.state == TaskState.COMPLETE

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
    state: str
    stands: str
    """The state in the word of all lists and screens, as `stopped`: nobody drives the run."""
    waiting: str | None
    waiting_until: str | None
    started_at: str
    finished_at: str | None
    part_of: str | None


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
    tasks: dict[str, str] = {}
    blocked: list[str] = []
    questions: list[PlanQuestionEntry] = []
    branch: str | None = None
    commit: str | None = None
    onto: str | None = None
    request: str | None = None
    budget_spent: str | None = None
    usage: PlanUsage | None = None
    interrupted: bool = False
    error: Problem | None = None
    note: str | None = None

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
