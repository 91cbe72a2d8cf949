"""Who plans and who works where a task names nobody: for `doctor` and `init`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.errors import InfraError, UsageError
from agentrunner.screens.doctor import DoctorItem, Mark
from agentrunner.screens.layout import tilde

if TYPE_CHECKING:
    from agentrunner.config.agents import PlannerSpec
    from agentrunner.config.spec import RunnerSection
    from agentrunner.discovery.agents import Choice, Facts
    from agentrunner.policy.policy_file import Policy

PEOPLE = {"meta": "planner", "worker": "worker"}
"""Sections of a task file, as people call who is in them."""

INSTALL = "agentrunner workers   tells how to install one"


@dataclass(frozen=True)
class Taken:
    """Who plans and who works where the task names none."""

    items: list[DoctorItem]
    kinds: Mapping[str, str] = field(default_factory=dict)
    """By section; without one for which there is nobody."""
    needs_image: bool = False
    """The worker has a way to its model and is not installed, so that an image has to have it."""

    def lacking(self, *, in_image: bool) -> DoctorItem | None:
        """The first that keeps a run that names none from beginning.

        `in_image` says that the sandbox is made of an image, which was found.
        """
        for item in self.items:
            by_image = in_image and self.needs_image and item.name == PEOPLE["worker"]
            if item.mark in ("--", "FAIL") and not by_image:
                return item
        return None


def chosen(
    repo: Path, environ: Mapping[str, str], state_dir: Path, provable: bool, policy: Path | None
) -> Taken:
    """Who plans and who works where the task does not say, by settings, policies and machine."""
    from agentrunner.config.agents import AUTO
    from agentrunner.config.load import load_settings
    from agentrunner.discovery.agents import by_policies, choose_planner, choose_worker, look
    from agentrunner.policy.load import load_policies

    try:
        runner, places = load_settings(repo, environ, auto=True)
        policies = load_policies(policy, environ, repo)
    except UsageError as error:
        return Taken([DoctorItem("FAIL", "settings", error.message, error.path)])
    facts = look(repo, runner, environ, state_dir)
    ways: dict[str, Callable[[], Choice]] = {
        "meta": lambda: choose_planner(facts, by_policies(policies, "meta"), provable=provable),
        "worker": lambda: choose_worker(
            facts, by_policies(policies, "worker"), runner.sandbox.kind
        ),
    }
    home, found, taken = environ.get("HOME", ""), list[DoctorItem](), dict[str, str]()
    needs_image = False
    for section, choose in ways.items():
        name, kind = PEOPLE[section], getattr(runner, section).kind
        if kind != AUTO:
            source = places.get(f"runner.{section}.kind") or _unsaid(runner, places, section)
            cure = _cure(facts, section, kind)
            needs_image |= section == "worker" and cure == INSTALL
            mark: Mark = "--" if cure else "ok"
            lacks = "; it cannot be used as it is" if cure else ""
            found.append(DoctorItem(mark, name, f"{kind}: {tilde(source, home)}{lacks}", cure))
            taken[section] = kind
            continue
        try:
            choice = choose()
            cure = "" if choice.ready else INSTALL
            needs_image |= not choice.ready
            text = f"{choice.kind}: {choice.reason}"
            found.append(DoctorItem("ok" if choice.ready else "--", name, text, cure))
            taken[section] = choice.kind
        except InfraError as error:
            found.append(DoctorItem("--", name, error.message, error.remedy))
    found.append(_sight(runner.meta, places, policies))
    return Taken(found, taken, needs_image)


def _cure(facts: Facts, section: str, kind: str) -> str:
    """What a kind that is set by name still needs here; "" for nothing, or nothing known."""
    clis = facts.planners if section == "meta" else facts.workers
    cli = next((one for one in clis if one.kind == kind), None)
    if section == "meta" and kind == "openai-chat" and not facts.api_key:
        return "export OPENAI_API_KEY=…"
    if cli is None or (cli.ready and cli.installed):
        return ""
    return cli.cure or INSTALL


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
