"""What a person is asked in a run, what they answer, and what is kept of it."""

from __future__ import annotations

from typing import Literal

from agentrunner.state.lifecycle import TaskState
from agentrunner.state.state_model import FileRef, StateModel

QuestionKind = Literal[
    "ask_human",
    "plan",
    "worker",
    "complete",
    "tests_changed",
    "protected_path",
    "network",
    "worker_failed",
    "budget",
    "planner",
]


IN_WORDS: frozenset[QuestionKind] = frozenset({"ask_human", "budget", "planner"})
"""Kinds that are answered with a text; all others with yes or no."""


CHECK, CHECK_AFTER = "check", "check_after_work"
"""What a question of kind `planner` asks for that is about a check which cannot run: before the
first worker, and later, where what is there may be accepted."""


class Question(StateModel):
    """What a person is asked. `id` is the first 12 hex digits of the subject's sha256."""

    id: str
    kind: QuestionKind
    text: str
    options: list[str] = []
    subject: str
    """Canonical JSON of exactly what is approved or asked; what runs is the subject."""
    state: TaskState
    """The state kept while waiting."""


class PersonOrder(StateModel):
    """What a person decided in the planner's place; the next decision carries it out."""

    id: str
    """Of the question that it answers, with its place among the decisions."""
    action: Literal["run_worker", "mark_complete"]
    prompt: FileRef | None = None
    """Of `run_worker`: the person's words, in the run's folder."""
    by: str = ""


BY_PLAN = "(plan)"


class Answer(StateModel):
    """What a person said."""

    id: str
    kind: QuestionKind
    decision: Literal["answer", "approve", "reject"] = "answer"
    text: str = ""
    edit: str = ""
    """An edited subject, from `approve --edit`."""
    by: str = ""
    """Who, as far as it is known; `BY_PLAN` where the plan that the run is part of answered."""


class PersonDecision(StateModel):
    """One answer, approval, rejection, message or acceptance of a person, kept with the run."""

    id: str
    """One id is one decision: of an answer the question's with its place among the decisions, else
    "message-1", "accept-1", "grant-1"."""
    kind: QuestionKind | Literal["message", "acceptance"]
    asked: str = ""
    """What was asked, in one line."""
    decision: Literal["answer", "approve", "reject", "message", "accept"]
    text: str = ""
    """The person's words, cut where they are long; the run log has them whole."""
    characters: int = 0
    """Of the whole text, where it is cut."""
    at: str = ""
    """UTC, ISO 8601."""
    by: str = ""
    """Who, as far as it is known."""
    round: int = 0
    """Worker runs that had been made by then."""
    steers: bool = False
    """Whether it changes what is wanted, so that workers are shown it."""


class PersonLine(StateModel):
    """An older decision of a person, in one line."""

    line: str
    steers: bool = False


class People(StateModel):
    """What people decided in a run, oldest first; the run log has all of it in full."""

    recent: list[PersonDecision] = []
    """The last twenty."""
    older: list[PersonLine] = []
    """The hundred before them."""
    omitted: int = 0
    """How many before those are in the run log only."""
    grants: int = 0
    """Grants of `resume --budget` that are among them."""
