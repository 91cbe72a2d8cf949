"""The summary that the meta-agent reads: complete, bounded, the same for the same state."""

from __future__ import annotations

import json
from pathlib import Path

from agentrunner.task.context import (
    Assessment,
    Baseline,
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    Finding,
    RunInfo,
    TaskContext,
    TestOutcome,
    WorkerRun,
)
from agentrunner.task.lifecycle import TaskState
from agentrunner.task.load import TaskSource, load_task
from agentrunner.task.spec import Check, TaskSpec
from agentrunner.task.summary import head, summarize, tail


def spec_in(folder: Path, prd: str = "Make it work") -> TaskSpec:
    return load_task(
        TaskSource("goal", prd),
        options={"test": "pytest -q", "worker": "mock", "max_loops": 3},
        overrides=["task.id=T-1", "task.title=Totals"],
        environ={},
        cwd=folder,
    )


def worker_run(number: int, session: str | None = None) -> WorkerRun:
    return WorkerRun(
        worker_run_id=f"w{number}",
        worker="mock",
        loop=number,
        outcome="completed",
        exit_code=0,
        summary="did it",
        changed_files=2,
        session_id=session,
    )


def busy_context() -> TaskContext:
    red = TestOutcome(
        command="pytest -q", exit_code=1, passed=4, failed=1, failing=["t::a"], tail="E assert"
    )
    return TaskContext(
        run=RunInfo(run_id="T-1-abcd", task_id="T-1", title="Totals", repo="/secret", max_loops=7),
        state=TaskState.FIXING,
        counters=Counters(loops=2, worker_runs=7),
        criteria=[
            Criterion(
                id="AC-1",
                description="rounds",
                check=Check(kind="command", run="pytest -k round"),
                status="passed",
                evidence="checked",
                proof="pytest -k round → 0, failed before",
            ),
            Criterion(id="AC-2", description="friendly", critical=False, origin="model"),
        ],
        baseline=Baseline(tree="t0", test=red),
        evidence=Evidence(
            tree="t1",
            test=red,
            restored_test=red,
            checks=[CheckOutcome(criterion_id="AC-1", what="pytest -k round", outcome="passed")],
            findings=[Finding(code="tests_changed", message="m", paths=["b", "a"])],
            proof=["AC-1"],
            changed_files=[f"f{n:03}" for n in range(150, 0, -1)],
            tests_added=1,
        ),
        assessment=Assessment(tree="t1", satisfied=False, summary="no", failed=["AC-2"]),
        remarks=["r1", "r2"],
        recent=[worker_run(n, "s-1" if n == 7 else None) for n in range(1, 8)],
        tail="x" * 10_000,
    )


def test_before_anything_ran(tmp_path: Path) -> None:
    view = summarize(TaskContext(), spec_in(tmp_path))
    assert view["task"] == {
        "id": "T-1",
        "title": "Totals",
        "prd_summary": "Make it work",
        "test_command": "pytest -q",
    }
    assert (view["state"], view["worker_runs_count"], view["max_loops"]) == ("PENDING", 0, 3)
    assert view["last_worker_result"] == {"exists": False}
    assert view["test_result"] == {"executed": False}
    assert view["evidence"] == {"exists": False}
    (worker,) = view["workers"]
    assert (worker["worker_type"], worker["kind"], worker["model"]) == ("mock", "mock", None)
    assert (worker["modes"], worker["session_available"]) == (["exec"], False)


def test_in_the_middle_of_a_run(tmp_path: Path) -> None:
    view = summarize(busy_context(), spec_in(tmp_path), patterns={"run_all_checks": object()})
    assert (view["state"], view["loops"], view["max_loops"]) == ("FIXING", 2, 7)
    first, second = view["acceptance_criteria"]
    assert first["check"] == "pytest -k round"
    assert (first["status"], first["passed"], first["evidence"]) == ("passed", True, "checked")
    assert (second["check"], second["passed"]) == ("nothing to execute", False)
    last = view["last_worker_result"]
    assert (last["exists"], last["worker_run_id"], last["exit_code"]) == (True, "w7", 0)
    assert len(last["stdout_tail"].encode()) == 4096
    assert [run["worker_run_id"] for run in view["recent_worker_runs"]] == [
        "w3",
        "w4",
        "w5",
        "w6",
        "w7",
    ]
    test = view["test_result"]
    assert (test["executed"], test["exit_code"], test["failing"]) == (True, 1, ["t::a"])
    assert view["evidence"]["red"]
    assert view["evidence"]["findings"][0]["paths"] == {"total": 2, "paths": ["a", "b"]}
    assert view["evidence"]["test_with_the_old_tests_restored"]["exit_code"] == 1
    assert view["changed_files"]["total"] == 150
    assert view["changed_files"]["paths"][:2] == ["f001", "f002"]
    assert len(view["changed_files"]["paths"]) == 100
    assert view["last_assessment"]["failed"] == ["AC-2"]
    assert view["workers"][0]["modes"] == ["exec", "resume"]
    assert (view["patterns"], view["notes"]) == (["run_all_checks"], ["r1", "r2"])


def test_only_the_last_run_s_session_can_be_resumed(tmp_path: Path) -> None:
    context = TaskContext(recent=[worker_run(1, "s-1"), worker_run(2)])
    assert summarize(context, spec_in(tmp_path))["workers"][0]["modes"] == ["exec"]


def test_the_same_state_gives_the_same_bytes_and_no_host_path(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    once, again = (json.dumps(summarize(busy_context(), spec)) for _ in range(2))
    assert once == again
    assert str(tmp_path) not in once
    assert "/secret" not in once


def test_a_long_prd_is_cut(tmp_path: Path) -> None:
    view = summarize(TaskContext(), spec_in(tmp_path, "界" * 3000))
    assert len(view["task"]["prd_summary"]) == 2000
    assert view["task"]["prd_summary"].endswith("界…")


def test_head_and_tail() -> None:
    assert (head("abc", 3), head("abcd", 3)) == ("abc", "ab…")
    assert (tail("abc", 3), tail("abcdefgh", 6)) == ("abc", "…fgh")
    assert tail("界" * 10, 9) == "…界界"
    assert len(tail("界" * 10, 10).encode()) <= 10
