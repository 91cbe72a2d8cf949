"""How a plan stands, in as many lines as there are."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.errors import LockHeld
from agentrunner.plans.execution.status import PlanStatus, TaskStatus
from agentrunner.plans.execution.task_runner import held_by
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.plans.store import OpenQuestion
from agentrunner.results import PlanResult
from agentrunner.screens.plan_status import status_screen
from agentrunner.screens.plan_tree import question_lines
from agentrunner.storage.locks import UNKNOWN, FileLock, me
from agentrunner.text.terminal import cell_width
from tests.kit.plan_project import Work, plan_of

S = PlanTaskStatus
STATUSES = [*[S.COMPLETE] * 20, S.RUNNING, S.FAILED, *[S.BLOCKED] * 10]


def look_at(statuses: list[PlanTaskStatus]) -> PlanStatus:
    works = [Work(needs=[22] if status == S.BLOCKED else []) for status in statuses]
    plan = plan_of(works)
    tasks = {
        task_id: TaskStatus(status, detail="no proof" if status == S.FAILED else "")
        for task_id, status in zip(plan.task_order(), statuses, strict=True)
    }
    asked = [OpenQuestion(1, "", "FAILED: no proof", "TASK-0022")]
    branch = "agentrunner/a-name-that-is-longer-than-what-is-left-of-a-line-of-eighty-cells"
    return PlanStatus(plan, tasks, asked, driven=True, branch=branch)


@pytest.mark.parametrize(
    ("height", "shown", "left_out"),
    [
        (0, 32, None),
        (60, 32, None),
        (30, 12, "… 20 complete"),
        (10, 2, "… 20 complete, 10 behind others"),
    ],
)
def test_what_goes_on_and_what_is_asked_stays_where_there_is_little_room(
    height: int, shown: int, left_out: str | None
) -> None:
    lines = status_screen(look_at(STATUSES), width=80, height=height).split("\n")
    assert sum("TASK-" in line and "Task " in line for line in lines) == shown
    assert (left_out in lines) == (left_out is not None)
    assert any("TASK-0022" in line and "failed" in line for line in lines)
    assert max(map(cell_width, lines)) <= 80


def test_what_a_task_waits_for_is_told_with_what_ends_it(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "run.lock", "run TASK-0001-1a2b", run_id="TASK-0001-1a2b")
    lock.acquire(me("TASK-0001-1a2b", "2026-11-21T05:00:00Z"))
    with pytest.raises(LockHeld) as raised:
        FileLock(lock.path, lock.what, run_id=lock.run_id).acquire(UNKNOWN)
    lock.close()
    look = look_at([S.RETRY_WAIT])
    held = held_by(raised.value)
    waits = TaskStatus(S.RETRY_WAIT, detail=held, retry_at="2026-11-21T05:10:00Z")
    screen = status_screen(replace(look, tasks=dict.fromkeys(look.tasks, waits)), width=80)
    shown = " ".join(screen.split())
    assert f"process {os.getpid()} on" in shown
    assert "agentrunner watch TASK-0001-1a2b, or agentrunner cancel TASK-0001-1a2b" in shown


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"branch": "a/b c"}, "\n  git merge 'a/b c'   takes it over"),
        ({"branch": "a", "onto": "next"}, "\n  It is part of next."),
        ({"branch": "a", "request": "https://x.example/1"}, "\n  Request: https://x.example/1"),
        ({"branch": None}, "complete"),
        ({"branch": "a", "exit_code": 5}, "agentrunner plan run brings it there"),
    ],
)
def test_where_the_work_is_comes_last_once_all_is_done(where: dict[str, object], told: str) -> None:
    result = PlanResult.model_validate({"exit_code": 0, **where})
    look = replace(look_at([S.COMPLETE]), questions=[], driven=False)
    assert status_screen(look, width=80, result=result).endswith(told)
    look = replace(look_at([S.COMPLETE, S.FAILED]), questions=[], driven=False)
    assert "git merge" not in status_screen(look, width=80, result=result)


def test_who_is_behind_another_task_says_so_and_titles_have_what_is_left() -> None:
    screen = status_screen(look_at(STATUSES), width=80)
    assert "behind TASK-0022" in screen
    assert "then continues" not in screen, "it is at work"


def test_the_live_tree_says_who_is_at_work_and_on_what() -> None:
    doing = {"TASK-0021": "planner: thinking, 12 s", "TASK-0022": "not at work"}
    screen = status_screen(look_at(STATUSES), width=44, doing=doing)
    lines = screen.split("\n")
    place = next(index for index, line in enumerate(lines) if "TASK-0021" in line)
    assert lines[place + 1].strip() == "planner: thinking, 12 s"
    assert "not at work" not in screen and "status -f" not in screen
    assert max(map(cell_width, lines)) <= 44
    assert "status -f" in status_screen(look_at(STATUSES), width=80)


@pytest.mark.parametrize("width", [88, 80, 44])
def test_how_a_task_stands_is_never_cut(width: int) -> None:
    look = look_at(STATUSES)
    task_id, task = next(iter(look.tasks.items()))
    work = replace(task, status=S.VALIDATING, rounds=1, rounds_at_most=6, seconds=31.0)
    look = replace(look, tasks={**look.tasks, task_id: work})
    screen = status_screen(look, width=width)
    row = next(line for line in screen.split("\n") if "running  round 1/6" in line)
    assert "…" not in row[row.index("running") :]
    assert max(map(cell_width, screen.split("\n"))) <= width


@pytest.mark.parametrize("width", [44, 80])
def test_a_command_at_the_end_of_a_question_can_be_copied(width: int) -> None:
    command = 'agentrunner accept TASK-0001-0ry3 --unchanged --reason "..."'
    text = f"What should the next attempt know? Or, if it is good as it is: `{command}`"
    asked = [OpenQuestion(1, "", text, "TASK-0001")]
    screen = status_screen(replace(look_at([S.FAILED]), questions=asked), width=width)
    for shown in (screen, "\n".join(question_lines(asked, width, chat=False))):
        assert max(map(cell_width, shown.split("\n"))) <= width
        assert command in shown.replace(" \\\n    ", " ")
        assert "agentrunner plan answer N TEXT" in "\n".join(
            question_lines(asked, width, chat=False)
        )


def test_why_a_task_waits_is_shown_once() -> None:
    """A question says why its task cannot start; what this terminal asked is only named."""
    why = "It cannot run: no agent."
    blocked = TaskStatus(S.BLOCKED, detail=why)
    asked = [OpenQuestion(4, "", f"{why}\ntry: install one", "TASK-0001")]
    found = replace(look_at([S.PENDING]), tasks={"TASK-0001": blocked}, questions=asked)
    screen = status_screen(found, width=80)
    assert screen.count(why) == 1 and "try: install one" in screen
    again = status_screen(found, width=80, asked={4})
    assert again.count(why) == 1 and "try: install one" not in again
