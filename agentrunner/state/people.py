"""Questions to a person in a run, their answers, and what is kept of them."""

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
    "tests_could_not_run",
]


IN_WORDS: frozenset[QuestionKind] = frozenset({"ask_human", "budget", "planner"})
"""Kinds that are answered with a text; all others with yes or no."""
EDITABLE: frozenset[QuestionKind] = frozenset({"plan", "worker"})
"""Kinds whose subject a person may edit instead: the plan, or the prompt of a worker."""


CHECK, CHECK_AFTER = "check", "check_after_work"
"""What a question of kind `planner` asks for if it is about a check that cannot run: before the
first worker, and later, when the present work may be accepted."""


class Question(StateModel):
    """A question to a person. `id` is the first 12 hex digits of the subject's sha256."""

    id: str
    kind: QuestionKind
    text: str
    options: list[str] = []
    subject: str
    """Canonical JSON of exactly what is approved or asked; what is executed is the subject."""
    state: TaskState
    """The state in which the run waits."""


def option_meant(question: Question, text: str) -> str:
    """Return the option that a number stands for, and any other answer as it is.

    Raises ValueError for a number that no option has, unless the options are about numbers.
    """
    number, options = text.strip(), question.options
    if question.kind not in IN_WORDS or not options or not number.isdecimal():
        return text
    if 1 <= int(number) <= len(options):
        return options[int(number) - 1]
    if question.kind != "ask_human" or any(char.isdecimal() for char in "".join(options)):
        return text
    raise ValueError(f"The options are 1 to {len(options)}; {number} is none of them.")


class PersonOrder(StateModel):
    """What a person decided in the planner's place; the next decision executes it."""

    id: str
    """The id of the question that it answers, with a number."""
    action: Literal["run_worker", "mark_complete"]
    prompt: FileRef | None = None
    """For `run_worker`: the person's text, in the run's folder."""
    by: str = ""


BY_PLAN = "(plan)"


class Answer(StateModel):
    """A person's answer."""

    id: str
    kind: QuestionKind
    decision: Literal["answer", "approve", "reject"] = "answer"
    text: str = ""
    edit: str = ""
    """An edited subject: a plan as JSON, or a worker's prompt."""
    by: str = ""
    """Who, if known; `BY_PLAN` where the plan that the run is part of answered."""


class PersonDecision(StateModel):
    """One answer, approval, rejection, message or acceptance of a person, kept with the run."""

    id: str
    """Unique per decision: for an answer the question's id with a number, else "message-1",
    "accept-1", "grant-1"."""
    kind: QuestionKind | Literal["message", "acceptance"]
    asked: str = ""
    """The question, in one line."""
    decision: Literal["answer", "approve", "reject", "message", "accept"]
    text: str = ""
    """The person's words, cut where they are long; the run log has them whole."""
    characters: int = 0
    """Length of the whole text, where it is cut."""
    at: str = ""
    """UTC, ISO 8601."""
    by: str = ""
    """Who, if known."""
    round: int = 0
    """The latest one that had ended by then; 0 before the first."""
    steers: bool = False
    """Whether it changes what is wanted, so that workers see it."""


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
    """How many earlier ones are only in the run log."""
    grants: int = 0
    """How many of them are grants of `resume --budget`."""
