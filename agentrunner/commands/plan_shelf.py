"""Several plans of one repository: `plan new`, `plan list`, `plan archive`, `plan switch`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from agentrunner import environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import show, show_json, tell, width_of
from agentrunner.commands.plan_place import repository
from agentrunner.text.times import stamp_now

if TYPE_CHECKING:
    from agentrunner.plans.plan import Plan

NEXT = 'Next:  agentrunner plan "what you want"   begins a new one'


def new(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The name that the current plan gets."),
    ] = None,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Put the current plan aside, as it stands, to begin another. `plan switch` takes it back."""
    state, place = environment.state_dir(state_dir), repository(repo)
    kept = _put_current_aside(state, place, name, archived=False)
    if as_json:
        return show_json({"kept": kept or None})
    if kept:
        tell(f"The plan that was current is kept as {kept}.")
        tell(f"agentrunner plan switch {kept}  takes it back")
    else:
        tell("There is no current plan.")
    tell(NEXT)
    return 0


def archive(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Which. Left out: the current plan."),
    ] = None,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Put a plan away for good: `plan list` shows it with --all only. Nothing of it is deleted."""
    from agentrunner.storage.plan_shelf import archive_aside

    state, place = environment.state_dir(state_dir), repository(repo)
    if name is not None:
        archive_aside(state, place, name)
        if as_json:
            return show_json({"archived": name})
        tell(f"{name} is archived.  agentrunner plan list --all  shows it")
        return 0
    kept = _put_current_aside(state, place, None, archived=True)
    if as_json:
        return show_json({"archived": kept or None})
    if not kept:
        tell(f"There is no current plan.\n{NEXT}")
        return 0
    tell(f"The current plan is archived as {kept}.")
    tell(f"agentrunner plan switch {kept}  takes it back")
    return 0


def switch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As plan list shows it.")],
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Make another plan of this repository the current one; the one that is there is put aside."""
    from agentrunner.storage.plan_shelf import find_aside, take_back

    state, place = environment.state_dir(state_dir), repository(repo)
    find_aside(state, place, name)  # before anything is moved
    kept = _put_current_aside(state, place, None, archived=False)
    take_back(state, place, name)
    if as_json:
        return show_json({"current": name, "kept": kept or None})
    tell(f"{name} is the current plan." + (f" The other one is kept as {kept}." if kept else ""))
    return 0


@opt.with_file
def list_plans(
    everything: Annotated[bool, typer.Option("--all", help="Archived ones, too.")] = False,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """The plans of this repository: the current one first."""
    from agentrunner.screens.run_table import plans_table

    rows = _rows(environment.state_dir(state_dir), repository(repo), everything)
    if as_json:
        return show_json({"plans": rows})
    if not rows:
        tell(f"This repository has no plan.\n{NEXT}")
        return 0
    show(plans_table(rows, width=width_of(sys.stdout)))
    return 0


class PlanOnShelf(TypedDict):
    """A plan of a repository, as `plan list --json` prints it."""

    name: str
    current: bool
    archived: bool
    version: int
    tasks: int
    done: int
    goal: str


def _rows(state_dir: Path, repo: Path, everything: bool) -> list[PlanOnShelf]:
    from agentrunner.plans.store import PlanStore
    from agentrunner.storage.plan_folder import plan_folder
    from agentrunner.storage.plan_shelf import plans_aside

    rows = []
    current = PlanStore(plan_folder(state_dir, repo).plan).load()
    if len(current.nodes) > 1 or current.version:
        rows.append(_row("current", current, current=True))
    for one in plans_aside(state_dir, repo):
        if everything or not one.archived:
            plan = PlanStore(one.folder.plan).load()
            rows.append(_row(one.name, plan, archived=one.archived))
    return rows


def _row(name: str, plan: Plan, *, current: bool = False, archived: bool = False) -> PlanOnShelf:
    from agentrunner.plans.plan import PlanTaskStatus

    done = sum(task.status == PlanTaskStatus.COMPLETE for task in plan.tasks.values())
    return {
        "name": name,
        "current": current,
        "archived": archived,
        "version": plan.version,
        "tasks": len(plan.tasks),
        "done": done,
        "goal": next((line for line in plan.goal.splitlines() if line.strip()), ""),
    }


def _put_current_aside(state_dir: Path, repo: Path, name: str | None, *, archived: bool) -> str:
    """Put the current plan aside under `name` or its goal's name; return "" if there is none."""
    from agentrunner.config.naming import slug
    from agentrunner.plans.store import PlanStore
    from agentrunner.storage.locks import me
    from agentrunner.storage.plan_folder import plan_folder
    from agentrunner.storage.plan_shelf import free_name, put_aside

    folder = plan_folder(state_dir, repo)
    if not folder.plan.is_file():
        return ""
    goal = PlanStore(folder.plan).load().goal.strip().splitlines()
    wanted = name or free_name(state_dir, repo, slug(goal[0] if goal else "") or "plan")
    return put_aside(state_dir, repo, wanted, me("", stamp_now()), archived=archived).name
