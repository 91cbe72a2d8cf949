"""Limits that cannot be held while a worker runs: said at the start, and refused where asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands.options import budget_override
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.resolve import check_enforced, not_held
from agentrunner.errors import UsageError
from agentrunner.gateway.prices import load_prices
from agentrunner.workers.member import make_members

CODEX = {"kind": "codex-cli", "model": "gpt-5.1"}
SHELL = {"kind": "command", "command": "true"}


def task(place: Path, worker: dict[str, Any], *settings: str) -> TaskSpec:
    overrides = [f"runner.worker.{key}={value}" for key, value in worker.items()]
    given = ["runner.meta.kind=checklist", "runner.sandbox.kind=bwrap", *overrides, *settings]
    options = {"test": "true"}
    source = TaskSource("goal", "Add.")
    return load_task(source, overrides=given, options=options, environ=os.environ, cwd=place)


def open_limits(spec: TaskSpec) -> list[tuple[str, str]]:
    return not_held(spec, make_members(spec), os.environ, load_prices())


def unheld(spec: TaskSpec) -> list[str]:
    return [name for name, _ in open_limits(spec)]


BOTH = ("runner.budget.tokens=1000", "runner.budget.usd=1")


@pytest.mark.parametrize(
    ("worker", "settings", "names"),
    [
        (CODEX, (), []),
        (CODEX, BOTH, []),
        (CODEX, (*BOTH, "runner.sandbox.kind=none"), ["tokens", "usd"]),
        (CODEX, (*BOTH, "runner.worker.auth=login"), ["usd"]),
        (CODEX, (*BOTH, "runner.worker.auth=login", "runner.sandbox.kind=none"), ["usd", "tokens"]),
        ({**CODEX, "model": "local-model"}, BOTH, ["usd"]),
        ({"kind": "codex-cli"}, BOTH, ["usd"]),
        (SHELL, BOTH, []),
        (SHELL, (*BOTH, "runner.sandbox.kind=none"), ["tokens", "usd"]),
        (SHELL, ("runner.budget.meta_calls=9", "runner.sandbox.kind=none"), []),
    ],
)
def test_what_nothing_can_stop(
    tmp_path: Path, worker: dict[str, Any], settings: tuple[str, ...], names: list[str]
) -> None:
    assert unheld(task(tmp_path, worker, *settings)) == names


def test_the_price_of_the_planner_counts_too(tmp_path: Path) -> None:
    planner = ("runner.meta.kind=openai-chat", "runner.meta.model=own")
    spec = task(tmp_path, CODEX, *BOTH, *planner)
    ((name, why),) = open_limits(spec)
    assert name == "usd"
    assert "own, for the planner, is not known" in why


def test_a_hard_limit_is_refused_where_it_cannot_be_held(tmp_path: Path) -> None:
    open_ = (*BOTH, "runner.sandbox.kind=none")
    soft = task(tmp_path, CODEX, *open_)
    check_enforced(soft, open_limits(soft))
    hard = task(tmp_path, CODEX, *open_, "runner.budget.enforce=hard")
    with pytest.raises(UsageError, match="pass no gateway") as refused:
        check_enforced(hard, open_limits(hard))
    assert (refused.value.exit_code, refused.value.code) == (2, "budget-not-held")
    held = task(tmp_path, CODEX, *BOTH, "runner.budget.enforce=hard")
    check_enforced(held, open_limits(held))


def test_the_option_sets_a_limit(tmp_path: Path) -> None:
    spec = task(tmp_path, SHELL, budget_override("usd=5"), budget_override("worker_runs=3"))
    assert (spec.runner.budget.usd, spec.runner.budget.worker_runs) == (5, 3)


@pytest.mark.parametrize(
    "text",
    ["usd", "usd=+5", "loops=3", "on_spent=fail", "=5", "x.y=1", "usd=lots", "usd=-1", "usd="],
)
def test_the_option_sets_nothing_else(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        budget_override(text)
    assert (refused.value.exit_code, refused.value.code) == (2, "bad-option")
