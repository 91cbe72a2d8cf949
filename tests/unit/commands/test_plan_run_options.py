"""Each option of `agentrunner plan run`: what it makes of the order, and that it is documented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agentrunner.cli import app, call
from agentrunner.commands import plan_run
from agentrunner.commands.console import Output
from agentrunner.commands.index import Index
from agentrunner.plans.execution.instructions import PlanInstructions

DOCS = Path(__file__).parents[3] / "docs" / "reference"
ROWS = [
    line.partition(" | ")[0]
    for line in (DOCS / "commands.md")
    .read_text("utf-8")
    .partition("## Carrying a plan out")[2]
    .partition("\n## ")[0]
    .splitlines()
]
Made = Callable[[PlanInstructions, Output], Any]
OPTIONS: dict[str, tuple[list[str], Made, Any]] = {
    "--parallel": (["7"], lambda order, output: order.parallel, 7),
    "--only": (["1,2"], lambda order, output: order.only, ("TASK-0001", "TASK-0002")),
    "--test": (["make t"], lambda order, output: order.settings.options.get("test"), "make t"),
    "--setup": (["make s"], lambda order, output: order.settings.setup, "make s"),
    "--planner": (["mock"], lambda order, output: order.settings.options.get("meta"), "mock"),
    "--worker": (
        ["command"],
        lambda order, output: order.settings.options.get("worker"),
        "command",
    ),
    "--planner-model": (
        ["gpt-5"],
        lambda order, output: order.settings.options.get("planner_model"),
        "gpt-5",
    ),
    "--model": (["m"], lambda order, output: order.settings.options.get("model"), "m"),
    "--sandbox": (["none"], lambda order, output: order.settings.options.get("sandbox"), "none"),
    "--budget": (
        ["usd=5"],
        lambda order, output: list(order.settings.overrides.values()),
        ["runner.budget.usd=5"],
    ),
    "--set": (
        ["runner.meta.max_loops=1"],
        lambda order, output: list(order.settings.overrides.values()),
        ["runner.meta.max_loops=1"],
    ),
    "--include-uncommitted": ([], lambda order, output: order.include_uncommitted, True),
    "--git-init": ([], lambda order, output: order.git_init, True),
    "--in-place": ([], lambda order, output: order.in_place, True),
    "--pr": ([], lambda order, output: order.wishes.request, True),
    "--onto": (["next"], lambda order, output: order.wishes.onto, "next"),
    "--squash": ([], lambda order, output: order.wishes.squash, True),
    "--author": (["A <a@b.c>"], lambda order, output: order.settings.author, "A <a@b.c>"),
    "--commit-message": (["{title}"], lambda order, output: order.settings.message, "{title}"),
    "--repo": (["../other"], lambda order, output: order.repo.name, "other"),
    "--policy": (["p.yaml"], lambda order, output: order.options.policy, Path("p.yaml")),
    "--json": ([], lambda order, output: output.json, True),
    "--events": (["e.jsonl"], lambda order, output: output.events, Path("e.jsonl")),
    "--detach": ([], lambda order, output: output.detach, True),
    "--notify": (["true"], lambda order, output: output.notify, "true"),
    "--no-input": ([], lambda order, output: output.no_input, True),
    "--quiet": ([], lambda order, output: output.quiet, True),
    "--log-format": (["json"], lambda order, output: output.log_format, "json"),
    "--log-level": (["debug"], lambda order, output: output.log_level, "debug"),
    "--state-dir": (["s"], lambda order, output: order.options.state_dir.name, "s"),
}
"""What follows the option, and a look at what it makes."""
ELSEWHERE = ("--dry-run", "--help")
"""They start nothing; the first has tests in test_plan_run_command.py."""


def names() -> list[str]:
    """The long names of all options, as `--help` has them."""
    group: Any = get_command(app)
    for word in ("plan", "run"):
        assert isinstance(group, Index)
        group = group.get_command(None, word)
    context = group.make_context("run", [], resilient_parsing=True)
    return [max(option.opts, key=len) for option in group.get_params(context)]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[PlanInstructions, Output]]:
    """The orders that were about to be carried out."""
    for name in ("shop", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
    orders: list[tuple[PlanInstructions, Output]] = []

    def look(order: PlanInstructions, output: Output) -> None:
        orders.append((order, output))

    monkeypatch.setattr(plan_run, "_checked", look)
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    return orders


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_part_of_the_order(
    name: str, made: list[tuple[PlanInstructions, Output]]
) -> None:
    words, found, expected = OPTIONS[name]
    assert call(app, ["plan", "run"], "agentrunner") == 0
    assert call(app, ["plan", "run", name, *words], "agentrunner") == 0
    before, after = (found(*order) for order in made)
    assert after == expected != before


def test_each_option_has_a_test_and_a_line_in_the_reference() -> None:
    known = names()
    assert len(known) > 20
    assert sorted(known) == sorted([*OPTIONS, *ELSEWHERE])
    missing = [name for name in known if not any(f"`{name}" in row for row in ROWS)]
    assert missing == ["--help"]
