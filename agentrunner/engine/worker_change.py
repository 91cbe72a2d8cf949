"""Changing the model of a worker of a run that is resumed, as a person asks."""

from __future__ import annotations

from agentrunner.config.spec import PlannerChange, TaskSpec
from agentrunner.engine import attempts
from agentrunner.errors import UsageError
from agentrunner.execution.recover import tries_model
from agentrunner.state.people import Answer
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.run_folder import RunFolder


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
