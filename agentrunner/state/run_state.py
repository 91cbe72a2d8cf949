"""TaskContext: the typed state that the graph carries from node to node.

It is small and bounded: outputs are files in the run's folder, history is the run log beside
them; here are counters, the latest evidence and the last five runs as references. Every value
is JSON-native or one of the frozen models below (docs/decisions/0003-small-state.md).
"""

from __future__ import annotations

from typing import Literal, TypedDict

from pydantic import Field

from agentrunner.config.spec import Check
from agentrunner.state.lifecycle import EndName, TaskState
from agentrunner.state.people import Answer, People, PersonOrder, Question
from agentrunner.state.state_model import FileRef, StateModel
from agentrunner.state.worker_runs import Stuck, Wait, WorkerOrder, WorkerRun

SCHEMA_VERSION = 1
RECENT = 5
TAIL_BYTES = 4096


class RunInfo(StateModel):
    """What does not change while an attempt runs."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    task_id: str
    title: str
    repo: str
    attempt: int = 1
    max_loops: int = 5
    salt: str = ""
    """Keys the prompt markers; drawn once per run."""
    started_at: str = ""
    """UTC, ISO 8601."""
    accepting: str = ""
    """In an attempt that `accept` makes: the reason of the end that the person's yes is to lift."""


class Counters(StateModel):
    """Everything that is counted. Budgets count over all attempts, `loops` over one."""

    loops: int = 0
    worker_runs: int = 0
    meta_calls: int = 0
    """Attempts on the wire; also the cursor of a scripted planner."""
    repeated_calls: int = 0
    """Attempts of nodes that were killed before they were saved. They were made again under the
    same numbers, so they are no part of `meta_calls`."""
    meta_input_tokens: int = 0
    meta_output_tokens: int = 0
    worker_input_tokens: int = 0
    worker_output_tokens: int = 0
    usd: float = 0
    """Of the calls whose cost is known: the planner's, and those that the gateway counted."""
    priced_calls: int = 0
    unpriced_calls: int = 0
    """Calls whose cost nobody knows."""
    subscribed_calls: int = 0
    """Calls that are part of a subscription, so that no price is paid for them."""
    unknown_calls: int = 0
    """Calls whose tokens nobody knows, or not all of them: what is counted is the least."""
    decisions: int = 0
    questions: int = 0
    messages: int = 0
    """Words of `resume --message` that were heard."""
    losses: int = 0
    """Worker attempts lost in a row."""
    wall_sec: float = 0
    """Spent, pauses not counted."""

    @property
    def calls(self) -> int:
        """All attempts of the planner on the wire."""
        return self.meta_calls + self.repeated_calls

    @property
    def tokens(self) -> int:
        """Of planner and workers together, in and out."""
        meta = self.meta_input_tokens + self.meta_output_tokens
        return meta + self.worker_input_tokens + self.worker_output_tokens


Origin = Literal["task", "human", "model"]
Status = Literal["passed", "failed", "unknown"]
EvidenceKind = Literal["checked", "tested", "accepted", "judged", "none"]
Author = Literal["person", "planner", "worker", "product", ""]
"""Who wrote what proves something; "" where nothing does."""
Grade = Literal["proven", "shown", "accepted", "judged", "kept", "none"]
"""What evidence is worth (docs/decisions/0004). `kept`: a person's check that was green before the
run and still is, which holds in every mode and proves no work."""


class Awaited(StateModel):
    """What a check needs that is not there before the work: a test to be written, or a tool."""

    kind: Literal["test", "tool"]
    what: str
    """The test's file and name, or the tool's name."""


class FormerCheck(StateModel):
    """A check that a criterion had, and that was withdrawn or replaced while the run went on."""

    what: str
    """The check, as people read it."""
    outcome: Literal["passed", "failed", "not_run"] = "not_run"
    """What it said last."""
    detail: str = ""
    reason: str = ""
    by: Literal["planner", "person"] = "planner"
    replaced: bool = False
    """Whether another check stands in its place."""
    worker_runs: int = 0
    """How many there had been by then."""


