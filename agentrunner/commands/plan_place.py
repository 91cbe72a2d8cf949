"""Which plan and task a command is about, where the plan is kept."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agentrunner import environment
from agentrunner.commands.which_run import here
from agentrunner.errors.plans import UnknownTask
from agentrunner.errors.repositories import BadRepository

if TYPE_CHECKING:
    from agentrunner.plans.plan import Plan
    from agentrunner.plans.store import PlanStore


class Setting(Struct, frozen=True):
    """The options of a conversation: its repository, planner and settings."""

    repo: str | None = None
    planner: str | None = None
    overrides: tuple[str, ...] = ()
    policy: Path | None = None
    state_dir: str | None = None
    planner_model: str | None = None

    def as_options(self) -> list[str]:
        """Return the words of a command line that give these options."""
        given = {
            "--planner": self.planner,
            "--planner-model": self.planner_model,
            "--repo": self.repo,
            "--policy": self.policy,
            "--state-dir": self.state_dir,
        }
        words = [word for name, value in given.items() if value for word in (name, str(value))]
        return words + [word for value in self.overrides for word in ("--set", value)]


def repository(named: str | None) -> Path:
    """Return the named repository, or the one around the current folder.

    Raises UsageError (`bad-repo`) for anything but a folder.
    """
    if named is None:
        return here()
    folder = Path(named).expanduser().absolute()
    if not folder.is_dir():
        raise BadRepository(f"{named} is no folder.", path="--repo")
    return folder


def store_of(repo: str | None, state_dir: str | None) -> PlanStore:
    """Return the plan's store of the named repository, or of the one around the current folder."""
    from agentrunner.plans.store import PlanStore
    from agentrunner.storage.plan_folder import plan_folder

    folder = plan_folder(environment.state_dir(state_dir), repository(repo))
    return PlanStore(folder.plan)


def is_driven(store: PlanStore) -> bool:
    """Whether a process executes the plan of this store now."""
    from agentrunner.storage.plan_folder import PlanFolder

    return PlanFolder(store.path.parent).driven


def task_called(plan: Plan, name: str) -> str:
    """Return a task's id; the number alone is enough. Raises UsageError (`unknown-task`)."""
    wanted = task_id_of(name)
    if wanted in plan.tasks:
        return wanted
    near = get_close_matches(wanted, plan.tasks, n=3)
    shown = "agentrunner plan shows them" if plan.tasks else 'agentrunner plan "what you want"'
    raise UnknownTask(
        f"The plan has no task {name}.",
        remedy=f"one of {', '.join(sorted(near))}" if near else shown,
    )


def task_id_of(name: str) -> str:
    """Return the task id that a person means, who may give only the number."""
    return f"TASK-{int(name):04d}" if name.isascii() and name.isdecimal() else name.upper()
