"""Driving a plan in the foreground: its events as they come, one result, one exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentrunner.commands.console import (
    Console,
    EventLines,
    Output,
    logging_to,
    paint_for,
    ring,
    show,
    width_of,
)
from agentrunner.commands.fail import failed_plan, named
from agentrunner.commands.plan_status import show_status
from agentrunner.screens.errors import error_screen

if TYPE_CHECKING:
    from agentrunner.plans.execution.instructions import PlanInstructions


class PlanConsole:
    """Shows events as they come: as JSON on stdout, in a file, or as lines on stderr."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._lines = EventLines(output)
        self._warned: set[str] = set()
        """Each run looks for itself; what was said once of the plan says nothing new again."""
        self.result: Mapping[str, Any] | None = None
        """The `plan_result`, once it was heard."""

    def hear(self, event: Mapping[str, Any]) -> None:
        """An event of the plan, or of one of its runs."""
        from agentrunner.screens.plan_events import event_line

        self._lines.write(event)
        if event["event"] == "plan_result":
            self.result = event
            self._ring("the plan has come to a rest")
        if event["event"] == "plan_question":
            self._ring(f"{event.get('task_id') or 'the plan'} needs you")
        told = event_line(event)
        said = event["event"] == "warning" and event["message"] in self._warned
        if self._output.json or self._output.quiet or not told or said:
            return
        if event["event"] == "warning":
            self._warned.add(event["message"])
        show(_timed(told), sys.stderr)

    def _ring(self, text: str) -> None:
        if not self._output.json:
            ring(sys.stderr, f"AgentRunner: {text}", os.environ)

    def close(self) -> None:
        """No more of them come."""
        self._lines.close()


def _timed(text: str) -> str:
    """With the time; in a terminal so that words stay whole, elsewhere always one line."""
    from agentrunner.screens.layout import wrap

    at = f"{datetime.now():%H:%M:%S}  "
    if not sys.stderr.isatty():
        return at + text
    lines = wrap(text, width_of(sys.stderr), " " * len(at))
    return "\n".join([at + lines[0][len(at) :], *lines[1:]])


def drive_plan(order: PlanInstructions, output: Output) -> int:
    """Carry it out to its end, and show how it goes; the exit code."""
    console = PlanConsole(output)
    with logging_to(Console(output)):
        try:
            code = asyncio.run(_carried_out(order, console))
        except Exception as raised:  # noqa: BLE001 - the last handler: told in one line, and kept
            error = named(raised, output.state_dir)
            if console.result is None:
                console.hear(failed_plan(error))
            show(error_screen(error, width_of(sys.stderr), paint_for(sys.stderr)), sys.stderr)
            return error.exit_code
        finally:
            console.close()
    if not output.json:
        show_status(order.options.state_dir, order.folder, result=console.result)
    return code


async def _carried_out(order: PlanInstructions, console: PlanConsole) -> int:
    from dataclasses import replace

    from agentrunner.plans.execution.executor import carry_out

    stop = asyncio.Event()
    options = replace(order.options, stop=stop, on_event=console.hear)
    with _signals(stop, order) as caught:
        result = await carry_out(replace(order, options=options), console.hear)
    return 128 + caught[0] if caught else int(result["exit_code"])


@contextmanager
def _signals(stop: asyncio.Event, order: PlanInstructions) -> Iterator[list[int]]:
    """First signal: all runs stop in order. Second: leave at once, supervisors finish the stop."""
    from agentrunner.engine.attempt_run import heeding

    caught = list[int]()

    def on_signal(number: signal.Signals) -> None:
        if caught:
            _stop_workers(order)
            os._exit(128 + number)
        caught.append(number)
        stop.set()

    with heeding(on_signal):
        yield caught


def _stop_workers(order: PlanInstructions) -> None:
    from agentrunner.engine.attempts import stop_workers
    from agentrunner.plans.execution.rounds import RoundBook
    from agentrunner.storage.run_folder import RunFolder, runs_root

    for turn in RoundBook(order.folder).all():
        folder = RunFolder(runs_root(order.options.state_dir) / turn.run_id)
        if turn.run_id and folder.root.is_dir():
            stop_workers(folder)
