"""The planner and worker that a run uses if its task names none: for `doctor` and `init`."""

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
"""Names for people of the sections of a task file."""

INSTALL = "agentrunner workers   tells how to install one"


@dataclass(frozen=True)
class Taken:
    """The planner and worker that are used if the task names none."""

    items: list[DoctorItem]
    kinds: Mapping[str, str] = field(default_factory=dict)
    """By section; a section without a usable kind is missing."""
    needs_image: bool = False
    """Whether the worker can reach its model but is not installed, so an image must have it."""

    def lacking(self, *, in_image: bool) -> DoctorItem | None:
        """Return the first item that prevents a run with the default planner and worker.

        `in_image` means that the sandbox uses an image that was found.
        """
        for item in self.items:
            by_image = in_image and self.needs_image and item.name == PEOPLE["worker"]
            if item.mark in ("--", "FAIL") and not by_image:
                return item
        return None


def chosen(
    repo: Path, environ: Mapping[str, str], state_dir: Path, provable: bool, policy: Path | None
) -> Taken:
    """Choose planner and worker by settings, policies and machine, for tasks that name none."""
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
            source = places.get(f"runner.{section}.kind") or _implicit_source(
                runner, places, section
            )
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
    found.append(_sight_item(runner.meta, places, policies))
    return Taken(found, taken, needs_image)


def _cure(facts: Facts, section: str, kind: str) -> str:
    """Return what a kind set by name still needs here; "" for nothing, or if unknown."""
    clis = facts.planners if section == "meta" else facts.workers
    cli = next((one for one in clis if one.kind == kind), None)
    if section == "meta" and kind == "openai-chat" and not facts.api_key:
        return "export OPENAI_API_KEY=…"
    if cli is None or (cli.ready and cli.installed):
        return ""
    return cli.cure or INSTALL


def _implicit_source(runner: RunnerSection, places: Mapping[str, str], section: str) -> str:
    """Return why a kind is in force that no setting names."""
    if section == "worker" and runner.workers:
        return "runner.workers, the first"
    where = places.get(f"runner.{section}")
    return f"the default; {where} names no kind" if where else "the default"


def _sight_item(
    meta: PlannerSpec, places: Mapping[str, str], policies: Sequence[Policy]
) -> DoctorItem:
    """Return what of the code is sent to a planner's provider, and which setting decides that."""
    from agentrunner.config.agents import SEES, seen_by
    from agentrunner.engine.header import SIGHTS

    see, where = seen_by(meta), places.get("runner.meta.see", "the default")
    for policy in policies:
        cap = policy.caps.meta.see
        if cap is not None and SEES.index(cap) < SEES.index(see):
            see, where = cap, str(policy.place("meta.see").where)
    return DoctorItem("ok", "planner sees", f"{SIGHTS[see]}: runner.meta.see is {see}, {where}")
