"""The events of runs and plans: what `--json` prints, one object a line, and `follow` yields.

An event may say more than its model; readers ignore keys that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agentrunner.header import Header, Part
from agentrunner.results import DRAFT, PlanResult, RedTestEntry, Result
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import QuestionKind
from agentrunner.state.run_state import Criterion
from agentrunner.state.worker_runs import Outcome


class Event(BaseModel):
    """What all events have; also one of a kind that this version does not know."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, defer_build=True)

    ts: str
    """UTC, ISO 8601, milliseconds."""
    event: str
    """Its kind, as in the table."""

    def as_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class RunEvent(Event):
    """An event of a run. `seq` counts from 1 over the whole life of the run."""

    seq: int = Field(ge=1)
    """From 1, rising over the whole life of the run."""
    run_id: str | None
    """Which run; None where none was created."""


class PlannedCriterion(Criterion):
    """A criterion as planned, with its check."""

    model_config = ConfigDict(extra="allow")


class CallUsage(Part):
    """Tokens of a call, as its provider or the gateway counted them."""

    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None


class RunStarted(RunEvent):
    """A run begins."""

    event: Literal["run_started"]
    task_id: str
    """Of the task file or PRD."""
    title: str
    """Of the task."""
    header: Header
    """Who works, where, with what, and how long at most."""


class RunResumed(RunEvent):
    """A run is resumed, or its next attempt begins."""

    event: Literal["run_resumed"]
    attempt: int
    """From 1."""
    header: Header
    """With the limits of this attempt."""


class StateChanged(RunEvent):
    """The run is in another state."""

    event: Literal["state_changed"]
    before: TaskState = Field(alias="from")
    """The state that it leaves."""
    after: TaskState = Field(alias="to")
    """The state that it enters."""


class BaselineMeasured(RunEvent):
    """A command on the tree before the run."""

    event: Literal["baseline"]
    target: str
    """`test` or a criterion's id."""
    command: str
    """What was run."""
    exit_code: int | None
    """None where it was stopped."""
    outcome: str
    """How that is read."""
    passed: int | None = None
    """A count, of tests."""
    failed: int | None = None
    """A count, of tests."""
    red: list[RedTestEntry] = []
    """The first ten red tests, of tests."""
    known_red: list[str] = []
    """Names that need not turn, as far as the task alone tells; at most 50."""
    known_red_in_all: int | None = None
    """How many these are."""
    output: str | None = None
    """What it printed, a file of the run's folder."""


class Awaiting(RunEvent):
    """Whom the run waits for from now on."""

    event: Literal["awaiting"]
    who: Literal["planner", "setup", "tests", "check"]
    """For whom or what."""
    what: str
    """A message's type, or a command."""
    at_most_sec: float | None = None
    """Of a command: when it is stopped."""
    why: str | None = None
    """Of a command that is run beside its round, for the proof: on what, as `once more`."""
    prompt_tokens: int | None = None
    """Of a planner that streams: about how much its server reads before it writes."""
    written_tokens: int | None = None
    """Of a planner that streams: about how much it has written, thoughts included."""
    text: str | None = None
    """The end of that. Nothing is done with it before it is whole."""


class PlannerCalled(RunEvent):
    """The planner was asked."""

    event: Literal["meta_call"]
    type: str
    """The type of the message that was asked for."""
    attempt: int
    """The number of the call, from 1."""
    duration_ms: float
    """Milliseconds."""
    usage: CallUsage | None
    """Its tokens; None where nothing is known."""
    usd: float | None = None
    """None: nobody can tell."""
    error: str | None = None
    """Why the answer could not be used; None where it could."""
    looks: list[str] = []
    """What it looked at in place of an answer: `read src/a.py from 1 to 80`."""


class CriteriaPlanned(RunEvent):
    """The acceptance criteria as planned."""

    event: Literal["plan"]
    acceptance_criteria: list[PlannedCriterion]
    """Each with its check, its tests and how it stands."""


class DecisionMade(RunEvent):
    """What the planner decided to do next."""

    event: Literal["decision"]
    action: str
    """`run_worker`, `mark_complete`, `ask_human` or `abort`."""
    reason: str
    """In its words."""


class WorkerStarted(RunEvent):
    """A worker was started."""

    event: Literal["worker_started"]
    worker_run_id: str
    """As `1-001`: attempt and number."""
    worker: str
    """The candidate."""
    model: str | None
    """None: the worker's own."""
    loop: int = Field(ge=0)
    """From 0 in each attempt."""
    round: int | None = Field(None, ge=1)
    """From 1 over the whole run; this is what people read."""
    rounds_at_most: int | None = Field(None, ge=1)
    """The number of the attempt's last round, where all of them are needed."""


class WorkerSpoke(RunEvent):
    """What a worker says that it does: its own word. The other keys depend on `kind`."""

    event: Literal["worker_event"]
    worker_run_id: str
    """Of `worker_started`."""
    kind: Literal["text", "command_started", "command_finished", "file_changed", "usage", "error"]
    """And its fields: `text{text}`, `command_started{command}`,
    `command_finished{command,exit_code}`, `file_changed{path,change}`, `usage{…}`,
    `error{message}`."""


