"""TaskContext: the typed state that the graph carries from node to node.

It is small and bounded. Outputs are files in the run's folder, the history is the run log beside
them; the state has counters, the latest evidence and the last five worker runs as references. Every
value is JSON-native or one of the frozen models below (docs/decisions/0003-small-state.md).
"""

from __future__ import annotations

from typing import Literal, TypedDict

from pydantic import Field

from agentrunner.config.spec import Check
from agentrunner.state.evidence_words import Author, EvidenceKind, Grade, Origin, Status
from agentrunner.state.lifecycle import EndName, TaskState
from agentrunner.state.people import Answer, People, PersonOrder, Question
from agentrunner.state.state_model import FileRef, StateModel
from agentrunner.state.worker_runs import Stuck, Wait, WorkerOrder, WorkerRun

SCHEMA_VERSION = 1
RECENT = 5
TAIL_BYTES = 4096


class RunInfo(StateModel):
    """What does not change during an attempt."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    task_id: str
    title: str
    repo: str
    attempt: int = 1
    max_loops: int = 5
    salt: str = ""
    """Key of the markers in prompts; drawn once per run."""
    started_at: str = ""
    """When it was asked for, UTC, ISO 8601."""
    start_sec: float = 0
    """Seconds from then to its first step."""
    accepting: str = ""
    """In an attempt that `accept` makes: the reason of the end that the person's acceptance may
    lift."""
    plan_open: bool = False
    """Whether a plan was asked about and nobody has approved one since."""


class Counters(StateModel):
    """Everything that is counted. Budgets count over all attempts, `loops` over one."""

    loops: int = 0
    worker_runs: int = 0
    meta_calls: int = 0
    """Calls that were sent; also the cursor of a scripted planner."""
    repeated_calls: int = 0
    """Calls of nodes that were killed before they were saved. They were made again under the same
    numbers, so they are not part of `meta_calls`."""
    meta_input_tokens: int = 0
    meta_output_tokens: int = 0
    worker_input_tokens: int = 0
    worker_output_tokens: int = 0
    usd: float = 0
    """Cost of the calls whose price is known: the planner's, and those that the gateway counted."""
    priced_calls: int = 0
    unpriced_calls: int = 0
    """Calls whose cost is unknown."""
    subscribed_calls: int = 0
    """Calls that are part of a subscription, so that no price is paid for them."""
    unknown_calls: int = 0
    """Calls whose tokens are not known, or only in part: the counts are a minimum."""
    decisions: int = 0
    questions: int = 0
    messages: int = 0
    """Messages of `resume --message` that a node has read."""
    losses: int = 0
    """Worker runs lost in a row."""
    wall_sec: float = 0
    """Seconds spent, pauses not counted."""

    @property
    def calls(self) -> int:
        """Return all calls of the planner that were sent."""
        return self.meta_calls + self.repeated_calls

    @property
    def tokens(self) -> int:
        """Return the tokens of planner and workers together, input and output."""
        planner = self.meta_input_tokens + self.meta_output_tokens
        return planner + self.worker_input_tokens + self.worker_output_tokens


class Awaited(StateModel):
    """What a check needs that does not exist before the work: a test or a file, or a tool."""

    kind: Literal["test", "tool", "file"]
    what: str
    """The test's file and name, the tool's name, or the script or target that it runs."""


class FormerCheck(StateModel):
    """A check that a criterion had until it was withdrawn or replaced during the run."""

    what: str
    """The check, as people read it."""
    outcome: Literal["passed", "failed", "not_run"] = "not_run"
    """Its last outcome."""
    detail: str = ""
    reason: str = ""
    by: Literal["planner", "person"] = "planner"
    replaced: bool = False
    """Whether another check took its place."""
    worker_runs: int = 0
    """How many worker runs there had been by then."""


class Criterion(StateModel):
    """An acceptance criterion and its status. Status and evidence are set by code."""

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
    """What the planner's check needs first; the check counts all the same."""
    late: bool = False
    """Whether the planner wrote its check, or mapped it to tests, after work had begun: then these
    prove nothing."""
    status: Status = "unknown"
    evidence: EvidenceKind = "none"
    grade: Grade = "none"
    author: Author = ""
    """Who wrote the proof."""
    tests: list[str] = []
    """Names of tests that decide it, as the planner or a person mapped them; at most 20."""
    tests_origin: Origin = "task"
    """Who mapped them."""
    proof: str = ""
    """One line: what was run or read, and its outcome."""
    comment: str = ""
    """The planner's comment on it."""
    former: list[FormerCheck] = []
    """Its former checks, the last five."""

    @property
    def tests_of_person(self) -> list[str]:
        """Return the tests that a person named, or approved, to decide it in place of a check."""
        return self.tests if self.check is None and self.tests_origin != "model" else []

    @property
    def withdrawn(self) -> FormerCheck | None:
        """Return the check that was withdrawn after work had begun: nothing proves it since."""
        last = self.former[-1] if self.former and self.check is None else None
        return last if last is not None and last.worker_runs else None


