"""`agentrunner plan status`: the status of a plan, also while another process executes it."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrunner import api, environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import paint_for, show, show_json, tell, width_of
from agentrunner.commands.plan_place import repository

if TYPE_CHECKING:
    from agentrunner.results import PlanResult

FOLLOW_SEC = 1.0


@opt.with_file
def status(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow it until it stops.")
    ] = False,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """How the plan stands: progress, cost and time of each task, and what waits for you."""
    place = environment.state_dir(state_dir)
    if follow and sys.stdout.isatty() and not as_json:
        _follow(place, repository(repo))
        return 0
    show_status(place, repository(repo), as_json=as_json)
    return 0


def show_status(
    state_dir: Path,
    repo: Path,
    *,
    as_json: bool = False,
    result: PlanResult | None = None,
    asked: Collection[int] = (),
) -> None:
    """Print the plan's status; `result` is that of a process that has just ended.

    `asked` are questions that this terminal has just shown whole.
    """
    from agentrunner.screens.plan_status import status_screen
    from agentrunner.storage.plan_folder import plan_folder
    from agentrunner.storage.plan_shelf import way_to_a_plan

    found = api.plan_status_sync(repo, state_dir=state_dir)
    if as_json:
        show_json(found.as_dict())
        return
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    way = way_to_a_plan(state_dir, repo)
    show(status_screen(found, width=width, paint=paint, result=result, asked=asked, way=way))
    if plan_folder(state_dir, repo).proposal.exists() and result is None:
        tell("A change is proposed and waits:  agentrunner plan   shows it")


def _follow(state_dir: Path, repo: Path) -> None:
    """Redraw the status every second, in place, until no process executes the plan any more."""
    from agentrunner.commands.plan_live import Block, RunStories
    from agentrunner.screens.plan_status import status_screen

    stories, block = RunStories(state_dir), Block(sys.stdout)
    while True:
        found = api.plan_status_sync(repo, state_dir=state_dir)
        screen = status_screen(
            found,
            width=block.width,
            height=block.height,
            paint=paint_for(sys.stdout),
            doing=stories.doing(found, datetime.now(UTC)),
        )
        block.draw(screen.split("\n"))
        if not found.driven:
            return
        time.sleep(FOLLOW_SEC)