class WorkerUsage(RunEvent):
    """What a worker's calls have used so far, as the gateway counted; `worker_finished` has all."""

    event: Literal["worker_usage"]
    worker_run_id: str
    """Of `worker_started`."""
    tokens: int
    """So far, at most every 2 s."""
    usd: float | None = None
    """None: nobody can tell, or it is part of a subscription."""


class WorkerFinished(RunEvent):
    """How a worker run ended, and how many files it changed."""

    event: Literal["worker_finished"]
    worker_run_id: str
    """Of `worker_started`."""
    round: int | None = Field(None, ge=1)
    """Of `worker_started`."""
    outcome: Outcome
    """See below."""
    exit_code: int | None
    """None where it was stopped."""
    duration_sec: float
    """Seconds."""
    changed_files: int
    """How many."""
    hosts_refused: list[str]
    """Hosts that it wanted and was not let reach."""
    tokens: int = 0
    """All that are billed."""
    usd: float | None = None
    """None: nobody can tell, or it is part of a subscription."""
    error: str = ""
    """Why it did not succeed, in a sentence; "" where it did."""


class CheckRun(RunEvent):
    """A test command or check on a delivered tree."""

    event: Literal["check"]
    target: str
    """`test`, `setup` or a criterion's id."""
    command: str
    """What was run."""
    exit_code: int | None
    """None where it was stopped."""
    outcome: str
    """How that is read."""
    passed: int | None = None
    """A count, of tests."""
    failed: int | None = None
    """A count, of tests."""
    finding: str = ""
    """Why exit 0 is not believed, of tests."""
    detail: str = ""
    """What was seen, in a line."""
    red: list[RedTestEntry] = []
    """The first ten red tests, of tests."""
    output: str | None = None
    """What it printed, a file of the run's folder."""


class CompletionAssessed(RunEvent):
    """What the judge said about a request for completion."""

    event: Literal["assessment"]
    satisfied: bool
    """Whether all criteria are met, in its eyes."""
    summary: str
    """In its words."""
    by_criterion: dict[str, Literal["passed", "failed"]]
    """By the id of each criterion that it names: `passed` or `failed`."""


class WaitBegun(RunEvent):
    """The run waits for a quota or a provider until `until` and then continues by itself."""

    event: Literal["waiting"]
    until: str
    """UTC, ISO 8601."""
    reason: str
    """A sentence."""
    role: Literal["worker", "meta"]
    """Who cannot work."""
    candidate: str
    """Which of its candidates."""
    told: bool = False
    """Whether the provider said how long."""


class QuestionAsked(RunEvent):
    """The run waits for a person."""

    event: Literal["question"]
    id: str
    """What an answer names."""
    kind: QuestionKind
    """As `ask_human`, `plan`, `worker`, `complete` or `budget`."""
    text: str
    """The question."""
    options: list[str]
    """Answers to choose from, for some."""


class AnswerGiven(RunEvent):
    """A person answered the question `id`."""

    event: Literal["answer"]
    id: str
    """Of the question."""
    decision: Literal["answer", "approve", "reject"] = "answer"
    """What was decided."""
    text: str = ""
    """The person's words, on one line and cut where they are long."""
    edited: bool = False
    """Whether the person changed what was approved."""
    by: str = ""
    """Who, if known."""


class ImageProgress(RunEvent):
    """How far the fetching or building of the sandbox's image is."""

    event: Literal["image_progress"]
    text: str
    """A line."""


class Committed(RunEvent):
    """The work is committed."""

    event: Literal["committed"]
    id: str
    """Of the commit."""
    branch: str
    """Where it is."""
    files: list[str]
    """What it changes."""


class NoteWritten(RunEvent):
    """The task note was written."""

    event: Literal["note_written"]
    path: str
    """Absolute."""


class RunWarning(RunEvent):
    """Something that stops nothing and that people should know."""

    event: Literal["warning"]
    code: str
    """What kind, for programs."""
    message: str
    """A sentence."""


