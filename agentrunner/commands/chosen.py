"""Who plans and who works where a task names nobody: for `doctor` and `init`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.errors import InfraError, UsageError
from agentrunner.screens.doctor import DoctorItem

if TYPE_CHECKING:
    from agentrunner.config.agents import PlannerSpec
    from agentrunner.config.spec import RunnerSection
    from agentrunner.discovery.agents import Choice
    from agentrunner.policy.policy_file import Policy

PEOPLE = {"meta": "planner", "worker": "worker"}
"""Sections of a task file, as people call who is in them."""


def chosen(
    repo: Path, environ: Mapping[str, str], state_dir: Path, provable: bool, policy: Path | None
) -> list[DoctorItem]:
    """Who plans and who works where the task does not say, by settings, policies and machine."""
    from agentrunner.config.agents import AUTO
    from agentrunner.config.load import load_settings
    from agentrunner.discovery.agents import by_policies, choose_planner, choose_worker, look
    from agentrunner.policy.load import load_policies

    try:
        runner, places = load_settings(repo, environ, auto=True)
        policies = load_policies(policy, environ, repo)
    except UsageError as error:
        return [DoctorItem("FAIL", "settings", error.message, error.path)]
    facts = look(repo, runner, environ, state_dir)
    ways: dict[str, Callable[[], Choice]] = {
        "meta": lambda: choose_planner(facts, by_policies(policies, "meta"), provable=provable),
        "worker": lambda: choose_worker(
            facts, by_policies(policies, "worker"), runner.sandbox.kind
        ),
    }
    found = []
    for section, choose in ways.items():
        name, kind = PEOPLE[section], getattr(runner, section).kind
        if kind != AUTO:
            source = places.get(f"runner.{section}.kind") or _unsaid(runner, places, section)
            found.append(DoctorItem("ok", name, f"{kind}: {source}"))
            continue
        try:
            choice = choose()
            text = f"{choice.kind}: {choice.reason}"
            cure = "" if choice.ready else "agentrunner workers   tells how to install one"
            found.append(DoctorItem("ok" if choice.ready else "--", name, text, cure))
        except InfraError as error:
            found.append(DoctorItem("--", name, error.message, error.remedy))
    found.append(_sight(runner.meta, places, policies))
    return found


def _unsaid(runner: RunnerSection, places: Mapping[str, str], section: str) -> str:
    """Why a kind holds that no setting names."""
    if section == "worker" and runner.workers:
        return "runner.workers, the first"
    where = places.get(f"runner.{section}")
    return f"the default; {where} names no kind" if where else "the default"


def _sight(meta: PlannerSpec, places: Mapping[str, str], policies: Sequence[Policy]) -> DoctorItem:
    """What of the code leaves for a planner's provider, and who says so."""
    from agentrunner.config.agents import SEES, seen_by
    from agentrunner.engine.header import SIGHTS

    see, where = seen_by(meta), places.get("runner.meta.see", "the default")
    for policy in policies:
        cap = policy.caps.meta.see
        if cap is not None and SEES.index(cap) < SEES.index(see):
            see, where = cap, str(policy.place("meta.see").where)
    return DoctorItem("ok", "planner sees", f"{SIGHTS[see]}: runner.meta.see is {see}, {where}")
