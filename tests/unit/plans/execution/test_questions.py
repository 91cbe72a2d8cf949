"""Questions about tasks: none is left behind, whatever came between two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentrunner.plans.execution.questions import TaskQuestions
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.plan import PlanTaskStatus
from tests.kit.plan_project import AT, PlanProject, Work

BLOCKED = PlanTaskStatus.BLOCKED


def test_a_question_that_its_round_was_never_told_of_is_closed_with_the_next(
    tmp_path: Path,
) -> None:
    plan = PlanProject.make(tmp_path, [Work(), Work()], {"a.txt": "one\n"})
    plan.folder.make()
    book, told = TaskRunStore(plan.folder), list[Any]()
    desk = TaskQuestions(plan.store, book, lambda: AT, told.append)
    book.save(TaskRun("TASK-0001", 1))
    first = desk.ask("TASK-0001", BLOCKED, "One?").question
    plan.store.ask("Asked, and killed before the round was kept.", AT, "TASK-0001")
    other = plan.store.ask("Of another one.", AT, "TASK-0002")
    again = desk.ask("TASK-0001", BLOCKED, "Two?").question
    assert again != first
    assert [q.id for q in waiting_questions(plan.store)] == [other, again]
    turn = book.latest("TASK-0001")
    assert turn is not None and turn.question == again
    desk.settle(turn, "settled")
    assert [q.id for q in waiting_questions(plan.store)] == [other]
