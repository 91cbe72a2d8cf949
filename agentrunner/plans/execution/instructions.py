"""What a person wants of a plan, and whether that can be executed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.policies import capped
from agentrunner.engine.resolve import resolve
from agentrunner.errors.plans import NoPlan, UnknownTask
from agentrunner.plans.execution.delivery import DeliveryOptions
from agentrunner.plans.execution.plan_settings import PlanSettings
from agentrunner.plans.execution.preflight import check_repository
from agentrunner.plans.execution.task_spec import task_spec
from agentrunner.plans.plan import Plan
from agentrunner.plans.schedule import with_dependencies
from agentrunner.storage.plan_folder import PlanFolder, plan_folder
from agentrunner.storage.plan_shelf import way_to_a_plan


@dataclass(frozen=True)
class PlanInstructions:
    """What to execute, and how."""

    repo: Path
    settings: PlanSettings
    options: Options
    """Where runs are kept and who gets their events; `stop` ends all of them gracefully."""
    parallel: int
    """Tasks at work at once, at most."""
    only: tuple[str, ...] = ()
    """Only these tasks and what they depend on; all, if empty."""
    in_place: bool = False
    """Work in the repository itself, one task after another: for a folder without git."""
    git_init: bool = False
    """Make the folder a git repository with a commit, where it is not one."""
    include_uncommitted: bool = False
    """Put files that are not committed into the plan's first commit."""
    wishes: DeliveryOptions = field(default_factory=DeliveryOptions)
    """What is wanted of the result once all is done, beside its branch."""

    @property
    def folder(self) -> PlanFolder:
        return plan_folder(self.options.state_dir, self.repo)

    def wanted(self, plan: Plan) -> list[str]:
        """Return the tasks that are wanted and still in the plan, in its order."""
        named = [task for task in self.only if task in plan.tasks]
        chosen = with_dependencies(plan, named) if self.only else plan.tasks
        return [task for task in plan.task_order() if task in chosen]

    def again(self, plan: Plan) -> frozenset[str]:
        """Return tasks that are tried again without a question if they FAILED or need review."""
        return frozenset(self.wanted(plan) if self.only else ())

    def spec_of(self, plan: Plan, task_id: str, repo: Path, **more: Any) -> TaskSpec:
        """Return a task of the plan as it is run in `repo`; for `more` see `task_spec`."""
        environ = self.options.environ
        spec = task_spec(plan, task_id, self.settings, repo=repo, environ=environ, **more)
        made_for = {"plan_repo": str(self.repo.resolve()), "plan_settings": self.settings.key}
        return spec.model_copy(update=made_for)


def check_order(order: PlanInstructions, plan: Plan) -> tuple[list[str], TaskSpec]:
    """Return the tasks that are wanted, in order, and the first of them as it would be run.

    Raises UsageError where there is none, and InfraError where no planner or worker is available.
    """
    if not plan.tasks:
        raise NoPlan(
            "There is no plan of this repository yet.",
            remedy=way_to_a_plan(order.options.state_dir, order.repo),
        )
    if unknown := [name for name in order.only if name not in plan.tasks]:
        raise UnknownTask(
            f"The plan has no task {', '.join(unknown)}.",
            path="--only",
            remedy="agentrunner plan status",
        )
    tasks = order.wanted(plan)
    spec = order.spec_of(plan, tasks[0], order.repo)
    options = order.options
    spec = capped(spec, options.environ, options.state_dir, options.policy)
    resolve(spec, options.environ, options.cassette).ready()
    check_repository(  # last: in a terminal a person may then choose what to do
        order.repo,
        options.environ,
        in_place=order.in_place,
        git_init=order.git_init,
        delivered=order.wishes.any,
    )
    return tasks, spec
