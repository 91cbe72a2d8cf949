"""The events of runs and plans: what `--json` prints, one object a line, and `follow` yields.

An event may say more than its model; readers ignore keys that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from agentrunner.results import DRAFT, PlanResult, RedTestEntry, Result
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import QuestionKind
from agentrunner.state.worker_runs import Outcome


class Event(BaseModel):
    """What all events have; also one of a kind that this version does not know."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, defer_build=True)

    ts: str
    """UTC, ISO 8601, milliseconds."""
    event: str

    def as_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class RunEvent(Event):
    """An event of a run. `seq` counts from 1 over the whole life of the run."""

    seq: int = Field(ge=1)
    run_id: str | None


class RunStarted(RunEvent):
    """A run begins. `header`: who, where, with what, how long at most."""

    event: Literal["run_started"]
    task_id: str
    title: str
    header: dict[str, Any]


class RunResumed(RunEvent):
    """A run is resumed, or its next attempt begins."""

    event: Literal["run_resumed"]
    attempt: int
    header: dict[str, Any]


class StateChanged(RunEvent):
    """The run is in another state."""

    event: Literal["state_changed"]
    before: TaskState = Field(alias="from")
    after: TaskState = Field(alias="to")


class BaselineMeasured(RunEvent):
    """A command on the tree before the run. `target`: `test` or a criterion's id."""

    event: Literal["baseline"]
    target: str
    command: str
    exit_code: int | None
    outcome: str
    passed: int | None = None
    failed: int | None = None
    red: list[RedTestEntry] = []
    known_red: list[str] = []
    known_red_in_all: int | None = None
    output: str | None = None


class Awaiting(RunEvent):
    """Whom the run waits for from now on. `what`: a message of the planner, or a command."""

    event: Literal["awaiting"]
    who: Literal["planner", "setup", "tests", "check"]
    what: str
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
    """The planner was asked; `error` is None where the answer could be used."""

    event: Literal["meta_call"]
    type: str
    attempt: int
    duration_ms: float
    usage: dict[str, Any] | None
    usd: float | None = None
    """None: nobody can tell."""
    error: Any = None
    looks: list[str] = []
    """What it looked at in place of an answer: `read src/a.py from 1 to 80`."""


class CriteriaPlanned(RunEvent):
    """The acceptance criteria as planned."""

    event: Literal["plan"]
    acceptance_criteria: list[dict[str, Any]]


class DecisionMade(RunEvent):
    """What the planner decided to do next."""

    event: Literal["decision"]
    action: str
    reason: str


class WorkerStarted(RunEvent):
    """A worker was started. `loop` counts from 0 in each attempt; people read `round`, which counts
    from 1 over the whole run."""

    event: Literal["worker_started"]
    worker_run_id: str
    worker: str
    model: str | None
    loop: int = Field(ge=0)
    round: int | None = Field(None, ge=1)


class WorkerSpoke(RunEvent):
    """What a worker says that it does: its own word. The other keys depend on `kind`."""

    event: Literal["worker_event"]
    worker_run_id: str
    kind: Literal["text", "command_started", "command_finished", "file_changed", "usage", "error"]


class WorkerUsage(RunEvent):
    """What a worker's calls have used so far, as the gateway counted; `worker_finished` has all."""

    event: Literal["worker_usage"]
    worker_run_id: str
    tokens: int
    usd: float | None = None
    """None: nobody can tell, or it is part of a subscription."""


class WorkerFinished(RunEvent):
    """How a worker run ended, and how many files it changed."""

    event: Literal["worker_finished"]
    worker_run_id: str
    outcome: Outcome
    exit_code: int | None
    duration_sec: float
    changed_files: int
    hosts_refused: list[str]
    tokens: int = 0
    usd: float | None = None
    """None: nobody can tell, or it is part of a subscription."""
    error: str = ""
    """Why it did not succeed, in a sentence; "" where it did."""


class CheckRun(RunEvent):
    """A test command or check on a delivered tree. `target`: `test`, `setup` or a criterion."""

    event: Literal["check"]
    target: str
    command: str
    exit_code: int | None
    outcome: str
    passed: int | None = None
    failed: int | None = None
    finding: str = ""
    detail: str = ""
    red: list[RedTestEntry] = []
    output: str | None = None


class CompletionAssessed(RunEvent):
    """What the judge said about a request for completion."""

    event: Literal["assessment"]
    satisfied: bool
    summary: str
    by_criterion: Any


class WaitBegun(RunEvent):
    """The run waits for a quota or a provider until `until` and then continues by itself."""

    event: Literal["waiting"]
    until: str
    reason: str
    role: Literal["worker", "meta"]
    candidate: str
    told: bool = False
    """Whether the provider said how long."""


class QuestionAsked(RunEvent):
    """The run waits for a person."""

    event: Literal["question"]
    id: str
    kind: QuestionKind
    text: str
    options: list[str]


class AnswerGiven(RunEvent):
    """A person answered the question `id`."""

    event: Literal["answer"]
    id: str
    decision: Literal["answer", "approve", "reject"] = "answer"
    text: str = ""
    """The person's words, on one line and cut where they are long."""
    edited: bool = False
    """Whether the person changed what was approved."""
    by: str = ""


class ImageProgress(RunEvent):
    """How far the fetching or building of the sandbox's image is."""

    event: Literal["image_progress"]
    text: str


class Committed(RunEvent):
    """The work is committed."""

    event: Literal["committed"]
    id: str
    branch: str
    files: list[str]


class NoteWritten(RunEvent):
    """The task note was written."""

    event: Literal["note_written"]
    path: str


class RunWarning(RunEvent):
    """Something that stops nothing and that people should know."""

    event: Literal["warning"]
    code: str
    message: str


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


class PlanStarted(PlanEvent):
    """A process begins to carry the plan out."""

    event: Literal["plan_started"]
    tasks: list[str]
    done: list[str]
    waiting: list[str]
    behind: list[str]
    notices: list[str]


class PlanOpened(PlanEvent):
    """A task has its workspace."""

    event: Literal["plan_opened"]
    task_id: str
    folder: str


class PlanTaskChanged(PlanEvent):
    """How a task stands; "" for what is not known."""

    event: Literal["plan_task"]
    task_id: str
    status: str
    run_id: str
    tries: int
    retry_at: str
    detail: str


class PlanQuestionAsked(PlanEvent):
    """A task, or the plan's `budget`, waits for a person."""

    event: Literal["plan_question"]
    task_id: str
    question: int
    text: str
    status: str


class PlanFixing(PlanEvent):
    """A task goes into another round."""

    event: Literal["plan_fixing"]
    task_id: str
    evidence: str


class PlanLanded(PlanEvent):
    """The work of a task is part of the branch; `commit` is "" in a folder without git."""

    event: Literal["plan_landed"]
    task_id: str
    commit: str
    files: list[str]


class PlanPublished(PlanEvent):
    """A branch of the user's repository moved."""

    event: Literal["plan_published"]
    branch: str
    commit: str


class PlanDelivered(PlanEvent):
    """The result is handed over."""

    event: Literal["plan_delivered"]
    branch: str
    commit: str
    onto: str | None
    request: str | None


class PlanWarning(PlanEvent):
    """Something about the plan that stops nothing."""

    event: Literal["warning"]
    code: str
    message: str
    task_id: str = ""


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
    output: str


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
