"""Changing the model of the worker of a run that is resumed, as a person asks."""

from __future__ import annotations

from agentrunner.config.spec import TaskSpec
from agentrunner.engine import attempts
from agentrunner.state.people import Answer
from agentrunner.storage.run_folder import RunFolder


def with_worker_model(spec: TaskSpec, model: str) -> TaskSpec:
    """Return the task with another model for its worker; of several, for the first."""
    worker = spec.runner.worker.model_copy(update={"model": model})
    changes: dict[str, object] = {"worker": worker}
    if spec.runner.workers:
        changes["workers"] = [worker, *spec.runner.workers[1:]]
    # What names it now is written nowhere.
    places = {name: at for name, at in spec.places.items() if name != "runner.worker.model"}
    runner = spec.runner.model_copy(update=changes)
    return spec.model_copy(update={"runner": runner, "places": places})


async def tried_with(folder: RunFolder, model: str, by: str) -> Answer | None:
    """Return the answer that tries the same order with this model, for a run that waits because a
    worker failed.
    """
    asked = None if attempts.untouched(folder) else await attempts.waiting(folder)
    if asked is None or asked.kind != "worker_failed":
        return None
    return Answer(
        id=asked.id, kind="worker_failed", decision="approve", text=f"model: {model}", by=by
    )
