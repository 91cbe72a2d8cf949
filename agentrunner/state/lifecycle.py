"""The states of a task, the moves between them and what its ends mean, as data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from agentrunner.errors import AgentRunnerError, InfraError


class TaskState(StrEnum):
    """Where a task is."""

    PENDING = "PENDING"
    PLANNING = "PLANNING"
    RUNNING = "RUNNING"
    VALIDATING = "VALIDATING"
    FIXING = "FIXING"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    NEEDS_REVIEW = "NEEDS_REVIEW"


S = TaskState

EndName = Literal["COMPLETE", "NEEDS_REVIEW", "FAILED"]
"""The keys of `END_STATES`, for the types of what is saved and printed."""
Tone = Literal["good", "warn", "bad"]
"""How an end is coloured, on a screen and in a diagram."""
NextStep = Literal["use", "review", "retry"]
"""What a person does about an end: use the work, look at it, or try again."""


class EndState(Struct, frozen=True):
    """What an end of a run means wherever it is shown."""

    exit_code: int
    """Of the command that ran it, and of a plan with a task that ended this way."""
    word: str
    """As people read it; in capitals at the head of a summary."""
    tone: Tone
    next_step: NextStep
    """Which commands are suggested, and what the note asks its reader to do."""


END_STATES: Mapping[TaskState, EndState] = {
    S.COMPLETE: EndState(0, "complete", "good", "use"),
    S.NEEDS_REVIEW: EndState(3, "needs review", "warn", "review"),
    S.FAILED: EndState(1, "failed", "bad", "retry"),
}
"""Every end, the best first. Code that depends on an end derives from this table, or a test names
it."""

WAITING_EXIT = 4
"""The exit code of a run or plan that waits for a person."""
KEPT_EXIT = InfraError.exit_code
"""The exit code where the machine or a service failed: the run is kept and has not ended."""

MOVES: dict[TaskState, frozenset[TaskState]] = {
    S.PENDING: frozenset({S.PLANNING, S.FAILED}),
    S.PLANNING: frozenset({S.RUNNING, S.FAILED, S.NEEDS_REVIEW}),
    S.RUNNING: frozenset({S.VALIDATING, S.FAILED, S.NEEDS_REVIEW}),
    S.VALIDATING: frozenset({S.RUNNING, S.FIXING, S.COMPLETE, S.FAILED, S.NEEDS_REVIEW}),
    S.FIXING: frozenset({S.VALIDATING, S.FAILED, S.NEEDS_REVIEW}),
    **dict.fromkeys(END_STATES, frozenset[TaskState]()),
}

TERMINAL = frozenset(END_STATES)
"""States that are not left: `resume` of one that is not COMPLETE starts a new attempt."""

LOOPS = frozenset({(S.VALIDATING, S.RUNNING), (S.VALIDATING, S.FIXING)})
"""The moves that count as a loop."""


def end_of(state: object) -> EndState | None:
    """Return the end that a state or its name stands for; None for a state that is no end."""
    return next((end for name, end in END_STATES.items() if name == state), None)


REFUSED_COMPLETION = "completion-refused"
"""The code of the warning that a request for completion was refused."""
CANCELLED = "cancelled"
"""Why a run ended that a person ended on purpose."""


def only_by_name(reason: str | None) -> bool:
    """Whether a run that ended for this reason is taken further only where it is named."""
    return reason == CANCELLED


UNDONE = "undone"
"""The word for a run that has ended, and whose files a person put back."""


NOT_STARTED = "not started"
"""The word for a run that failed before anything was spent."""


def state_word(row: Mapping[str, Any]) -> str:
    """Return the state of a run in a word; whether it waits for the person matters most.

    `row` has `state`, `running`, `waiting`, `waiting_until`, `start_error` and `undone`. "waiting"
    continues by itself.
    """
    if row.get("waiting"):
        return "waiting for you"
    if end := end_of(row.get("state")):
        return UNDONE if row.get("undone") else end.word
    if not row.get("running", True):
        return NOT_STARTED if row.get("start_error") else "stopped"
    return "waiting" if row.get("waiting_until") else "running"


LEAST_WAIT_SEC = 5.0
"""Opening a sandbox takes about this long; shorter waits are not shown to people."""


class ForbiddenMove(AgentRunnerError):
    """A move between task states that MOVES does not allow."""


def move(current: TaskState, target: TaskState) -> TaskState:
    """Return `target` if MOVES allows it from `current`, or it is the same; else ForbiddenMove."""
    if target != current and target not in MOVES[current]:
        raise ForbiddenMove(f"a task cannot go from {current} to {target}")
    return target
