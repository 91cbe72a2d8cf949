"""The planner and worker that a run uses if its task names none: for `doctor` and `init`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.workers import WorkerMissing
from agentrunner.screens.doctor import DoctorItem
from agentrunner.screens.layout import tilde

if TYPE_CHECKING:
    from agentrunner.config.agents import PlannerSpec
    from agentrunner.config.spec import TaskSpec
    from agentrunner.policy.policy_file import Policy

PEOPLE = {"meta": "planner", "worker": "worker"}
"""Names for people of the sections of a task file."""

INSTALL = "agentrunner workers   tells how to install one"


class Taken(Struct, frozen=True):
    """The planner and worker that are used if the task names none."""

    items: list[DoctorItem]
    kinds: Mapping[str, str] = field(default_factory=dict)
    """By section; a section without a usable kind is missing."""
    sandbox: str = "auto"
    """The kind of sandbox that settings or a policy leave; "auto" where they leave the choice."""
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
    repo: Path,
    environ: Mapping[str, str],
    state_dir: Path,
    provable: bool,
    policy: Path | None,
    *,
    connect: bool = False,
) -> Taken:
    """Return the planner and worker of a task that names none, settled as `run` settles them.

    With `connect` a planner's server on this machine is looked for, and whether a model was asked
    is told. Blocks.
    """
    from agentrunner.commands.planner_settings import repository_or_empty
    from agentrunner.config.agents import AUTO
    from agentrunner.config.kinds import planner_kind
    from agentrunner.config.load import TaskSource, load_task
    from agentrunner.engine.policies import capped_as_far
    from agentrunner.engine.resolve import lacking
    from agentrunner.policy.load import load_policies

    try:
        with repository_or_empty(repo, environ) as place:
            asked = load_task(
                TaskSource("goal", "-"),
                options={"repo": str(place), "test": "true" if provable else None},
                environ=environ,
                cwd=place,
                auto=True,
            )
            policies = load_policies(policy, environ, place)
            settled, missing = capped_as_far(asked, environ, state_dir, policy)
            lacks = lacking(_off_images(settled), environ)
    except UsageError as error:
        return Taken([DoctorItem("FAIL", "settings", error.message, error.path)])
    home, found, taken = environ.get("HOME", ""), list[DoctorItem](), dict[str, str]()
    for section, name in PEOPLE.items():
        own = next((one for one in missing if one.path == f"runner.{section}.kind"), None)
        if own is not None:
            found.append(DoctorItem("--", name, own.message, own.remedy))
            continue
        kind, named = (getattr(one.runner, section).kind for one in (settled, asked))
        taken[section] = kind
        reason = settled.chosen.get(section, "")
        if named != AUTO:
            where = asked.places.get(f"runner.{section}.kind")
            reason = tilde(where or _implicit_source(asked, section), home)
        found.append(_taken_item(name, f"{kind}: {reason}", lacks.get(section, [])))
    if connect and "meta" in taken and not lacks.get("meta"):
        from agentrunner.commands.planner_probe import connection_item

        found += [item for item in [connection_item(settled, environ)] if item]
    if planner_kind(taken.get("meta", AUTO)).calls_model:
        found.append(_sight_item(settled.runner.meta, settled.places, policies))
    by_image = [isinstance(error, WorkerMissing) for error in lacks.get("worker", [])]
    needs_image = "worker" in taken and bool(by_image) and all(by_image)
    return Taken(found, taken, settled.runner.sandbox.kind, needs_image)


def _off_images(spec: TaskSpec) -> TaskSpec:
    """The task in a sandbox without an image where `auto` may choose one: whether it does, and so
    may have what this machine lacks, is known only when the sandboxes are tried."""
    from agentrunner.config.agents import AUTO
    from agentrunner.config.kinds import sandbox_kind
    from agentrunner.registry import AUTO_SANDBOXES

    if spec.runner.sandbox.kind != AUTO:
        return spec
    return spec.with_sandbox(
        kind=next(kind for kind in AUTO_SANDBOXES if not sandbox_kind(kind).has_image)
    )


def _taken_item(name: str, text: str, lacks: Sequence[InfraError]) -> DoctorItem:
    """Return who is taken and why, and what keeps that one from starting here."""
    if not lacks:
        return DoctorItem("ok", name, text)
    first = lacks[0]
    cure = INSTALL if isinstance(first, WorkerMissing) else first.remedy
    return DoctorItem("--", name, f"{text}; {first.message}", cure)


def _implicit_source(spec: TaskSpec, section: str) -> str:
    """Return why a kind is in force that no setting names."""
    if section == "worker" and spec.runner.workers:
        return "runner.workers, the first"
    where = spec.places.get(f"runner.{section}")
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