class Criterion(StateModel):
    """An acceptance criterion and where it stands. Status and evidence are set by code."""

    id: str
    description: str
    critical: bool = True
    type: str = ""
    rationale: str = ""
    detail: str = ""
    line: int | None = None
    origin: Origin = "task"
    """Who wrote the criterion."""
    check: Check | None = None
    check_origin: Origin = "task"
    awaits: Awaited | None = None
    """What the planner's check needs first; it counts all the same."""
    late: bool = False
    """Whether the planner wrote its check, or mapped it to tests, when work had begun: then these
    prove nothing."""
    status: Status = "unknown"
    evidence: EvidenceKind = "none"
    grade: Grade = "none"
    author: Author = ""
    """Of the proof."""
    tests: list[str] = []
    """Names of tests that stand for it, as the planner or a person mapped them; at most 20."""
    tests_origin: Origin = "task"
    """Who mapped them."""
    proof: str = ""
    """One line: what was run or read, and what came out."""
    comment: str = ""
    """The planner's word about it."""
    former: list[FormerCheck] = []
    """The checks that it had, the last five."""

    @property
    def withdrawn(self) -> FormerCheck | None:
        """The check that was taken away after work had begun: nothing proves it from then on."""
        last = self.former[-1] if self.former and self.check is None else None
        return last if last is not None and last.worker_runs else None


class RedTest(StateModel):
    """A test that says no, and why."""

    name: str
    file: str = ""
    line: int | None = None
    message: str = Field("", max_length=600)


class TestOutcome(StateModel):
    """One run of the test command. Counts are None where the output does not tell."""

    __test__ = False

    command: str
    exit_code: int
    green_before: bool | None = None
    """What it said on the tree before the run; None where it was not asked there."""
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    errors: int = 0
    """Of the failed ones: what broke outside of a test, maybe beside one that was counted."""
    failing: list[str] = []
    """Names of failing tests, at most 50."""
    red: list[RedTest] = []
    """The first ten of them, with their messages."""
    reader: str = ""
    """Which test tool reported the results by name; "" where there are totals at most."""
    results: FileRef | None = None
    """All results by name, in the run's folder."""
    gone: list[str] = []
    """Names that passed before and are missing or skipped now, at most 50."""
    known_red: list[str] = []
    """Names that were red before, stand for nothing that was asked, and are red still."""
    turned: list[str] = []
    """Names that were red before and pass now, at most 50."""
    still_red: list[str] = []
    """Names that were red before, have to turn and are red still, at most 50."""
    newly_red: list[str] = []
    """Names that are red now and were not before, at most 50."""
    flaky: list[str] = []
    """Names that were red and green on this very tree."""
    finding: str = ""
    """Why exit 0 is not believed: failures in the output, no tests ran, fewer than before."""
    hint: str = ""
    """What the command does not tell, and what would make it."""
    output: FileRef | None = None
    tail: str = ""
    duration_sec: float = 0

    @property
    def green(self) -> bool:
        """Exit 0, or red by known reds alone; and nothing that says otherwise."""
        return (self.exit_code == 0 or bool(self.known_red)) and not self.finding


class CheckOutcome(StateModel):
    """One execution of a criterion's check."""

    criterion_id: str
    what: str
    """The command, or "README.md contains …"."""
    outcome: Literal["passed", "failed", "not_run"]
    exit_code: int | None = None
    before: Literal["green", "red", "unknown"] = "unknown"
    """What the same check said on the tree before the run."""
    detail: str = ""
    output: FileRef | None = None
    reader: str = ""
    results: FileRef | None = None
    red: list[RedTest] = []
    """Of its tests, where they are reported by name."""
    writes: list[str] = []
    """Of a run on the tree before the run: paths that it wrote into the repository by itself."""
    unstarted: bool = False
    """Whether it never came to decide anything, for its tool or shell could not start it."""


class Proof(StateModel):
    """What was red before the run and is green now, with who wrote what says so."""

    target: str
    """A criterion's id for its own check, "test" for the test command."""
    author: Author
    grade: Grade
    """`proven` or `shown`."""
    text: str
    """One sentence."""
    tests: list[str] = []
    """The tests by name, at most 50; none where an exit code decides."""
    names: list[str] = []
    """Identifiers that a worker's tests use, for the criteria they can stand for; at most 200."""
    about: dict[str, list[str]] = {}
    """By test: words of its name and text, for the criterion it can stand for; at most 200 each."""
    unasked: list[str] = []
    """Tests that share no word with anything that was asked for."""
    notes: list[str] = []
    """What could not be tried: "not struck", "no canary"."""


class Finding(StateModel):
    """Something the code noticed that bears on completion."""

    code: str
    """`tests_changed`, `protected_path`, `tree_changed_by_checks`, `dependencies_changed`, …"""
    message: str
    paths: list[str] = []
    blocks: bool = True
    remedy: str = ""
    """The edit or command that would settle it."""
    tests: list[str] = []
    """Names of tests it is about, at most 50."""


class Baseline(StateModel):
    """The tree before the run: its hash, its tests, and the checks the task brings."""

    tree: str
    origin: str = ""
    """The tree before set-up and tests ran, to which `undo` returns."""
    test: TestOutcome | None = None
    checks: dict[str, Literal["green", "red", "unknown"]] = {}
    """By criterion id."""
    test_writes: list[str] = []
    """Paths that tests and checks write into the repository by themselves."""
    check_outcomes: list[CheckOutcome] = []
    """What each check said, where it was executed."""
    reporters: dict[str, int] = {}
    """By target: the means by which it reports, where the first changed what it says; -1: none."""


