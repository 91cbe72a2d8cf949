"""The summary that the planner reads: complete, bounded, the same for the same state."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.budget import BudgetSpec
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import Check, TaskSpec
from agentrunner.gateway.cassette import normalise
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import (
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
)
from agentrunner.state.summary import MEANING, NOTICED, REFUSED, summarize, tail
from agentrunner.state.worker_runs import CommandSeen, Outcome, WorkerRun
from agentrunner.text.cut import cut


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
                grade="proven",
                proof="pytest -k round → 0, failed before",
            ),
            Criterion(id="AC-2", description="friendly", critical=False, origin="model"),
        ],
        baseline=Baseline(tree="t0", test=red),
        evidence=Evidence(
            tree="t1",
            test=red,
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
    assert (first["grade"], second["grade"]) == ("proven", "none")
    assert (second["check"], second["passed"]) == ("nothing to execute", False)
    last = view["last_worker_result"]
    assert (last["exists"], last["worker_run_id"], last["exit_code"]) == (True, "w7", 0)
    assert len(last["stdout_tail"].encode()) == 4096
    assert last["stderr_tail"] == "", "a run that was begun before it was kept apart"
    spoken = busy_context()
    spoken["error_tail"] = "warning: é" * 900
    last = summarize(spoken, spec_in(tmp_path))["last_worker_result"]
    assert len(last["stderr_tail"].encode()) <= 4096 and last["stderr_tail"].endswith("é")
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


# -- who works, with what is left ----------------------------------------------------------------


def crew(folder: Path, **runner: Any) -> TaskSpec:
    spec = spec_in(folder)
    workers = [
        WorkerSpec(kind="codex-cli", model="m1", models=["m2"]),
        WorkerSpec(kind="claude-code", name="second"),
    ]
    return spec.with_runner(**{"workers": workers, "worker": workers[0], **runner})


def by(member: str, **more: Any) -> WorkerRun:
    return worker_run(1).model_copy(update={"worker": "x", "member": member, **more})


def test_the_candidates_with_models_and_sessions(tmp_path: Path) -> None:
    recent = [by("second", session_id="s-2"), by("codex-cli", session_id="s", session_lost=True)]
    first, second = summarize(TaskContext(recent=recent), crew(tmp_path))["workers"]
    assert (first["worker_type"], first["kind"]) == ("codex-cli", "codex-cli")
    assert (first["model"], first["further_models"]) == ("m1", ["m2"])
    assert (first["modes"], second["modes"]) == (["exec"], ["exec", "resume"])
    assert (second["worker_type"], second["kind"]) == ("second", "claude-code")


def test_only_candidates_that_can_work_here(tmp_path: Path) -> None:
    view = summarize(TaskContext(), crew(tmp_path), workers=["second"])
    assert [one["worker_type"] for one in view["workers"]] == ["second"]


@pytest.mark.parametrize(
    ("ended_at", "told"),
    [
        ("", "2026-03-01T10:00:00Z"),
        ("2026-03-01T09:59:59.999Z", "2026-03-01T10:00:00Z"),
        ("2026-03-01T10:00:00.001Z", None),
    ],
)
def test_a_candidate_is_left_alone_until_its_time_is_over(
    tmp_path: Path, ended_at: str, told: str | None
) -> None:
    context = TaskContext(
        cooling={"worker:second": "2026-03-01T10:00:00Z", "meta:codex-cli": "2099-01-01T00:00:00Z"},
        recent=[by("codex-cli", ended_at=ended_at)],
    )
    first, second = summarize(context, crew(tmp_path))["workers"]
    assert (first["left_alone_until"], second["left_alone_until"]) == (None, told)


def test_what_is_left_of_the_budget_with_what_people_granted(tmp_path: Path) -> None:
    budget = BudgetSpec(wall_sec=600, worker_runs=2, tokens=1_000, usd=1)
    context = TaskContext(
        counters=Counters(
            wall_sec=61, worker_runs=5, meta_input_tokens=900, worker_output_tokens=50, usd=1.25
        ),
        grants={"usd": 2, "tokens": 100},
    )
    view = summarize(context, crew(tmp_path, budget=budget))
    assert view["budget_left"] == {
        "wall_sec": "540.0 s", "meta_calls": None, "worker_runs": 0, "tokens": 150, "usd": 1.75,
    }  # fmt: skip


def test_what_is_left_of_the_time_is_the_same_for_a_replay() -> None:
    told = [normalise(json.dumps(f"{left}.0 s").encode()).asked for left in (540, 1_260)]
    assert told == ["<duration>", "<duration>"]


def test_what_a_run_did_and_how_it_ended(tmp_path: Path) -> None:
    run = by(
        "second",
        outcome="no_op",
        diff_stat="1 file changed, +1 -0",
        changes=["a.py +1 -0"],
        commands=[CommandSeen(command="pytest -q", exit_code=1)],
    )
    view = summarize(TaskContext(recent=[run]), crew(tmp_path))
    (told,) = view["recent_worker_runs"]
    assert (told["worker"], told["outcome"]) == ("second", "no_op")
    assert told["meaning"] == "it changed no file and ran no command"
    assert (told["diff_stat"], told["changes"]) == ("1 file changed, +1 -0", ["a.py +1 -0"])
    assert told["commands"] == [{"command": "pytest -q", "exit_code": 1}]
    assert view["last_worker_result"]["outcome"] == "no_op"


def test_every_outcome_is_explained() -> None:
    assert set(MEANING) == set(get_args(Outcome))


def test_what_was_refused_last(tmp_path: Path) -> None:
    context = TaskContext(
        remarks=[REFUSED + "red", NOTICED + "again", REFUSED + "unproven"],
        refused_hosts=["evil.example:443"],
    )
    refused = summarize(context, crew(tmp_path))["refused"]
    assert refused == {"completion": REFUSED + "unproven", "hosts": ["evil.example:443"]}


def test_places_are_told_as_seen_from_the_repository(tmp_path: Path) -> None:
    spec = crew(tmp_path).model_copy(update={"repo": "/home/hana/shop"})
    command = CommandSeen(command="cd /home/hana/shop && ls /home/hana/shop/src /home/hana/shop2")
    tail_ = "rootdir: /home/hana/shop\n/home/hana/shop/a.py:3: error"
    context = TaskContext(recent=[by("second", commands=[command])], tail=tail_)
    view = summarize(context, spec)
    (told,) = view["recent_worker_runs"]
    assert told["commands"][0]["command"] == "cd . && ls src /home/hana/shop2"
    assert view["last_worker_result"]["stdout_tail"] == "rootdir: .\na.py:3: error"


TEXT = st.text(max_size=300)
RUNS = st.builds(
    WorkerRun,
    worker_run_id=TEXT,
    worker=TEXT,
    member=st.sampled_from(["codex-cli", "second", "gone"]),
    loop=st.integers(0, 9),
    outcome=st.sampled_from(get_args(Outcome)),
    exit_code=st.none() | st.integers(0, 255),
    summary=TEXT,
    error=TEXT,
    changes=st.lists(TEXT, max_size=20),
    session_id=st.none() | TEXT,
    commands=st.lists(
        st.builds(CommandSeen, command=st.text(max_size=200), exit_code=st.integers(0, 255)),
        max_size=10,
    ),
)
TESTS = st.builds(
    TestOutcome,
    command=TEXT,
    exit_code=st.integers(0, 255),
    failing=st.lists(TEXT, max_size=50),
    tail=st.text(max_size=6_000),
)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "counters": st.builds(Counters, worker_runs=st.integers(0, 9), wall_sec=st.floats(0, 1e6)),
        "recent": st.lists(RUNS, max_size=8),
        "evidence": st.builds(
            Evidence, tree=TEXT, test=st.none() | TESTS, changed_files=st.lists(TEXT, max_size=200)
        ),
        "tail": st.text(max_size=10_000),
        "remarks": st.lists(TEXT, max_size=5),
        "cooling": st.dictionaries(st.just("worker:second"), st.just("2026-03-01T10:00:00Z")),
        "grants": st.dictionaries(st.sampled_from(["usd", "tokens"]), st.floats(0, 1e3)),
    },
)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> TaskSpec:
    return crew(tmp_path_factory.mktemp("crew"))


@given(state=STATES)
def test_any_state_gives_the_same_bytes_each_time_and_not_too_many(
    spec: TaskSpec, state: TaskContext
) -> None:
    text = json.dumps(summarize(state, spec), ensure_ascii=False)
    copy = cast("TaskContext", dict(reversed(list(deepcopy(state).items()))))
    assert json.dumps(summarize(copy, spec), ensure_ascii=False) == text
    assert len(text) < 400_000


def test_a_long_prd_is_cut(tmp_path: Path) -> None:
    view = summarize(TaskContext(), spec_in(tmp_path, "界" * 3000))
    assert len(view["task"]["prd_summary"]) == 2000
    assert view["task"]["prd_summary"].endswith("界…")


def test_head_and_tail() -> None:
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")
    assert (tail("abc", 3), tail("abcdefgh", 6)) == ("abc", "…fgh")
    assert tail("界" * 10, 9) == "…界界"
    assert len(tail("界" * 10, 10).encode()) <= 10
