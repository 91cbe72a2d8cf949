"""Find the configured planner with all its settings, from whichever source."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.commands.which_run import here

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.errors import InfraError


def no_planner() -> InfraError:
    """Return the error for a missing planner: none is set, and none can be chosen."""
    from agentrunner.errors.planners import NoPlanner

    return NoPlanner(
        "No planner is set, and none is ready that would be chosen by itself.",
        remedy="agentrunner planners tells what each of them lacks",
        nothing_spent=True,
    )


def settled_planner(
    environ: Mapping[str, str],
    state_dir: Path,
    policy: Path | None,
    *,
    kind: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    overrides: Sequence[str] = (),
) -> tuple[TaskSpec, str]:
    """Return a task that carries the planner's settings, within every policy; and the reason for
    it.

    For a planner named here, role profiles and judges are ignored. The reason is "" if there is no
    planner. Raises UsageError for impossible settings, or ones that a policy forbids.
    """
    from agentrunner.config.agents import ProfilesSpec
    from agentrunner.config.load import TaskSource, load_task

    with repository_or_empty(here(), environ) as repo:
        spec = load_task(
            TaskSource("goal", "A planner is tried."),
            overrides=overrides,
            options={"repo": str(repo), "meta": kind, "planner_model": model, "base_url": base_url},
            environ=environ,
            cwd=repo,
            auto=True,
        )
        settled = _within_policies(spec, environ, state_dir, policy, named=kind is not None)
    if settled is None:
        return spec, ""
    if kind is not None:
        settled = settled.with_runner(profiles=ProfilesSpec(), assess=None)
    why = settled.chosen.get("meta") or settled.places.get("runner.meta.kind") or "the default"
    return settled, why


@contextmanager
def repository_or_empty(folder: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the repository, for its settings; an empty folder if it cannot be one.

    A planner can be inspected from anywhere, even from the home folder.
    """
    from agentrunner.config.repo import checked_repo
    from agentrunner.config.yaml_text import Place
    from agentrunner.errors import AgentRunnerError

    try:
        repo = checked_repo(folder, Place("."), environ)
    except AgentRunnerError:
        with tempfile.TemporaryDirectory(prefix="agentrunner-") as empty:
            yield Path(empty)
        return
    yield repo


def _within_policies(
    spec: TaskSpec, environ: Mapping[str, str], state_dir: Path, policy: Path | None, *, named: bool
) -> TaskSpec | None:
    """Return the settings with a planner, within every policy; None if none can be chosen."""
    from agentrunner.engine.policies import capped, capped_as_far
    from agentrunner.errors import UsageError

    settled, missing = capped_as_far(spec, environ, state_dir, policy)
    if missing:
        if not named and any(error.code == "no-planner" for error in missing):
            return None
        try:  # no worker is needed: the default one stands in
            settled = capped(settled, environ, state_dir, policy)
        except UsageError:
            if named:
                raise
    return settled
