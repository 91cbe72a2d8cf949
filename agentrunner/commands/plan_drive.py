"""Drive a plan in the foreground: its events as they come, one result, one exit code."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agentrunner import api
from agentrunner.commands.console import (
    EventLines,
    Output,
    interactive,
    ring,
    show,
    show_error,
    tell,
)
from agentrunner.commands.fail import failed_plan, named
from agentrunner.commands.log_lines import logging_to
from agentrunner.commands.meanwhile import meanwhile
from agentrunner.commands.plan_status import show_status
from agentrunner.errors import LockHeld
from agentrunner.storage.locks import me
from agentrunner.text.times import stamp_now

if TYPE_CHECKING:
    from agentrunner.api import PlanStatus
    from agentrunner.commands.notify import Notifier
    from agentrunner.commands.plan_live import PlanQuestions, PlanView
    from agentrunner.plans.execution.instructions import PlanInstructions
    from agentrunner.plans.store import OpenQuestion
    from agentrunner.results import PlanResult


class PlanConsole:
    """Shows events as they come: as JSON on stdout, in a file, or as lines on stderr."""

    def __init__(
        self,
        output: Output,
        *,
        view: PlanView | None = None,
        notifier: Notifier | None = None,
        begun: Callable[[], None] | None = None,
        repo: str = "",
    ) -> None:
        """`begun` is called when the work begins; `view` shows the tree in a terminal."""
        self.output = output
        self._lines = EventLines(output)
        self._view, self._notifier, self._begun, self._repo = view, notifier, begun, repo
        self._warned: set[str] = set()
        """Warnings already shown: each run repeats those about the whole plan."""
        self._before: dict[object, str] = {}
        """By task, the line that was written last."""
        self._asked: set[int] = set()
        """Questions that were asked since this began."""
        self._waiting: set[str] | None = None
        """Tasks that waited for an answer when the work began; None before."""
        self.result: Mapping[str, Any] | None = None
        """The latest `plan_result`; it is printed once, and last."""

    def hear(self, event: Mapping[str, Any]) -> None:
        """Handle an event of the plan, or of one of its runs."""
        from agentrunner.commands.plan_live import timed
        from agentrunner.screens.plan_events import event_line

        if event["event"] == "plan_result":
            self.result = event
            return
        if event["event"] == "plan_started" and self._begun is not None:
            self._begun()
            self._begun = None
        self._lines.write(event)
        if event["event"] == "plan_started":
            self._waiting = {*event.get("waiting", ()), "budget"}
        asks = event["event"] == "plan_question"
        if asks:
            self._asked.add(event["question"])
            self._ring(f"{event.get('task_id') or 'the plan'} needs you")
            command = f"agentrunner plan answer {event.get('question')} TEXT"
            facts = {"task_id": event.get("task_id"), "question": event.get("question")}
            self._send("needs_you", event.get("text"), command, **facts)
        line = event_line(event, before=self._before.get(event.get("task_id"), ""))
        if self._view is not None and asks:  # the tree shows it, and the prompt asks it
            self._before[event.get("task_id")] = line
            return
        drawn = self._view and event["event"] == "plan_task" and not event.get("detail")
        known = event["event"] == "warning" and event["message"] in self._warned
        if self.output.json or self.output.quiet or not line or known or drawn:
            return
        if event["event"] == "warning":
            self._warned.add(event["message"])
        self._before[event.get("task_id")] = line
        self.write(timed(line))

    def waits(self, question: OpenQuestion) -> bool:
        """Whether a question needs an answer: that of a task that is tried again may need none."""
        if self._waiting is None:
            return False
        return question.id in self._asked or question.task_id in self._waiting

    def write(self, lines: list[str]) -> None:
        """Write permanent lines for people."""
        if self._view is not None:
            self._view.say(lines)
        else:
            show("\n".join(lines), sys.stderr)

    def finish(self) -> None:
        """Write the one `plan_result`, and send the notifications of the end."""
        if self.result is None:
            return
        self._lines.write(self.result)
        self._ring("the plan run has ended")
        from agentrunner.results import PlanResult
        from agentrunner.screens.plan_events import end_line

        result = PlanResult.of_event(self.result)
        facts = {"exit_code": result.exit_code, "tasks": result.tasks}
        self._send("ended", end_line(result), "agentrunner plan status", **facts)

    def _ring(self, text: str) -> None:
        if not self.output.json:
            ring(sys.stderr, f"AgentRunner: {text}", os.environ)

    def _send(
        self, kind: Literal["needs_you", "ended"], text: object, command: str, **facts: Any
    ) -> None:
        if self._notifier is not None:
            about = {"run_id": None, "plan": True, "repo": self._repo}
            self._notifier.send(kind, {**about, **facts, "text": text, "next": command})

    def poll(self) -> None:
        if self._notifier is not None and (problem := self._notifier.poll()):
            self._say_problem(problem)

    def close(self) -> None:
        """Close: no more events come."""
        self._lines.close()
        if self._notifier is not None and (problem := self._notifier.close()):
            self._say_problem(problem)

    def _say_problem(self, problem: str) -> None:
        from agentrunner.commands.plan_live import timed

        self.write(timed(f"Warning: {problem}. The plan does not depend on it."))


def drive_plan(order: PlanInstructions, output: Output, message: str = "") -> int:
    """Execute the plan to its end, and show the progress; return the exit code.

    With `detach` a process of its own does that; `message` then replaces the usual message.
    """
    if not output.detach:
        return _drive(order, output)
    from agentrunner.commands.detach import Begun, in_background

    def apart(begun: Begun) -> int:
        return _drive(order, output, lambda: begun("", order.folder.root))

    return in_background(apart, output, lambda _: message or plan_text())


def plan_text() -> str:
    """Return the message about a detached plan."""
    from agentrunner.commands.detach import detached_text

    steps = [
        ("agentrunner watch --plan", "see it work, and answer it there"),
        ("agentrunner plan answer ID TEXT", "when a task asks; the others continue"),
        ("agentrunner plan stop", "stop the tasks; plan run resumes them"),
    ]
    return detached_text(
        steps,
        "The plan runs on its own; this terminal may be closed.",
        "Where all that is left waits for you, it ends: answer, then plan run --detach.",
    )


def _drive(order: PlanInstructions, output: Output, begun: Callable[[], None] | None = None) -> int:
    from agentrunner.commands.notify import kept_notifier, notifier_of
    from agentrunner.commands.plan_live import PlanView

    plain = output.json or output.quiet or output.detach or not sys.stderr.isatty()
    view = None if plain else PlanView(order.options.state_dir, order.repo)
    notifier = kept_notifier(order.folder.root, output.notify, notifier_of(output.notify))
    console = PlanConsole(output, view=view, notifier=notifier, begun=begun, repo=str(order.repo))
    with logging_to(console):
        try:
            code = asyncio.run(_execute(order, console, view))
        except Exception as raised:  # noqa: BLE001 - the last handler: reported in one line, and kept
            error = named(raised, output.state_dir)
            if console.result is None:
                console.result = failed_plan(error)
            show_error(error)
            return error.exit_code
        finally:
            console.finish()
            console.close()
    if not output.json:
        if view is not None and sys.stdout.isatty():
            show("")
        from agentrunner.results import PlanResult

        ended = PlanResult.of_event(console.result) if console.result else None
        shown = view.asked if view is not None and sys.stdout.isatty() else ()
        show_status(order.options.state_dir, order.repo, result=ended, asked=shown)
    return code


async def _execute(order: PlanInstructions, console: PlanConsole, view: PlanView | None) -> int:
    """Execute until nothing can continue; in a terminal also until the person is done answering."""
    gc.freeze()  # as in the command of one run
    stop = asyncio.Event()
    options = replace(order.options, stop=stop, on_event=console.hear)
    order = replace(order, options=options)
    with _signals(stop, order) as caught:
        if view is None:
            async with meanwhile(_poll(console)):
                result = await api.execute_plan(order, console.hear)
        else:
            try:
                result = await _execute_attended(order, console, view, stop)
            finally:
                view.close()
    return 128 + caught[0] if caught else result.exit_code


async def _execute_attended(
    order: PlanInstructions, console: PlanConsole, view: PlanView, stop: asyncio.Event
) -> PlanResult:
    """Execute below the displayed tree; again after answers to the questions that stopped it."""
    from agentrunner.commands.plan_live import PlanQuestions, answering

    keep = answering(str(order.repo), str(order.options.state_dir))
    ask = interactive(console.output)
    questions = PlanQuestions(view, keep, stop, ask=ask, waits=console.waits)
    attending = order.folder.attending()
    with contextlib.suppress(LockHeld):
        attending.acquire(me("", stamp_now()))
    try:
        return await _execute_and_ask(order, console, questions, stop)
    finally:
        attending.close()


async def _execute_and_ask(
    order: PlanInstructions, console: PlanConsole, questions: PlanQuestions, stop: asyncio.Event
) -> PlanResult:
    while True:
        work = asyncio.create_task(api.execute_plan(order, console.hear))
        attend = questions.attend(partial(_is_over, work))
        async with meanwhile(_poll(console)), meanwhile(attend) as attending:
            await asyncio.wait({work, attending}, return_when=asyncio.FIRST_COMPLETED)
            result = await work  # a stop ends the attending first
            status = await attending
        still = {question.id for question in status.questions}
        asked = {question.id for question in result.questions}
        if stop.is_set() or asked <= still:
            return result


def _is_over(work: asyncio.Task[PlanResult], status: PlanStatus) -> bool:
    return work.done()


async def _poll(console: PlanConsole) -> None:
    """Check on the command of --notify, again and again."""
    while True:
        await asyncio.sleep(1)
        console.poll()


@contextmanager
def _signals(stop: asyncio.Event, order: PlanInstructions) -> Iterator[list[int]]:
    """First signal: stop all runs gracefully. Second: exit at once; supervisors finish the stop."""
    from agentrunner.engine.attempt_run import heeding

    caught = list[int]()

    def on_signal(number: signal.Signals) -> None:
        if caught:
            _stop_workers(order)
            tell("\nStopped at once. The plan is kept:  agentrunner plan run", sys.stderr)
            os._exit(128 + number)
        caught.append(number)
        stop.set()

    with heeding(on_signal):
        yield caught


def _stop_workers(order: PlanInstructions) -> None:
    from agentrunner.engine.attempts import stop_workers
    from agentrunner.plans.execution.task_runs import TaskRunStore
    from agentrunner.storage.run_folder import RunFolder, runs_root

    for task_run in TaskRunStore(order.folder).all():
        folder = RunFolder(runs_root(order.options.state_dir) / task_run.run_id)
        if task_run.run_id and folder.root.is_dir():
            stop_workers(folder)
