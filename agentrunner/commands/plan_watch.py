"""`agentrunner watch --plan`: the tree of a plan that another process executes."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner import environment
from agentrunner.commands.console import Output, interactive, show_error, tell
from agentrunner.commands.meanwhile import meanwhile
from agentrunner.commands.plan_drive import PlanConsole, drive_plan
from agentrunner.commands.plan_place import repository
from agentrunner.commands.plan_status import show_status
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.plans import NoPlan

if TYPE_CHECKING:
    from agentrunner.commands.plan_live import PlanView
    from agentrunner.results import PlanResult
    from agentrunner.storage.events import Event as EventLine
    from agentrunner.storage.plan_folder import PlanFolder

LOOK_SEC = 0.5
INTERRUPTED = 130


def watch_plan(repo: str | None, output: Output) -> int:
    """Follow the plan until no process executes it or asks what stopped it; return its exit code.

    Raises UsageError (`no-plan`) if there is none.
    """
    from agentrunner.commands.notify import notifier_of
    from agentrunner.commands.plan_live import PlanView
    from agentrunner.storage.plan_folder import plan_folder
    from agentrunner.storage.plan_shelf import way_to_a_plan

    environment.quiet_libraries()
    state_dir, place = output.state, repository(repo)
    folder = plan_folder(state_dir, place)
    if not folder.root.is_dir():
        raise NoPlan(
            "There is no plan of this repository yet.",
            remedy=way_to_a_plan(state_dir, place),
        )
    notifier = notifier_of(output.notify, settings=False)
    drawn = sys.stderr.isatty() and not (output.json or output.quiet)
    view = PlanView(state_dir, place) if drawn else None
    console = PlanConsole(output, view=view, notifier=notifier, repo=str(place))
    try:
        if view is not None:
            left: set[int] = set()
            while (answered := asyncio.run(_show_tree(folder, console, view, repo, left))) and (
                _restart(folder, answered, place, output)
            ):
                pass
        else:
            for event in _followed(folder):
                console.hear(event)
                console.poll()
    except KeyboardInterrupt:
        tell("\nThe plan continues.  agentrunner watch --plan", sys.stderr)
        return INTERRUPTED
    finally:
        console.finish()
        console.close()
    result = _result(folder)
    if not output.json:
        shown = view.asked if view is not None and sys.stdout.isatty() else ()
        show_status(state_dir, place, result=result, asked=shown)
    return result.exit_code if result else 0


async def _show_tree(
    folder: PlanFolder, console: PlanConsole, view: PlanView, repo: str | None, left: set[int]
) -> set[int]:
    """Show the tree and ask its questions; return those that were answered here.

    `left` are questions not to ask again, because the person has left them waiting.
    """
    from agentrunner.commands.plan_live import PlanQuestions, answering

    output = console.output
    keep = answering(repo, output.state_dir)
    questions = PlanQuestions(view, keep, asyncio.Event(), ask=interactive(output))
    questions.left = left
    try:
        async with meanwhile(_pass_on_events(folder, console)):
            await questions.attend(lambda status: not (status.driven or folder.attended))
    finally:
        view.close()
    return questions.answered


def _restart(folder: PlanFolder, answered: set[int], repo: Path, output: Output) -> bool:
    """Restart the plan in the background if it had stopped for the questions answered here."""
    from agentrunner.commands.plan_run import as_before

    result = _result(folder)
    if result is None or not answered & {question.id for question in result.questions}:
        return False
    there = replace(output, detach=True, notify=None, events=None)
    try:
        order = as_before(repo, output.state_dir)
        return drive_plan(order, there, message="The plan continues by itself.") == 0
    except AgentRunnerError as error:
        show_error(error)
        return False


async def _pass_on_events(folder: PlanFolder, console: PlanConsole) -> None:
    """Pass on events that are written from now on."""
    from agentrunner.storage.events import read_from

    offset = folder.log.stat().st_size if folder.log.exists() else 0
    while True:
        events, offset = read_from(folder.log, offset)
        for event in events:
            console.hear(event)
        console.poll()
        await asyncio.sleep(LOOK_SEC)


def _followed(folder: PlanFolder) -> Iterator[EventLine]:
    """Yield the events since the latest `plan run` began, and further ones."""
    from agentrunner.storage.events import read_from

    attended = folder.attended
    past, offset = read_from(folder.log, 0)
    begins = [index for index, one in enumerate(past) if one.get("event") == "plan_started"]
    yield from past[begins[-1] if begins else 0 :]
    while attended:
        # Checked before reading, so that everything written before a "no" is still read.
        attended = folder.attended
        events, offset = read_from(folder.log, offset)
        yield from events
        if attended:
            time.sleep(LOOK_SEC)


def _result(folder: PlanFolder) -> PlanResult | None:
    """Return the result of the latest `plan run`; None if none has ended."""
    from agentrunner.results import PlanResult
    from agentrunner.storage.events import read_from

    found = [one for one in read_from(folder.log, 0)[0] if one.get("event") == "plan_result"]
    return PlanResult.of_event(found[-1]) if found else None
