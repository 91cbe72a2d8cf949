"""What is said of a plan under way is what is going to happen, and what has."""

from __future__ import annotations

import pytest

from agentrunner.screens.plan_events import event_line


@pytest.mark.parametrize(
    ("done", "waiting", "behind", "line"),
    [
        (0, 0, 0, "4 tasks to carry out."),
        (4, 0, 0, "4 tasks: 4 complete."),
        (0, 4, 0, "4 tasks: 4 wait for your answer."),
        (1, 1, 2, "4 tasks: 1 complete, 1 waits for your answer, 2 behind it."),
        (0, 2, 1, "4 tasks: 1 to carry out, 2 wait for your answer, 1 behind them."),
    ],
)
def test_the_start_says_what_is_going_to_happen(
    done: int, waiting: int, behind: int, line: str
) -> None:
    tasks = [f"TASK-{number:04}" for number in range(1, 5)]
    parts = {
        "done": tasks[:done],
        "waiting": tasks[done : done + waiting],
        "behind": tasks[done + waiting : done + waiting + behind],
    }
    event = {"event": "plan_started", "tasks": tasks, "notices": [], **parts}
    assert event_line(event) == line


def test_work_in_the_folder_itself_is_part_of_no_branch() -> None:
    event = {"event": "plan_landed", "task_id": "TASK-0001", "commit": ""}
    assert event_line(event) == "TASK-0001 is done, in the folder itself."
    assert "branch" in event_line({**event, "commit": "f" * 40})


def test_how_a_task_ended_and_what_it_asks_is_said_once() -> None:
    asks = {"event": "plan_question", "task_id": "TASK-0001", "question": 2}
    ended = {**asks, "text": "FAILED: no", "status": "FAILED"}
    assert event_line(ended) == "TASK-0001 waits for you: agentrunner plan answer 2 TEXT"
    assert event_line(ended, chat=True) == "TASK-0001 waits for you: /answer 2 TEXT"
    asked = event_line({**asks, "text": "FAILED: why?\n1. a", "status": "BLOCKED"})
    assert asked == "TASK-0001 asks: FAILED: why?  (agentrunner plan answer 2 TEXT)"
    blocked = {"event": "plan_task", "task_id": "TASK-0001", "status": "BLOCKED"}
    assert event_line({**blocked, "detail": "FAILED: why?"}, before=asked) == ""
    whole = event_line({**asks, "text": "FAILED: why?\n1. a", "status": "BLOCKED"}, chat=True)
    assert whole == "TASK-0001 asks: FAILED: why? 1. a  (/answer 2 TEXT)"
    landed = {"event": "plan_task", "task_id": "TASK-0001", "status": "COMPLETE", "detail": ""}
    assert event_line(landed) == "", "that it has landed says it"
    fixing = {"task_id": "TASK-0001", "evidence": "Both changed a.txt.\n\na.txt:\n..."}
    assert event_line({**fixing, "event": "plan_task", "status": "FIXING", "detail": "B"}) == ""
    line = event_line({**fixing, "event": "plan_fixing"})
    assert line == "TASK-0001 goes into another round: Both changed a.txt."


def test_what_a_run_warns_of_and_waits_for_has_its_name() -> None:
    run = {"run_id": "TASK-0001-a1b2", "event": "warning", "message": "a key is short"}
    assert event_line(run) == "Warning, TASK-0001-a1b2: a key is short"
    until = {"until": "2026-01-01T00:00:00+00:00", "reason": "quota"}
    line = event_line({"run_id": "TASK-0001-a1b2", "event": "waiting", **until})
    assert line.startswith("TASK-0001-a1b2 waits until ") and line.endswith(": quota")


def test_states_have_the_words_of_runs_and_are_said_once() -> None:
    event = {"event": "plan_task", "task_id": "TASK-0001", "status": "PLANNING", "detail": ""}
    said = [event_line(event)]
    for status in ("RUNNING", "VALIDATING", "BLOCKED", "RETRY_WAIT", "NEEDS_REVIEW"):
        line = event_line({**event, "status": status}, before=said[-1])
        said += [line] if line else []
    words = ["running", "waiting for you", "waiting", "needs review"]
    assert said == [f"TASK-0001 {word}" for word in words]
