"""What a kind is, its class says: also one that somebody adds."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from agentrunner.config.agents import PlannerSpec
from agentrunner.config.kinds import PlannerKind, planner_kind, sandbox_kind, worker_kind
from agentrunner.config.load import with_environment
from agentrunner.config.sandbox import SandboxSpec
from agentrunner.errors import UsageError
from agentrunner.registry import PLANNERS, SANDBOXES

ROOT = Path(__file__).parents[3]
EXTEND = ROOT / "docs" / "how-to" / "extend.md"


class Oracle:
    """A planner from outside."""

    calls_model = False
    is_program = True


def test_kinds_of_ours() -> None:
    kinds = {name: planner_kind(name) for name in PLANNERS.own}
    assert {n for n, k in kinds.items() if not k.calls_model} == {"checklist", "mock", "script"}
    assert {n for n, k in kinds.items() if not k.reads_prompts} == {"checklist", "mock"}
    assert {n for n, k in kinds.items() if k.is_chat_model} == {"openai-chat", "chat"}
    assert {n for n, k in kinds.items() if k.is_program} == {"codex-cli", "claude-code"}
    assert [kinds[n].url_variable for n in ("chat", "claude-code")] == ["", "ANTHROPIC_BASE_URL"]
    assert not worker_kind("command").needs_model and worker_kind("codex-cli").needs_model
    assert {name for name in SANDBOXES.own if sandbox_kind(name).has_image} == {"docker"}
    assert {name for name in SANDBOXES.own if not sandbox_kind(name).isolates} == {"none"}


class Open:
    """A sandbox from outside that keeps nothing from this machine."""

    isolates = False


def test_one_from_outside_is_asked_as_ours_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLANNERS.own, "oracle", f"{__name__}:Oracle")
    monkeypatch.setitem(SANDBOXES.own, "open", f"{__name__}:Open")
    assert planner_kind("oracle") == PlannerKind(calls_model=False, is_program=True)
    assert not SandboxSpec(kind="open").isolates


def test_a_planner_names_the_variables_of_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Oracle, "model_variables", ("DELPHI_MODEL", "OPENAI_MODEL"), raising=False)
    monkeypatch.setattr(Oracle, "default_model", "pythia", raising=False)
    monkeypatch.setitem(PLANNERS.own, "oracle", f"{__name__}:Oracle")
    oracle = PlannerSpec(kind="oracle")
    assert with_environment(oracle, {}).model == "pythia"
    both = {"OPENAI_MODEL": "gpt", "DELPHI_MODEL": "dodona"}
    assert with_environment(oracle, both).model == "dodona"
    assert with_environment(PlannerSpec(kind="oracle", model="own"), both).model == "own"
    assert with_environment(PlannerSpec(kind="auto"), both).model is None, "not chosen yet"
    assert with_environment(PlannerSpec(kind="checklist"), both).model is None


def test_what_is_not_chosen_yet_may_be_anything() -> None:
    usual = planner_kind("openai-chat")
    unknown = PlannerKind(url_variable="OPENAI_BASE_URL", model_variables=usual.model_variables)
    assert planner_kind("auto") == unknown
    assert worker_kind("auto").needs_model and sandbox_kind("auto").has_image
    with pytest.raises(UsageError, match="is not known"):
        planner_kind("nobody")


def test_whoever_writes_a_planner_reads_of_every_attribute() -> None:
    page = EXTEND.read_text("utf-8")
    assert [f.name for f in fields(PlannerKind) if f"| `{f.name}` |" not in page] == []
