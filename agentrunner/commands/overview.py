"""`agentrunner` alone: what needs somebody, what runs and what ended, with the next commands."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from agentrunner import environment
from agentrunner.commands.console import paint_for, show, width_of
from agentrunner.commands.which_run import here, is_driven
from agentrunner.screens.layout import count, flat


def overview() -> int:
    """Show how everything in this repository stands; nothing is started."""
    from agentrunner.screens.run_table import overview_screen
    from agentrunner.storage.index import RunIndex
    from agentrunner.storage.plan_shelf import runs_aside

    state = environment.state_dir()
    rows: list[dict[str, object]] = []
    aside = runs_aside(state, here())
    for row in RunIndex(state).runs(here()):
        if row.run_id in aside:
            continue
        driven = not row.finished_at and is_driven(state, row.run_id)
        rows.append({**asdict(row), "running": driven})
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    now = datetime.now().astimezone()
    show(overview_screen(rows, now, plan=_plan_line(state, here()), width=width, paint=paint))
    return 0


def _plan_line(state: Path, repo: Path) -> str:
    """Return the status of the repository's plan; "" if there is none, or none that is readable."""
    from agentrunner.errors import AgentRunnerError
    from agentrunner.storage.plan_folder import plan_folder

    if not plan_folder(state, repo).root.is_dir():
        return ""
    from agentrunner.plans.store import PlanStore

    with contextlib.suppress(AgentRunnerError, OSError):
        store = PlanStore(plan_folder(state, repo).plan)
        plan = store.load()
        if plan.tasks:
            done = sum(task.status == "COMPLETE" for task in plan.tasks.values())
            line = f"{done} of {count(len(plan.tasks), 'task')} complete"
            asked = sum(one.answer is None for one in store.questions())
            line += f", {count(asked, 'question')} to answer" if asked else ""
            return f"{line}: {flat(plan.goal)}" if plan.goal else line
    return ""
