"""The states of a task and the moves between them, as data."""

from __future__ import annotations

from enum import StrEnum

from agentrunner.errors import AgentRunnerError


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

MOVES: dict[TaskState, frozenset[TaskState]] = {
    S.PENDING: frozenset({S.PLANNING, S.FAILED}),
    S.PLANNING: frozenset({S.RUNNING, S.FAILED, S.NEEDS_REVIEW}),
    S.RUNNING: frozenset({S.VALIDATING, S.FAILED, S.NEEDS_REVIEW}),
    S.VALIDATING: frozenset({S.RUNNING, S.FIXING, S.COMPLETE, S.FAILED, S.NEEDS_REVIEW}),
    S.FIXING: frozenset({S.VALIDATING, S.FAILED, S.NEEDS_REVIEW}),
    S.COMPLETE: frozenset(),
    S.FAILED: frozenset(),
    S.NEEDS_REVIEW: frozenset(),
}

TERMINAL = frozenset({S.COMPLETE, S.FAILED, S.NEEDS_REVIEW})
"""`resume` of FAILED and NEEDS_REVIEW starts a new attempt; it does not move this one."""

LOOPS = frozenset({(S.VALIDATING, S.RUNNING), (S.VALIDATING, S.FIXING)})
"""The moves that count as a loop."""


LEAST_WAIT_SEC = 5.0
"""Less than this is what opening a sandbox takes; people are not told of it as a wait."""


def rounds_of(loops: int, worker_runs: int) -> int:
    """Rounds of an attempt, as people count them: a worker's run and what was seen after it.

    Tries of one order are one round, and a request for completion that was refused is none.
    """
    return min(loops + 1, worker_runs)


class ForbiddenMove(AgentRunnerError):
    """A move between task states that the table does not allow."""


def move(current: TaskState, target: TaskState) -> TaskState:
    """`target`, if the table allows it from `current` (staying is no move); else ForbiddenMove."""
    if target != current and target not in MOVES[current]:
        raise ForbiddenMove(f"a task cannot go from {current} to {target}")
    return target
