"""The result object of every kind of end."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.execution.result import build_result
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Question
from agentrunner.state.run_state import Counters, Evidence, RunInfo, TaskContext, Verdict


@pytest.fixture
def spec(tmp_path: Path) -> TaskSpec:
    return load_task(TaskSource("goal", "Do it."), environ={}, cwd=tmp_path)


def context(state: TaskState, verdict: Verdict | None = None) -> TaskContext:
    run = RunInfo(run_id="probe-0000", task_id="probe", title="Do it.", repo="/r")
    return TaskContext(run=run, state=state, counters=Counters(), verdict=verdict)


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (TaskState.COMPLETE, 0),
        (TaskState.FAILED, 1),
        (TaskState.NEEDS_REVIEW, 3),
        (TaskState.PLANNING, 5),
        (TaskState.VALIDATING, 5),
    ],
)
def test_each_end_has_its_exit_code(spec: TaskSpec, state: TaskState, code: int) -> None:
    assert build_result(context(state), spec).as_dict()["exit_code"] == code


def test_waiting_is_4_and_keeps_the_state(spec: TaskSpec) -> None:
    question = Question(
        id="0" * 12, kind="complete", text="?", subject="{}", state=TaskState.VALIDATING
    )
    result = build_result(context(TaskState.VALIDATING), spec, waiting=question).as_dict()
    assert (result["state"], result["exit_code"]) == ("VALIDATING", 4)
    assert result["waiting"] == {
        "id": "0" * 12, "kind": "complete", "text": "?", "options": [], "subject": "{}",
    }  # fmt: skip


def test_a_verdict_is_told_when_it_is_reached_only(spec: TaskSpec) -> None:
    verdict = Verdict(state="FAILED", reason="aborted", text="Gave up.", missing=["All."])
    on_the_way = build_result(context(TaskState.RUNNING, verdict), spec).as_dict()
    assert (on_the_way["text"], on_the_way["missing"]) == (None, [])
    ended = build_result(context(TaskState.FAILED, verdict), spec).as_dict()
    assert (ended["reason"], ended["text"], ended["missing"]) == ("aborted", "Gave up.", ["All."])


def test_a_signal_is_the_reason_whatever_else_there_is(spec: TaskSpec) -> None:
    state = context(TaskState.RUNNING)
    result = build_result(state, spec, reason="interrupted", exit_code=130).as_dict()
    assert (result["reason"], result["exit_code"]) == ("interrupted", 130)


def test_what_is_unknown_is_there_and_empty(spec: TaskSpec) -> None:
    bare = build_result(context(TaskState.PENDING), spec).as_dict()
    full = context(TaskState.COMPLETE)
    full["evidence"] = Evidence(tree="t", proof=["p"], changed_files=["a"])
    assert set(bare) == set(build_result(full, spec).as_dict())
    for name in ("test", "error", "waiting", "note", "reason", "tree"):
        assert bare[name] is None
    for name in ("missing", "proof", "findings", "changed_files", "acceptance_criteria"):
        assert bare[name] == []
    assert bare["usage"]["usd"] is None


@pytest.mark.parametrize(
    ("latest", "waited"),
    [("", None), ("2026-11-21T05:30:00.000Z", 1500.0), ("2026-11-21T05:01:00.000Z", 0.0)],
)
def test_what_was_no_work_was_waited(spec: TaskSpec, latest: str, waited: float | None) -> None:
    state = context(TaskState.COMPLETE)
    state["run"] = state["run"].model_copy(update={"started_at": "2026-11-21T05:00:00.000Z"})
    state["counters"] = Counters(wall_sec=300)
    result = build_result(state, spec, latest_at=latest).as_dict()
    assert (result["duration_sec"], result["waited_sec"]) == (300, waited)