class RunEnded(RunEvent, Result):
    """The result of a run, as its last event."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, defer_build=True)

    event: Literal["result"]
    run_id: str | None


class PlanEvent(Event):
    """An event of a plan that is carried out. It has no `run_id`.

    `seq` counts from 1 over the whole life of the plan; it is missing where none could be begun.
    """

    seq: int | None = Field(None, ge=1)
    """From 1, rising over the whole life of the plan; missing where none could be begun."""


class PlanStarted(PlanEvent):
    """A process begins to carry the plan out."""

    event: Literal["plan_started"]
    tasks: list[str]
    """Those that are wanted."""
    done: list[str]
    """Of these, COMPLETE ones."""
    waiting: list[str]
    """Of these, those that wait for an answer."""
    behind: list[str]
    """Of these, those behind one that waits."""
    notices: list[str]
    """What people should know before."""


class PlanOpened(PlanEvent):
    """A task has its workspace."""

    event: Literal["plan_opened"]
    task_id: str
    """Which task."""
    folder: str
    """Absolute."""


class PlanTaskChanged(PlanEvent):
    """How a task stands; "" for what is not known."""

    event: Literal["plan_task"]
    task_id: str
    """Which task."""
    status: str
    """Of the task in the plan."""
    run_id: str
    """Of its run."""
    tries: int
    """How many runs."""
    retry_at: str
    """When it is tried again; RETRY_WAIT without it: not by itself."""
    detail: str
    """A sentence."""


class PlanQuestionAsked(PlanEvent):
    """A task, or the plan's `budget`, waits for a person."""

    event: Literal["plan_question"]
    task_id: str
    """Which task, or `budget`."""
    question: int
    """Its number."""
    text: str
    """The question."""
    status: str
    """What the task has meanwhile."""


class PlanFixing(PlanEvent):
    """A task goes into another round."""

    event: Literal["plan_fixing"]
    task_id: str
    """Which task."""
    evidence: str
    """Why, for its worker."""


class PlanLanded(PlanEvent):
    """The work of a task is part of the branch; `commit` is "" in a folder without git."""

    event: Literal["plan_landed"]
    task_id: str
    """Which task."""
    commit: str
    """Of the plan's branch."""
    files: list[str]
    """Those that it changed."""


class PlanPublished(PlanEvent):
    """A branch of the user's repository moved."""

    event: Literal["plan_published"]
    branch: str
    """Its name."""
    commit: str
    """Where it is now."""


class PlanDelivered(PlanEvent):
    """The result is handed over."""

    event: Literal["plan_delivered"]
    branch: str
    """Of the plan."""
    commit: str
    """Where it is."""
    onto: str | None
    """The branch that it was brought onto."""
    request: str | None
    """The address of its pull or merge request."""


class PlanWarning(PlanEvent):
    """Something about the plan that stops nothing."""

    event: Literal["warning"]
    code: str
    """What kind, for programs."""
    message: str
    """A sentence."""
    task_id: str = ""
    """Which task; "" for the plan."""


class PlanEnded(PlanEvent, PlanResult):
    """The result of `plan run`, as its last event."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, defer_build=True)

    event: Literal["plan_result"]


class Detached(Event):
    """All that a command with `--detach` prints; `output` is the file that has the rest."""

    event: Literal["detached"]
    run_id: str | None
    """None for a plan."""
    pid: int
    """Of the process that works."""
    output: str
    """The file that has the rest."""


AnyRunEvent = Annotated[
    RunStarted | RunResumed | StateChanged | BaselineMeasured | Awaiting | PlannerCalled
    | CriteriaPlanned | DecisionMade | WorkerStarted | WorkerSpoke | WorkerUsage | WorkerFinished
    | CheckRun
    | CompletionAssessed | WaitBegun | QuestionAsked | AnswerGiven | ImageProgress | Committed
    | NoteWritten | RunWarning | RunEnded,
    Field(discriminator="event"),
]  # fmt: skip
AnyPlanEvent = Annotated[
    PlanStarted | PlanOpened | PlanTaskChanged | PlanQuestionAsked | PlanFixing | PlanLanded
    | PlanPublished | PlanDelivered | PlanWarning | PlanEnded | Detached,
    Field(discriminator="event"),
]  # fmt: skip


def _by_kind(union: Any) -> dict[str, type[Event]]:
    models = get_args(get_args(union)[0])
    return {get_args(model.model_fields["event"].annotation)[0]: model for model in models}


RUN_EVENTS = _by_kind(AnyRunEvent)
PLAN_EVENTS = _by_kind(AnyPlanEvent)
"""Models by the kind of event."""

_LATE = ConfigDict(defer_build=True)
_RUN: TypeAdapter[AnyRunEvent] = TypeAdapter(AnyRunEvent, config=_LATE)
_PLAN: TypeAdapter[AnyPlanEvent] = TypeAdapter(AnyPlanEvent, config=_LATE)


def read_event(line: Mapping[str, Any]) -> Event:
    """The event of a line of `--json`; of a kind or shape of another version a plain `Event`.

    Raises ValidationError for what is no event at all.
    """
    try:
        return checked_event(line)
    except ValidationError:
        return Event.model_validate(line)


def checked_event(line: Mapping[str, Any]) -> Event:
    """The same, strictly: raises ValidationError for every event that is not as promised."""
    of_run = "run_id" in line and line.get("event") in RUN_EVENTS
    return (_RUN if of_run else _PLAN).validate_python(dict(line))


def event_schema() -> dict[str, object]:
    """The JSON Schema of all events."""
    both: TypeAdapter[Any] = TypeAdapter(AnyRunEvent | AnyPlanEvent)
    schema = both.json_schema(by_alias=True)
    return {"$schema": DRAFT, **schema, "title": "AgentRunner event"}
