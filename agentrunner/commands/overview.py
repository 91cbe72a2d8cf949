"""`agentrunner` alone: what needs somebody, what runs and what ended, with the next commands."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from agentrunner import api, environment
from agentrunner.commands.console import paint_for, show, width_of
from agentrunner.commands.which_run import here
from agentrunner.screens.layout import count, flat


def overview() -> int:
    """Show how everything in this repository stands; nothing is started."""
    from agentrunner.screens.run_table import overview_screen
    from agentrunner.storage.plan_shelf import runs_aside

    state = environment.state_dir()
    aside = runs_aside(state, here())
    listed = api.listed_runs_sync(here())
    found = [row for row in listed if row.run_id not in aside]
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    now = datetime.now().astimezone()
    plan, asked, by_run = _plan_facts(state, here())
    rows = [{**asdict(row), "question": by_run.get(row.run_id)} for row in found]
    shown = {row["question"] for row in rows}
    others = [(number, text) for number, text in asked if number not in shown]
    left_out = len(listed) - len(found)
    show(
        overview_screen(
            rows, now, plan=plan, asked=others, width=width, paint=paint, left_out=left_out
        )
    )
    return 0


def _plan_facts(state: Path, repo: Path) -> tuple[str, list[tuple[int, str]], dict[str, int]]:
    """Return the status of the repository's plan, its open questions and which run each is about.

    All is empty if there is no plan, or none that is readable.
    """
    from agentrunner.errors import AgentRunnerError
    from agentrunner.storage.plan_folder import plan_folder

    folder = plan_folder(state, repo)
    if not folder.root.is_dir():
        return "", [], {}
    from agentrunner.plans.execution.task_runs import TaskRunStore
    from agentrunner.plans.execution.waiting_questions import waiting_questions
    from agentrunner.plans.store import PlanStore

    with contextlib.suppress(AgentRunnerError, OSError):
        store = PlanStore(folder.plan)
        plan = store.load()
        waiting = waiting_questions(store)
        numbers = {one.id for one in waiting}
        runs = TaskRunStore(folder).all()
        by_run = {one.run_id: one.question for one in runs if one.question in numbers}
        asked = [(one.id, f"{one.task_id}: {one.text}".removeprefix(": ")) for one in waiting]
        line = ""
        if plan.tasks:
            done = sum(task.status == "COMPLETE" for task in plan.tasks.values())
            line = f"{done} of {count(len(plan.tasks), 'task')} complete"
            line += f", {count(len(asked), 'question')} to answer" if asked else ""
            line += f": {flat(plan.goal)}" if plan.goal else ""
        return line, asked, by_run
    return "", [], {}