class Evidence(StateModel):
    """What was found out about one tree."""

    tree: str
    tree_after: str = ""
    """The tree with what the checks themselves wrote; equal to `tree` where that is nothing."""
    test: TestOutcome | None = None
    restored_test: TestOutcome | None = None
    """Of runs that an older version began; nothing is read from it any more."""
    checks: list[CheckOutcome] = []
    findings: list[Finding] = []
    proof: list[str] = []
    """Fail-to-pass facts: what was red before and is green now."""
    proofs: list[Proof] = []
    """The same with grades; only of evidence that was `examined`."""
    stale: bool = False
    """Whether checks were withdrawn or replaced since, so that the tree is measured again."""
    examined: bool = False
    """Whether completion was asked for on this tree, so that all of the verification was made."""
    allowed: list[str] = []
    """Paths whose change a person allowed, when it was made."""
    doubts: dict[str, str] = {}
    """By target: why what is green now proves nothing."""
    changed_files: list[str] = []
    """By the run's workers, against the tree before the run."""
    deleted_files: list[str] = []
    """Those of them that are gone."""
    lines_added: int = 0
    lines_removed: int = 0
    tests_added: int = 0

    @property
    def red(self) -> bool:
        """Whether the test command or a check is red. The guard's findings are apart from this."""
        return (self.test is not None and not self.test.green) or any(
            check.outcome == "failed" for check in self.checks
        )


class Assessment(StateModel):
    """The planner's judgement of one tree, kept as a claim."""

    tree: str
    satisfied: bool
    summary: str
    failed: list[str] = []
    """Ids of criteria it calls failed."""
    passed: list[str] = []
    comments: dict[str, str] = {}
    """What it says about a criterion, by id."""
    risks: list[str] = []
    unseen: list[str] = []
    """Files whose change the judge was not shown whole."""
    unseen_count: int = 0
    """How many they are; the list is cut."""
    blind: bool = False
    """Whether nothing of the change was shown."""


class Verdict(StateModel):
    """How the run ends, decided by code."""

    state: EndName
    reason: str
    """A short code: complete, unproven, loop_limit, aborted, cancelled, budget: wall_sec, …"""
    text: str = ""
    """One sentence for people."""
    missing: list[str] = []
    """What stands between this run and COMPLETE, one sentence each."""
    grade: Grade = "none"
    """Of a COMPLETE run: that of its weakest critical criterion."""


class Acceptance(StateModel):
    """A person's yes after looking, from `agentrunner accept`."""

    criteria: list[str]
    """Empty: the run as a whole."""
    reason: str
    by: str
    at: str
    tree: str
    unchanged: bool = False
    """Whether they say that nothing had to change."""


class TaskContext(TypedDict, total=False):
    """The channels of the graph."""

    task_file: str
    """LangGraph Studio only: a task file's path, from which the run is made."""
    run: RunInfo
    state: TaskState
    counters: Counters
    criteria: list[Criterion]
    baseline: Baseline | None
    evidence: Evidence | None
    assessment: Assessment | None
    order: WorkerOrder | None
    """The worker to be started, or being run."""
    wait: Wait | None
    """What the run waits for, without a person."""
    cooling: dict[str, str]
    """Candidates that are left alone for a while: "worker:NAME" or "meta:NAME" to a UTC time."""
    grants: dict[str, float]
    """What people added to limits of the budget, by name."""
    stuck: Stuck | None
    wants_completion: bool
    """mark_complete was asked for and is not yet judged."""
    completion_reason: str
    question: Question | None
    answer: Answer | None
    person_order: PersonOrder | None
    """What a person ordered in the planner's place, until a decision has carried it out."""
    allowed_hosts: list[str]
    """Hosts that a person allowed workers to reach, beside those of the task."""
    refused_hosts: list[str]
    """Hosts that a person refused: nobody is asked about them again."""
    approved: list[str]
    """Ids of approved subjects, the last five."""
    told: list[str]
    """Fingerprints of findings that the planner was told once."""
    remarks: list[str]
    """Core's own words for the next decision, the last five."""
    people: People
    """What people decided; a run that was begun before this was kept has none."""
    recent: list[WorkerRun]
    tail: str
    """End of the latest worker's standard output, at most 4 KiB."""
    error_tail: str
    """The same of its standard error; a run begun before this was kept has none."""
    tree: str
    """Latest snapshot."""
    acceptances: list[Acceptance]
    verdict: Verdict | None
