"""Changing the planner, or the model of the worker, of a run that is resumed, as a person asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentrunner.config.agents import AssessSpec, PlannerCandidate, RoleSpec
from agentrunner.config.spec import PlannerChange, TaskSpec
from agentrunner.engine import attempts
from agentrunner.engine.policies import capped_again
from agentrunner.errors import UsageError
from agentrunner.execution.deps import Deps
from agentrunner.execution.recover import tries_model
from agentrunner.nodes.planner import CHANGED
from agentrunner.planners.panel import Panel, Role, make_panel
from agentrunner.planners.workplace import Workplace
from agentrunner.state.people import Answer
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.run_folder import RunFolder, save_spec

NEEDS_A_FILE = "script"
"""A planner that cannot take over a run later: its replies belong to the task."""


def with_planner(
    spec: TaskSpec, kind: str | None = None, model: str | None = None, *, role: Role = "meta"
) -> TaskSpec:
    """Return the task with another planner, or another model for it, in front of its candidates.

    The mode of completion stays what it was. With the role `assess` the judge changes, where the
    task names one of its own. Raises UsageError where the task forces a candidate by name, and for
    a planner that cannot take over a run.
    """
    if not _can_take_over(kind, spec):
        raise UsageError(
            "A planner of kind script cannot take over: its replies belong to the task.",
            path="--planner",
            remedy="--planner openai-chat, codex-cli, claude-code or checklist",
        )
    owner = kind or _first(spec, role).kind
    change = PlannerChange(role=role, kind=kind, model=model, owner=owner)
    return _changed(spec, change).model_copy(update={"changes": [*spec.changes, change]})


def changed_planner(spec: TaskSpec, change: PlannerChange) -> TaskSpec:
    """Return a task that was read again with what `with_planner` changed in it before.

    It is unchanged where its files now force a candidate by name, and where the model is one of
    another planner's.
    """
    foreign = change.kind is None and _first(spec, change.role).kind != change.owner
    if foreign or not _can_take_over(change.kind, spec):
        return spec
    try:
        return _changed(spec, change)
    except UsageError:
        return spec


def _can_take_over(kind: str | None, spec: TaskSpec) -> bool:
    return kind != NEEDS_A_FILE or spec.runner.meta.kind == kind


def _judges(spec: TaskSpec, role: str) -> bool:
    return role == "assess" and bool(spec.runner.assess or spec.runner.profiles.assess)


def _first(spec: TaskSpec, role: str) -> PlannerCandidate:
    """Return who has this role first."""
    runner = spec.runner
    if runner.assess is not None and _judges(spec, role):
        return PlannerCandidate(
            kind=runner.assess.kind or runner.meta.kind,
            model=runner.assess.model,
            base_url=runner.assess.base_url,
        )
    return PlannerCandidate(
        kind=runner.meta.kind,
        model=runner.meta.model,
        base_url=runner.meta.base_url,
        auth=runner.meta.auth,
    )


def _changed(spec: TaskSpec, change: PlannerChange) -> TaskSpec:
    runner, profiles = spec.runner, spec.runner.profiles
    kind, model = change.kind, change.model
    changes: dict[str, object] = {"completion": spec.completion}
    judges, first = _judges(spec, change.role), _first(spec, change.role)
    if kind is not None and kind != first.kind:  # model, address and login do not carry over
        first = PlannerCandidate(kind=kind)
    if model is not None:
        first = first.model_copy(update={"model": model})
    if judges:
        votes = runner.assess.votes if runner.assess else 1
        changes["assess"] = AssessSpec(
            kind=first.kind, model=first.model, base_url=first.base_url, votes=votes
        )
        changes["profiles"] = profiles.model_copy(
            update={"assess": _in_front(profiles.assess, first, "assess")}
        )
    else:
        changes["meta"] = runner.meta.model_copy(
            update={
                "kind": first.kind,
                "model": first.model,
                "base_url": first.base_url,
                "auth": first.auth,
            }
        )
        changes["profiles"] = profiles.model_copy(
            update={
                "meta": _in_front(profiles.meta, first, "meta") or RoleSpec(),
                "plan": _in_front(profiles.plan, first, "plan"),
            }
        )
    old = {"runner.assess.model" if judges else "runner.meta.model"}
    if kind is not None:
        old |= {"runner.meta.kind", "runner.meta.base_url"}
    # What names them now is written nowhere.
    places = {name: place for name, place in spec.places.items() if name not in old}
    runner = runner.model_copy(update=changes)
    return spec.model_copy(update={"runner": runner, "places": places})


def _in_front(profile: RoleSpec | None, first: PlannerCandidate, role: str) -> RoleSpec | None:
    """Return the role with this candidate first; unchanged where it names no candidates."""
    if profile is None:
        return None
    if profile.force:
        raise UsageError(
            f"runner.profiles.{role}.force names {profile.force}; nobody takes its place.",
            path=f"runner.profiles.{role}.force",
            remedy="another run, or the next attempt with a changed task file (--on-change replan)",
        )
    if not profile.candidates:
        return profile
    others = [candidate for candidate in profile.candidates if candidate != first]
    return profile.model_copy(update={"candidates": [first, *others]})


def renewed(
    spec: TaskSpec,
    folder: RunFolder,
    environ: Mapping[str, str],
    policy: Path | None,
    kind: str | None,
    model: str | None,
    role: Role = "meta",
) -> TaskSpec:
    """Return `with_planner` within today's policies; raise UsageError. Nothing is saved yet."""
    return capped_again(with_planner(spec, kind, model, role=role), folder, environ, policy)


