"""`agentrunner plan status`: the status of a plan, also while another process executes it."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrunner import environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import paint_for, show, tell, width_of
from agentrunner.commands.plan_place import repository

if TYPE_CHECKING:
    from agentrunner.results import PlanResult
    from agentrunner.storage.plan_folder import PlanFolder

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
    from agentrunner.storage.plan_folder import plan_folder

    place = environment.state_dir(state_dir)
    folder = plan_folder(place, repository(repo))
    environment.quiet_libraries()
    if follow and sys.stdout.isatty() and not as_json:
        _follow(place, folder)
        return 0
    show_status(place, folder, as_json=as_json)
    return 0


def show_status(
    state_dir: Path,
    folder: PlanFolder,
    *,
    as_json: bool = False,
    result: PlanResult | None = None,
) -> None:
    """Print the plan's status; `result` is that of a process that has just ended."""
    from agentrunner.plans.execution.status import look
    from agentrunner.screens.plan_status import status_screen

    found = look(state_dir, folder, datetime.now(UTC))
    if as_json:
        show(json.dumps(found.as_dict()))
        return
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    show(status_screen(found, width=width, paint=paint, result=result))
    if folder.proposal.exists() and result is None:
        tell("A change is proposed and waits:  agentrunner plan   shows it")


def _follow(state_dir: Path, folder: PlanFolder) -> None:
    """Redraw the status every second, in place, until no process executes the plan any more."""
    from rich.console import Console as Terminal
    from rich.live import Live
    from rich.text import Text

    from agentrunner.commands.plan_live import RunStories
    from agentrunner.plans.execution.status import look
    from agentrunner.screens.plan_status import status_screen

    stories = RunStories(state_dir)
    with Live(console=Terminal(), auto_refresh=False) as live:
        while True:
            now = datetime.now(UTC)
            found = look(state_dir, folder, now)
            screen = status_screen(
                found,
                width=width_of(sys.stdout),
                height=live.console.height,
                paint=paint_for(sys.stdout),
                doing=stories.doing(found, now),
            )
            live.update(Text.from_ansi(screen), refresh=True)
            if not found.driven:
                return
            time.sleep(FOLLOW_SEC)
