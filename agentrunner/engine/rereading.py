"""Reads the task of a run again from its files: as `run` would, with the options of the start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentrunner.config.agents import AUTO
from agentrunner.config.layers import option_name
from agentrunner.config.load import TaskSource, load_task, with_environment
from agentrunner.config.spec import Reading, TaskSpec
from agentrunner.discovery.agents import settle
from agentrunner.discovery.candidates import detect_test
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.planner_change import changed_planner, changed_worker
from agentrunner.errors import UsageError
from agentrunner.errors.runs import InputsChanged
from agentrunner.policy.load import load_policies

_STAYS = (
    *("task_id", "repo", "landing", "policies"),
    *("plan_settings", "plan_repo", "earlier", "changes"),
)
"""What a run is, and where it works; no file says that of a run that has begun."""
_CHOSEN = ("meta", "worker")


def reread(kept: TaskSpec, options: Options) -> TaskSpec:
    """Return the task of a run as its files are now, planner and worker settled.

    What this machine chose stays chosen where the task leaves that open still, and a planner or
    model that a person named since stays named. Raises as `load_task` and `settle`.
    """
    now = _read(kept, options.environ)
    update: dict[str, Any] = {name: getattr(kept, name) for name in _STAYS}
    if now.title == now.task_id:  # it has no title
        update["title"] = kept.title
    if kept.part_of:  # its settings are the plan's
        update["runner"] = kept.runner
    spec = _with_chosen(now.model_copy(update=update), kept, options.environ)
    for change in kept.changes:
        apply = changed_worker if change.role == "worker" else changed_planner
        spec = apply(spec, change)
    policies = load_policies(options.policy, options.environ, Path(spec.repo))
    spec, missing = settle(spec, policies, options.environ, options.state_dir)
    if missing:
        raise missing[0]
    return spec


def _read(kept: TaskSpec, environ: Mapping[str, str]) -> TaskSpec:
    reading = kept.reading
    if reading is None:
        raise InputsChanged(
            "An older version began this run. It did not keep the options of the start, so the"
            " files cannot be read again as they were read then.",
            remedy="--on-change continue, or a new run",
        )
    try:
        return load_task(
            TaskSource(reading.kind, reading.value),
            overrides=reading.overrides,
            options=reading.options,
            environ=environ,
            cwd=Path(reading.cwd),
            detect_test=detect_test,
            today=reading.today,
            auto=reading.auto,
        )
    except UsageError as error:
        # Nobody typed them just now, and the mistake may be that they do not go with the file.
        if given := _given(reading):
            error.details += (("begun with", given),)
        raise


def _given(reading: Reading) -> str:
    """Return the options of the start, without their values: one may be a secret."""
    settings = (text.partition("=")[0] for text in reading.overrides)
    names = [f"--set {key}" for key in settings] + list(map(option_name, reading.options))
    return ", ".join(names)


def _with_chosen(now: TaskSpec, kept: TaskSpec, environ: Mapping[str, str]) -> TaskSpec:
    """Return the task with what was chosen for the run, where nothing names it now either."""
    chosen, update = dict[str, str](), dict[str, Any]()
    for name in _CHOSEN:
        ours, theirs = getattr(kept.runner, name), getattr(now.runner, name)
        if theirs.kind == AUTO and name in kept.chosen:
            chosen[name] = kept.chosen[name]
            auth = theirs.auth if f"runner.{name}.auth" in now.places else ours.auth
            update[name] = theirs.model_copy(update={"kind": ours.kind, "auth": auth})
    if "meta" in update:
        update["meta"] = with_environment(update["meta"], environ)
    task = now.task
    if task.test is None and "test" in kept.chosen:
        chosen["test"] = kept.chosen["test"]
        task = task.model_copy(update={"test": kept.task.test})
    runner = now.runner.model_copy(update=update)
    return now.model_copy(update={"runner": runner, "chosen": chosen, "task": task})