class RedTest(StateModel):
    """A test that fails, and why."""

    name: str
    file: str = ""
    line: int | None = None
    message: str = Field("", max_length=600)


class TestOutcome(StateModel):
    """One run of the test command. Counts are None where the output does not give them."""

    __test__ = False

    command: str
    exit_code: int
    green_before: bool | None = None
    """Whether it was green on the tree before the run; None where it did not run there."""
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    errors: int = 0
    """Of the failed ones: what broke outside of a test, perhaps beside one that was counted."""
    failing: list[str] = []
    """Names of failing tests, at most 50."""
    red: list[RedTest] = []
    """The first ten of them, with their messages."""
    reader: str = ""
    """The test tool that reported results by name; "" where there are totals at most."""
    results: FileRef | None = None
    """All results by name, in the run's folder."""
    gone: list[str] = []
    """Names that passed before and are missing or skipped now, at most 50."""
    known_red: list[str] = []
    """Names that were red before, are not asked for, and are still red, at most 50."""
    turned: list[str] = []
    """Names that were red before and pass now, at most 50."""
    added: list[str] = []
    """Names that pass now and were not there before, at most 50."""
    still_red: list[str] = []
    """Names that were red before, have to turn green and are still red, at most 50."""
    newly_red: list[str] = []
    """Names that are red now and were not before, at most 50."""
    flaky: list[str] = []
    """Names that were both red and green on this tree."""
    totals: dict[str, int] = {}
    """How many names a list has in all, where it has been cut to 50."""
    finding: str = ""
    """Why exit code 0 is not trusted: failures in the output, no tests ran, fewer than before."""
    hint: str = ""
    """What the command does not report, and how to make it do so."""
    output: FileRef | None = None
    tail: str = ""
    duration_sec: float = 0

    @property
    def green(self) -> bool:
        """Whether the exit code is 0, or only known reds are red, and no finding contradicts it."""
        return (self.exit_code == 0 or bool(self.known_red)) and not self.finding

    def how_many(self, names: str) -> int:
        """How many names there are in all in a list of names that may have been cut."""
        return self.totals.get(names) or len(getattr(self, names))

    @property
    def disbelieved(self) -> bool:
        """Whether it exits 0 with no test reported red, and what it printed speaks against it."""
        return self.exit_code == 0 and bool(self.finding) and not self.red


class CheckOutcome(StateModel):
    """One execution of a criterion's check."""

    criterion_id: str
    what: str
    """The command, or "README.md contains …"."""
    outcome: Literal["passed", "failed", "not_run"]
    exit_code: int | None = None
    before: Literal["green", "red", "unknown"] = "unknown"
    """The outcome of the same check on the tree before the run."""
    detail: str = ""
    output: FileRef | None = None
    reader: str = ""
    results: FileRef | None = None
    red: list[RedTest] = []
    """Its red tests, where they are reported by name."""
    writes: list[str] = []
    """Of a run on the tree before the run: paths that it wrote into the repository by itself."""
    unstarted: bool = False
    """Whether it never decided anything, because its tool or shell could not start."""
    disbelieved: bool = False
    """Whether it exits 0 with no test reported red, and what it printed speaks against it."""


class Proof(StateModel):
    """What was red before the run and is green now, and who wrote what shows it."""

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
    """Identifiers that a worker's tests use, for matching them to criteria; at most 200."""
    about: dict[str, list[str]] = {}
    """By test: words of its name and text, for matching it to a criterion; at most 200 each."""
    unasked: list[str] = []
    """Tests that share no word with anything that was asked for."""
    notes: list[str] = []
    """What could not be tried: "not tried without the work", "no canary"."""


class Finding(StateModel):
    """Something the code noticed that matters for completion."""

    code: str
    """`tests_changed`, `protected_path`, `tree_changed_by_checks`, `dependencies_changed`, …"""
    message: str
    paths: list[str] = []
    blocks: bool = True
    remedy: str = ""
    """The edit or command that would settle it."""
    remedy_when_ended: str = ""
    """The same for a run that has ended; "" where no other command settles it then."""
    tests: list[str] = []
    """Names of the tests it is about, at most 50."""
    diff: str = ""
    """Of runs that an older version ended; since then such diffs are kept beside the state."""


