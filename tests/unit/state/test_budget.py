"""Limits of a run: when they are spent, what a person may grant, and what a policy lets be."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.state.budget import (
    FOR_CALL,
    FOR_WORKER,
    amount_of,
    left_of,
    limits_of,
    read_grants,
    spent_limit,
)
from agentrunner.state.run_state import Counters, TaskContext

SPENT = Counters(
    meta_calls=2, repeated_calls=1, worker_runs=2, wall_sec=60, meta_input_tokens=1,
    meta_output_tokens=2, worker_input_tokens=3, worker_output_tokens=4, usd=1.5,
)  # fmt: skip


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return load_task(TaskSource("goal", "Add."), environ={}, cwd=tmp_path)


def limited(task: TaskSpec, **limits: float | None) -> TaskSpec:
    budget = task.runner.budget.model_copy(update=limits)
    return task.model_copy(update={"runner": task.runner.model_copy(update={"budget": budget})})


@pytest.mark.parametrize(
    ("budget", "name"),
    [
        ({}, None),
        ({"meta_calls": 4}, None),
        ({"meta_calls": 3}, "meta_calls"),
        ({"tokens": 11}, None),
        ({"tokens": 10}, "tokens"),
        ({"wall_sec": 60.5}, None),
        ({"wall_sec": 60}, "wall_sec"),
        ({"wall_sec": 1, "meta_calls": 1}, "wall_sec"),
        ({"usd": 1.5}, "usd"),
        ({"usd": 1.51}, None),
        ({"worker_runs": 2}, None),
    ],
)
def test_a_limit_is_spent_when_it_is_reached(
    task: TaskSpec, budget: dict[str, float], name: str | None
) -> None:
    found = spent_limit(limited(task, **budget), {}, SPENT, FOR_CALL)
    assert found == (None if name is None else (name, budget[name]))


def test_worker_runs_limit_workers_and_calls_limit_calls(task: TaskSpec) -> None:
    both = limited(task, worker_runs=2, meta_calls=3)
    assert spent_limit(both, {}, SPENT, FOR_WORKER) == ("worker_runs", 2)
    assert spent_limit(both, {}, SPENT, FOR_CALL) == ("meta_calls", 3)


@pytest.mark.parametrize("name", ["meta_calls", "tokens", "wall_sec", "usd"])
def test_none_at_all_is_spent_from_the_start(task: TaskSpec, name: str) -> None:
    assert spent_limit(limited(task, **{name: 0}), {}, Counters(), FOR_CALL) == (name, 0)


def test_a_grant_raises_a_limit_and_sets_none(task: TaskSpec) -> None:
    raised = limits_of(limited(task, tokens=10, wall_sec=None), {"tokens": 5, "usd": 3})
    assert raised == {"tokens": 15}


def test_what_is_left_is_never_less_than_nothing(task: TaskSpec) -> None:
    state = TaskContext(counters=SPENT, grants={"tokens": 2})
    assert left_of(limited(task, tokens=10, usd=1, wall_sec=None), state) == {"tokens": 2, "usd": 0}


def test_a_policy_lets_a_limit_be_raised_so_far(task: TaskSpec) -> None:
    capped = limited(task, usd=5).model_copy(update={"budget_caps": {"usd": 8}})
    assert read_grants("usd=+3", capped, {}) == {"usd": 3}
    with pytest.raises(UsageError, match="the policy allows 8") as refused:
        read_grants("usd=+2", capped, {"usd": 2})
    assert refused.value.code == "policy-breach"
    assert limits_of(capped, {"usd": 100})["usd"] == 8


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("usd=+5", {"usd": 5}),
        ("+5", {"usd": 5}),
        (" +0.25 ", {"usd": 0.25}),
        ("usd=+5, tokens=+20000", {"usd": 5, "tokens": 20_000}),
        ("tokens=+20_000 usd=+1,usd=+1", {"usd": 2, "tokens": 20_000}),
    ],
)
def test_what_a_person_may_grant(task: TaskSpec, text: str, amounts: dict[str, float]) -> None:
    assert read_grants(text, limited(task, usd=1, tokens=1), {}, asked="usd") == amounts


@pytest.mark.parametrize(
    "text",
    [
        "", "yes", "5", "usd=5", "usd=-5", "usd=+", "usd=+0", "usd=+5x", "+1e9", "usd=+inf",
        "usd=+nan", "tokens=+0.5", "tokens=+99999999999999999999", "loops=+1", "wait_sec=+5",
        "meta_calls=+1", "usd=+5; rm -rf /", "usd = +5", "+5 stop", "+٥",
    ],
)  # fmt: skip
def test_everything_else_is_refused(task: TaskSpec, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_grants(text, limited(task, usd=1, tokens=1), {}, asked="usd")
    assert refused.value.exit_code == 2
    assert refused.value.remedy


def test_a_bare_amount_needs_a_question(task: TaskSpec) -> None:
    with pytest.raises(UsageError):
        read_grants("+5", limited(task, usd=1), {})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("tokens", 20_000.0, "20,000 tokens"),
        ("usd", 5, "5.00 US dollars"),
        ("usd", 0.0123, "0.0123 US dollars"),
        ("wall_sec", 3600.25, "3,600.2 s of work"),
        ("meta_calls", 1, "1 call"),
        ("meta_calls", 3, "3 calls"),
    ],
)
def test_figures_as_people_read_them(name: str, value: float, text: str) -> None:
    assert amount_of(name, value) == text


@pytest.mark.parametrize("grant", ["tokens=+5", "tokn=+5", "5"])
def test_a_wrong_grant_is_answered_with_the_limits_that_are_set(task: TaskSpec, grant: str) -> None:
    spec = limited(task, worker_runs=1, usd=None, tokens=None, meta_calls=None)
    with pytest.raises(UsageError) as raised:
        read_grants(grant, spec, {}, "worker_runs")
    assert "wall_sec, worker_runs" in raised.value.remedy
    assert "usd" not in raised.value.remedy
