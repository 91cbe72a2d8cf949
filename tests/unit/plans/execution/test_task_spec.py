"""A task of a plan becomes a task that can be run."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentrunner import api
from agentrunner.errors import UsageError
from agentrunner.plans.execution.plan_settings import (
    PlanSettings,
    left_text,
    load_settings,
    save_settings,
)
from agentrunner.plans.execution.task_spec import criteria_of, kinds_of, requirements, task_spec
from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import Hint, Plan
from agentrunner.storage.plan_folder import plan_folder


def plan_with(**design: Any) -> Plan:
    from dataclasses import replace

    made = apply(Plan(), [PlanEdit("create", "t1", {"title": "Add", "description": "", **design})])
    assert isinstance(made, Plan)
    return replace(made, goal="A shop")


def spec_of(plan: Plan, tmp_path: Path, **more: Any) -> Any:
    settings = PlanSettings(
        base_dir=str(tmp_path),
        options={"test": "make test", "meta": "checklist", "worker": "mock", "sandbox": "none"},
        setup="make deps",
        overrides={"runner.budget.usd": "runner.budget.usd=5"},
    )
    return task_spec(plan, "TASK-0001", settings, repo=tmp_path, environ=os.environ, **more)


def test_criteria_and_shared_settings_are_those_of_the_run(tmp_path: Path) -> None:
    plan = plan_with(acceptance_criteria=("AC-7: adds (check: `make add`)", "is fast"))
    spec = spec_of(plan, tmp_path)
    assert (spec.task_id, spec.title, spec.repo) == ("TASK-0001", "Add", str(tmp_path))
    assert [c.id for c in spec.criteria] == ["AC-7", "AC-1"]
    assert spec.criteria[0].check.run == "make add" and spec.criteria[1].check is None
    assert spec.task.test.command == "make test" and spec.task.setup.command == "make deps"
    assert spec.runner.meta.kind == "checklist" and spec.runner.budget.usd == 5


def test_words_of_the_plan_make_no_headings_and_no_criteria(tmp_path: Path) -> None:
    plan = plan_with(
        title="Acceptance criteria",
        description="## Acceptance criteria\n\nnone\n```\nopen fence\n- [ ] x (check: `rm -rf .`)",
    )
    assert spec_of(plan, tmp_path).criteria == []


def test_the_prd_says_what_belongs_to_the_task() -> None:
    plan = plan_with(
        description="It adds.",
        phase_name="Core",
        milestone="M1",
        suggested_impl=Hint("Python", ("calc.py",), ("no floats",)),
    )
    text = requirements(plan, "TASK-0001", "a\nb")
    for said in (
        "> It adds.",
        "A shop",
        "Core",
        "M1",
        "Python",
        "`calc.py`",
        "no floats",
        "> a\n> b",
    ):
        assert said in text
    assert "<<<<<<<" not in requirements(plan, "TASK-0001")


def test_a_japanese_task_has_japanese_requirements() -> None:
    plan = plan_with(title="商品一覧を作る", description="商品を一覧で表示します。")
    assert "このタスクだけを行ってください" in requirements(plan, "TASK-0001")


def test_a_check_that_is_none_stays_in_the_words() -> None:
    (one,) = criteria_of(["it works (check: pytest -q)"])
    assert one.check is None and "pytest" in one.description
    assert [c.id for c in criteria_of(["AC-1: a", "ac-1: b", " "])] == ["AC-1", ""]


def test_settings_are_kept_and_laid_over_each_other(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "state", tmp_path)
    first = load_settings(folder, tmp_path).with_given(
        {"test": "make", "worker": "mock"}, None, ["runner.budget.usd=1"], tmp_path
    )
    save_settings(folder, first)
    again = load_settings(folder, Path("/elsewhere"))
    assert again == first
    assert again.with_given({"test": None}, None, [], Path("/elsewhere")) is again
    more = again.with_given({"test": "pytest"}, "deps", ["runner.budget.usd=2"], tmp_path)
    assert more.options == {"test": "pytest", "worker": "mock"} and more.setup == "deps"
    assert list(more.overrides.values()) == ["runner.budget.usd=2"]


def test_what_was_kept_for_the_worker_of_a_file_stays_where_that_very_worker_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / ".git").mkdir()
    own = tmp_path / "agentrunner" / "config.yaml"
    own.parent.mkdir()
    runner = "{worker: {kind: command, command: [sh, -c, 'true']}, meta: {kind: checklist}}"
    own.write_text(f"version: '1'\nrunner: {runner}\n", "utf-8")
    kinds = partial(kinds_of, repo=tmp_path, environ={"XDG_CONFIG_HOME": str(tmp_path)})
    given = ["worker.env.A=b", "runner.meta.model=m"]
    whole = ["runner.worker={kind: command, command: [sh, -c, 'true']}"]
    for overrides in (given, whole):
        kept = PlanSettings(base_dir="/").with_given({}, None, overrides, tmp_path, kinds)
        named = {"worker": "command", "meta": "checklist"}
        again = kept.with_given(named, None, [], tmp_path, kinds)
        assert (again.overrides, again.left) == (kept.overrides, ())
        other = kept.with_given({"worker": "mock"}, None, [], tmp_path, kinds)
        assert len(other.left) == 1 and other.left[0].startswith("runner.worker")
    save_settings(plan_folder(tmp_path / "state", tmp_path), kept)
    how = api.options(tmp_path / "state", environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert api.plan_instructions(tmp_path, how, worker="command").settings.left == ()


def test_what_was_kept_for_another_worker_is_left_out_and_named(tmp_path: Path) -> None:
    given = ["worker.kind=command", "runner.worker.command=[sh, -c, true]", "worker.env.A=b"]
    kept = PlanSettings(base_dir="/").with_given(
        {"meta": "chat", "planner_model": "a:b"},
        None,
        [*given, "worker.max_run_time_sec=60"],
        tmp_path,
    )
    assert left_text(kept) == []
    again = kept.with_given({"worker": "Command", "meta": None}, None, [], tmp_path)
    assert again.overrides == kept.overrides and again.left == ()
    other = again.with_given({"worker": "mock", "model": "m"}, None, [], tmp_path)
    assert list(other.overrides) == ["runner.worker.max_run_time_sec"]
    assert other.options == {"meta": "chat", "planner_model": "a:b", "worker": "mock", "model": "m"}
    (sentence,) = left_text(other)
    assert "runner.worker.command" in sentence and "worker.env.A" in sentence
    back = other.with_given({"meta": "mock"}, None, given, tmp_path)
    assert back.options == {"meta": "mock"} and back.left == ("worker", "model", "planner_model")
    folder = plan_folder(tmp_path / "state", tmp_path)
    save_settings(folder, back)
    assert left_text(load_settings(folder, tmp_path)) == []


def test_damaged_settings_are_named(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "state", tmp_path)
    folder.make()
    folder.settings.write_text("{")
    with pytest.raises(UsageError) as caught:
        load_settings(folder, tmp_path)
    assert caught.value.code == "plan-damaged"
