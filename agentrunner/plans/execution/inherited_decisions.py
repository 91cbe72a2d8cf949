"""Passes what people decided to the runs of a plan's tasks.

An answer about the plan goes to every task that starts after it, a decision about a task from each
of its runs to the next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from agentrunner.engine import attempts
from agentrunner.engine.attempts import keep_decision
from agentrunner.errors import AgentRunnerError
from agentrunner.plans.execution.answers import answered_questions
from agentrunner.plans.execution.task_runs import TaskRun
from agentrunner.plans.store import PlanStore
from agentrunner.results import Result
from agentrunner.state.decisions import in_one_line, line_of, with_decision
from agentrunner.state.people import People, PersonDecision, Question
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.run_folder import RunFolder, load_spec, runs_root
from agentrunner.storage.run_log import RunLog


class SavedRun(Struct, frozen=True):
    """What is known of a run that has a folder."""

    state: TaskContext | None
    """None where it has done nothing yet."""
    question: Question | None = None
    """The question that it waits with."""
    result: Result | None = None


def answered_about_plan(store: PlanStore) -> list[PersonDecision]:
    """Return people's answers to questions about the whole plan, in the order of the questions."""
    return [
        PersonDecision(
            id=f"plan-question-{question.id}",
            kind="ask_human",
            asked=in_one_line(question.text),
            decision="answer",
            text=question.answer or "",
            at=question.answered_at,
            steers=True,
        )
        for question in answered_questions(store)
    ]


async def decided_before(
    state_dir: Path,
    rounds: Iterable[TaskRun],
    task_run: TaskRun,
    at: str,
    about_plan: Iterable[PersonDecision] = (),
) -> People | None:
    """Return what people decided in earlier runs of a task, about their work, and about the plan.

    `about_plan` comes from `answered_about_plan`; what an earlier run knows counts once. None where
    there is nothing, or where the runs are gone. `at` is now, in UTC.
    """
    earlier = [run for run in rounds if run.number < task_run.number and run.run_id]
    people: People | None = None
    if earlier:
        people = await _of_run(state_dir, max(earlier, key=lambda run: run.number).run_id)
    for answer in about_plan:
        if not _knows(people, answer):
            people = with_decision(people, answer)
    if not task_run.words:
        return people
    words = PersonDecision(
        id=f"round-{task_run.number}",
        kind="message",
        asked=in_one_line(task_run.words_for),
        decision="message",
        text=task_run.words,
        at=at,
        steers=True,
    )
    return with_decision(people, words)


def _knows(people: People | None, answer: PersonDecision) -> bool:
    if people is None:
        return False
    older = {one.line for one in people.older}
    return answer.id in {one.id for one in people.recent} or line_of(answer) in older


async def _of_run(state_dir: Path, run_id: str) -> People | None:
    """Return the decisions in the state of a run, and those made after its end."""
    with contextlib.suppress(AgentRunnerError, OSError):
        saved = await saved_run(state_dir, run_id)
        people = (saved.state or {}).get("people")
        logged = RunLog(RunFolder.open(state_dir, run_id).log_file).records("person")
        for record in logged:
            if record.key.startswith(ALLOWANCES):
                people = with_decision(people, PersonDecision.model_validate(record.data))
        return people
    return None


ALLOWANCES = "allowance-"
"""How the ids begin of what a person allowed after the run had ended."""


def keep_allowance(state_dir: Path, task_run: TaskRun, asked: str, at: str) -> None:
    """Record in an ended run that a person allowed what its work changes. Blocks."""
    folder = RunFolder(runs_root(state_dir) / task_run.run_id)
    decision = PersonDecision(
        id=f"{ALLOWANCES}{task_run.question}",
        kind="protected_path",
        asked=in_one_line(asked),
        decision="approve",
        at=at,
    )
    with contextlib.suppress(OSError):
        keep_decision(folder, 0, 0, decision)


def is_begun(state_dir: Path, run_id: str) -> bool:
    """Whether the run has a folder that can be continued; a run_id of "" is not started yet."""
    folder = RunFolder(runs_root(state_dir) / run_id)
    if not run_id or not folder.root.is_dir():
        return False
    if not folder.spec_file.exists():  # its process was killed before it wrote the task
        folder.remove()
        return False
    return True


async def saved_run(state_dir: Path, run_id: str) -> SavedRun:
    """Return the run as its last process left it."""
    folder = RunFolder.open(state_dir, run_id)
    if attempts.untouched(folder):
        return SavedRun(None)
    state, question = await attempts.read(folder)
    result = attempts.result_of(folder, load_spec(folder), state, question)
    return SavedRun(state, question, result)