async def take_over(
    deps: Deps, state: TaskContext, spec: TaskSpec, key: str, state_dir: Path
) -> None:
    """Let the planner of `spec` answer from here on, in this process and later ones.

    Raises as `make_panel`, and then nothing has changed.
    """
    panel: Panel = make_panel(spec, deps.environ, deps.cassette)
    await panel.open(Workplace(deps.folder, state_dir, deps.sandbox, deps.redactor))
    save_spec(deps.folder, spec)
    await deps.panel.become(panel)
    deps.spec = spec
    fields = {
        "kind": spec.runner.meta.kind,
        "model": spec.runner.meta.model,
        "is": panel.describe(),
    }
    deps.record(state, CHANGED, key, fields)
    deps.warn(state, "planner-changed", f"From here on the planner is {panel.describe()}.")


def with_worker_model(spec: TaskSpec, model: str, state: TaskContext) -> TaskSpec:
    """Return the task with another model for the worker whose order waits, else for the first.

    Raises UsageError for what is no name of a model.
    """
    if not model or model.split() != [model]:
        raise UsageError("A model's name is one word.", path="--model", remedy="--model NAME")
    order, names = state.get("order"), _names(spec)
    owner = order.member if order and order.member in names else names[0]
    change = PlannerChange(role="worker", model=model, owner=owner)
    return changed_worker(spec, change).model_copy(update={"changes": [*spec.changes, change]})


def changed_worker(spec: TaskSpec, change: PlannerChange) -> TaskSpec:
    """Return the task with that model of a worker; unchanged where it has no such worker now."""
    names = _names(spec)
    if change.owner not in names:
        return spec
    runner, place = spec.runner, names.index(change.owner)
    workers = list(runner.workers or [runner.worker])
    workers[place] = workers[place].model_copy(update={"model": change.model})
    update: dict[str, object] = {"worker": workers[0]}
    if runner.workers:
        update["workers"] = workers
    # What names it now is written nowhere.
    places = {name: at for name, at in spec.places.items() if name != "runner.worker.model"}
    runner = runner.model_copy(update=update)
    return spec.model_copy(update={"runner": runner, "places": places})


def _names(spec: TaskSpec) -> list[str]:
    return [name for name, _ in spec.candidates]


async def tried_with(folder: RunFolder, model: str, by: str) -> Answer | None:
    """Return the answer that tries the same order with this model, for a run that waits because a
    worker failed.
    """
    asked = None if attempts.untouched(folder) else await attempts.waiting(folder)
    if asked is None or asked.kind != "worker_failed":
        return None
    return Answer(
        id=asked.id, kind="worker_failed", decision="approve", text=tries_model(model), by=by
    )
