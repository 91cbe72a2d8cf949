"""Control the work on a plan from a chat: start, pause, resume and stop it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrunner import api
from agentrunner.commands.console import paint_for, width_of
from agentrunner.commands.fail import named
from agentrunner.commands.plan_place import Setting, repository
from agentrunner.screens.layout import wrap
from agentrunner.screens.plan_events import end_line, event_line

if TYPE_CHECKING:
    from agentrunner.plans.execution.plan_settings import PlanSettings

PlanExecution = Callable[[asyncio.Event, Callable[[], bool]], Awaitable[str]]
"""Executes the plan: stops the runs gracefully once the event is set, starts a task only while the
function returns true, and returns one sentence about the outcome.
"""


def plan_execution(
    setting: Setting, tell: Callable[[str], None], given: Mapping[str, str | None]
) -> PlanExecution:
    """Return a function that executes this setting's plan in this process, as `plan run` does.

    `given` are the options that only its tasks have.
    """

    async def execute(halt: asyncio.Event, may_start: Callable[[], bool]) -> str:
        from agentrunner.plans.execution.plan_settings import save_settings
        from agentrunner.plans.execution.task_spec import kinds_of

        options = api.options(setting.state_dir, policy=setting.policy, stop=halt)
        order = api.plan_instructions(repository(setting.repo), options)
        kinds = partial(kinds_of, repo=order.repo, environ=options.environ)
        shared = of_tasks(order.settings, setting, given, Path.cwd(), kinds)
        save_settings(order.folder, shared)
        order = replace(order, settings=shared)

        before: dict[object, str] = {}

        def hear(event: Mapping[str, Any]) -> None:
            task = event.get("task_id")
            if line := event_line(event, chat=True, before=before.get(task, "")):
                tell(_wrapped(line))
                before[task] = line

        result = await api.execute_plan(order, hear, may_start)
        left = set(result.tasks.values()) - {"COMPLETE"}
        paused = " It is paused: /resume begins what is left." if left and not may_start() else ""
        return _wrapped(end_line(result) + paused)

    return execute


def of_tasks(
    kept: PlanSettings,
    setting: Setting,
    given: Mapping[str, str | None],
    cwd: Path,
    kinds: Callable[[PlanSettings], Mapping[str, str]] = lambda kept: {},
) -> PlanSettings:
    """Return the settings that a plan's tasks share, with the options of a chat.

    The planner of the chat also steers the tasks, unless the plan names another one. For `kinds`
    see `PlanSettings.with_given`.
    """
    named = "meta" in kept.options
    model = None if named or "planner_model" in kept.options else setting.planner_model
    steers = {"meta": None if named else setting.planner, "planner_model": model}
    return kept.with_given({**given, **steers}, None, list(setting.overrides), cwd, kinds)


def _wrapped(text: str) -> str:
    return "\n".join(wrap(text, width_of(sys.stdout)))


def looking(setting: Setting) -> str:
    """Return the status of this setting's plan, also while another process executes it."""
    from agentrunner.screens.plan_status import status_screen

    found = api.plan_status_sync(repository(setting.repo), state_dir=setting.state_dir)
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    return status_screen(found, width=width, paint=paint, chat=True)


class PlanSteering:
    """At most one plan under way, in the event loop of the chat; each method returns a sentence."""

    def __init__(
        self, execute: PlanExecution, look: Callable[[], str], tell: Callable[[str], None]
    ) -> None:
        """`look` returns the status of the tasks; `tell` shows the person something unrequested."""
        self._execute = execute
        self._look = look
        self._tell = tell
        self._work: asyncio.Task[None] | None = None
        self._halt = asyncio.Event()
        self._paused = False

    @property
    def running(self) -> bool:
        """Whether the plan is under way, including paused with tasks at work."""
        return self._work is not None and not self._work.done()

    def start(self) -> str:
        """Begin, or continue after a stop or a pause."""
        if self.running:
            return self.resume() if self._paused else "The plan is under way already."
        self._paused, self._halt = False, asyncio.Event()
        self._work = asyncio.create_task(self._run(self._halt))
        return "The plan is under way. Talk on, or /status."

    def pause(self) -> str:
        """Begin no further task; those at work continue."""
        if not self.running:
            return "Nothing is under way."
        self._paused = True
        return "No further task is begun; those at work run to their end. /resume continues."

    def resume(self) -> str:
        if not self._paused and self.running:
            return "The plan is under way."
        if not self.running:
            return self.start()
        self._paused = False
        return "Tasks are begun again."

    async def stop(self) -> str:
        """Stop the tasks at work gracefully, so that they can be resumed."""
        if not self.running:
            return "Nothing is under way."
        assert self._work is not None
        self._halt.set()
        await asyncio.wait({self._work})
        return "Stopped. /run resumes the tasks."

    def status(self) -> str:
        """Return how the tasks stand as a screen."""
        paused = "\n\nPaused: no further task is begun. /resume continues."
        return self._look() + (paused if self.running and self._paused else "")

    async def _run(self, halt: asyncio.Event) -> None:
        try:
            end = await self._execute(halt, lambda: not self._paused)
        except Exception as surprise:  # noqa: BLE001 - a full disk, say: nobody waits for this task
            end = _wrapped(f"The plan cannot continue: {named(surprise).in_one_text}")
        if not halt.is_set():
            self._tell(end)
