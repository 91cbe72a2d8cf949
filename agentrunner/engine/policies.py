"""Applies the policies of this machine to a task before anything of it starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.agents import settle
from agentrunner.errors import InfraError
from agentrunner.policy.check import check_loops, narrowed
from agentrunner.policy.load import load_policies
from agentrunner.storage.run_folder import RunFolder, kept_sandbox


def capped(
    spec: TaskSpec,
    environ: Mapping[str, str],
    state_dir: Path,
    file: Path | None = None,
    *,
    replays: bool = False,
) -> TaskSpec:
    """Return a new task with planner and worker settled, within every policy in force and that of
    `file`.

    Raises UsageError where it goes beyond one, InfraError where no planner or worker is available.
    A run that `replays` a recording needs no key.
    """
    spec, missing = capped_as_far(spec, environ, state_dir, file, replays=replays)
    if missing:
        raise missing[0]
    return spec


def capped_as_far(
    spec: TaskSpec,
    environ: Mapping[str, str],
    state_dir: Path,
    file: Path | None = None,
    *,
    replays: bool = False,
) -> tuple[TaskSpec, list[InfraError]]:
    """Return what `capped` does, and the errors; without a planner or worker it uses the usual one.

    Raises UsageError where the task goes beyond a policy.
    """
    policies = load_policies(file, environ, Path(spec.repo))
    spec, missing = settle(spec, policies, environ, state_dir, replays=replays)
    if missing:  # it does not start anyway, and the usual ones need not fit the policies
        return spec, missing
    return narrowed(spec, policies, environ), missing


def capped_again(
    spec: TaskSpec,
    folder: RunFolder,
    environ: Mapping[str, str],
    file: Path | None = None,
    *,
    max_loops: int | None = None,
) -> TaskSpec:
    """Return the task of a run that continues, within the policies of today.

    The policies under which it was started stay in force, and it keeps the sandbox where its
    baseline started, whatever `auto` would choose now. `max_loops` is a limit for its next attempt.
    Raises UsageError where it goes beyond one.
    """
    if kind := kept_sandbox(folder)[0]:
        sandbox = spec.runner.sandbox.model_copy(update={"kind": kind})
        runner = spec.runner.model_copy(update={"sandbox": sandbox})
        spec = spec.model_copy(update={"runner": runner})
    kept = [Path(source.path) for source in spec.policies]
    policies = load_policies(file, environ, Path(spec.repo), kept=kept)
    check_loops(max_loops, policies)
    return narrowed(spec, policies, environ, stored=True)