class Baseline(StateModel):
    """The tree before the run: its hash, its tests, and the checks of the task."""

    tree: str
    origin: str = ""
    """The tree before set-up and tests ran, to which `undo` returns."""
    test: TestOutcome | None = None
    checks: dict[str, Literal["green", "red", "unknown"]] = {}
    """By criterion id."""
    test_writes: list[str] = []
    """Paths that tests and checks write into the repository by themselves."""
    check_outcomes: list[CheckOutcome] = []
    """The outcome of each check that was executed."""
    reporters: dict[str, int] = {}
    """By target: the means by which it reports, where the first one changed the outcome; -1 for
    none."""
    measured_with: str = ""
    """A digest of the set-up, the test command and the checks that it was measured with; "" where
    it is to be measured again, and in runs of versions that did not keep it."""


class Evidence(StateModel):
    """What was measured of one tree."""

    tree: str
    tree_after: str = ""
    """The tree with what the checks themselves wrote; equal to `tree` where they wrote nothing."""
    test: TestOutcome | None = None
    restored_test: TestOutcome | None = None
    """Of runs that an older version began; it is no longer read."""
    checks: list[CheckOutcome] = []
    findings: list[Finding] = []
    proof: list[str] = []
    """Fail-to-pass facts: what was red before and is green now."""
    proofs: list[Proof] = []
    """The same with grades; only of evidence that was `examined`."""
    stale: bool = False
    """Whether checks were withdrawn or replaced since, so that the tree is measured again."""
    examined: bool = False
    """Whether completion was requested for this tree, so that the whole verification was made."""
    unchanged: bool = False
    """Whether what would be handed over is the tree from before the run; known once `examined`."""
    allowed: list[str] = []
    """Paths whose change a person had allowed by then."""
    doubts: dict[str, str] = {}
    """By target: why what is green now proves nothing."""
    outside: list[str] = []
    """Files that a person changed after the run had ended, at most 50."""
    by_hand: list[str] = []
    """Targets and tests that are green only with these."""
    changed_files: list[str] = []
    """Files that the run's workers changed, against the tree before the run."""
    deleted_files: list[str] = []
    """Those of them that were deleted."""
    lines_added: int = 0
    lines_removed: int = 0
    tests_added: int = 0

    @property
    def red(self) -> bool:
        """Whether the test command or a check is red. Findings are separate from this."""
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
    """Its comment on a criterion, by id."""
    risks: list[str] = []
    unseen: list[str] = []
    """Files whose change the judge was not shown whole."""
    unseen_count: int = 0
    """How many files that is; the list is cut."""
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
    """Of a COMPLETE run: the grade of its weakest critical criterion."""


class Acceptance(StateModel):
    """A person's acceptance after looking, from `agentrunner accept`."""

    criteria: list[str]
    """Empty for the run as a whole."""
    reason: str
    by: str
    at: str
    tree: str
    unchanged: bool = False
    """Whether the person says that nothing had to change."""


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
    """The worker run to be started, or in progress."""
    wait: Wait | None
    """What the run waits for, without a person."""
    cooling: dict[str, str]
    """Candidates that are not asked for a while: "worker:NAME" or "meta:NAME", or "unable:NAME" for
    a worker whose command cannot work, to a UTC time."""
    grants: dict[str, float]
    """What people added to limits of the budget, by name."""
    stuck: Stuck | None
    wants_completion: bool
    """Whether mark_complete was requested and is not judged yet."""
    refused_tree: str
    """The tree for which completion was refused in this attempt, where no work was ordered since;
    missing in runs of versions that did not keep it."""
    completion_reason: str
    question: Question | None
    answer: Answer | None
    person_order: PersonOrder | None
    """What a person ordered in the planner's place, until a decision has executed it."""
    allowed_hosts: list[str]
    """Hosts that a person allowed workers to reach, beside those of the task."""
    refused_hosts: list[str]
    """Hosts that a person refused: no further question is asked about them."""
    approved: list[str]
    """Ids of approved subjects, the last five."""
    told: list[str]
    """Fingerprints of findings that were reported to the planner once."""
    remarks: list[str]
    """AgentRunner's own remarks for the next decision, the last five."""
    people: People
    """What people decided; missing in runs of versions that did not keep it."""
    recent: list[WorkerRun]
    tail: str
    """End of the latest worker's standard output, at most 4 KiB."""
    error_tail: str
    """The same of its standard error; missing in runs of versions that did not keep it."""
    tree: str
    """Latest snapshot."""
    acceptances: list[Acceptance]
    verdict: Verdict | None


def updated(state: TaskContext, *updates: TaskContext) -> TaskContext:
    """Return the state as it is after updates, in their order; `state` itself stays as it was."""
    whole: TaskContext = {**state}
    for update in updates:
        whole = {**whole, **update}
    return whole
