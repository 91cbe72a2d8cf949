"""Drive a run in the foreground: one call of the engine, progress, one result, one exit code."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentrunner import environment
from agentrunner.commands.command_line import GIVEN_AT
from agentrunner.commands.console import (
    Console,
    Output,
    interactive,
    paint_for,
    show,
    show_error,
    tell,
    width_of,
)
from agentrunner.commands.fail import named
from agentrunner.commands.log_lines import logging_to
from agentrunner.commands.meanwhile import meanwhile
from agentrunner.commands.question_prompt import ask_inline, ask_yes, prompt_of
from agentrunner.commands.which_run import git_of, name_needed
from agentrunner.environment import user_name
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.runs import DiskFull
from agentrunner.results import Problem, Result
from agentrunner.screens.paused import paused_screen
from agentrunner.screens.summary import summary_screen
from agentrunner.text.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from agentrunner.engine.attempt_run import Options
    from agentrunner.state.people import Answer, Question

Work = Callable[["Options"], Awaitable["Result"]]
TICK_SEC = 1.0
IN_ORDER = lazy_regex(r"^--|:\d+$")
"""The place of a fault in what was ordered: an option, or a line of a task file."""


def drive(
    work: Work,
    output: Output,
    *,
    first: Callable[[], object] = lambda: None,
    left_alone: Callable[[str], str] | None = None,
) -> int:
    """Do `work`, show its progress and its end; return its exit code.

    `first` is what can be refused before the engine is imported (a task file), and `work` may
    raise before it returns its awaitable. In every case exactly one result is printed with
    --json. With `detach` all of it runs in a process of its own; `left_alone` then returns the
    message for the run's id.
    """
    if not output.detach:
        return _drive(work, output, first)
    from agentrunner.commands.detach import Begun, in_background, run_text

    def apart(begun: Begun) -> int:
        place = output.state / "runs"
        return _drive(work, output, first, lambda run_id: begun(run_id, place / run_id))

    return in_background(apart, output, left_alone or run_text)


def _drive(
    work: Work,
    output: Output,
    first: Callable[[], object],
    begun: Callable[[str], None] | None = None,
) -> int:
    from agentrunner.commands.notify import Notifier, kept_notifier, notifier_of

    notifier = notifier_of(output.notify)

    def of_run(run_id: str) -> Notifier | None:
        folder = output.state / "runs" / run_id
        return kept_notifier(folder, output.notify, notifier)

    console = Console(output, notifier=notifier, notifier_of_run=of_run, begun=begun)
    try:
        return _run_to_end(work, console, first)
    finally:
        console.close()


def _run_to_end(work: Work, console: Console, first: Callable[[], object]) -> int:
    output = console.output
    try:
        with logging_to(console):
            first()
            result = asyncio.run(_ticking(work, console))
    except KeyboardInterrupt:  # before the engine heeds signals itself
        known = {"run_id": console.run_id, "state": console.state}
        result = Result.model_validate({**known, "exit_code": 130, "reason": "interrupted"})
        console.finish(result)
        tell(f"\nInterrupted. {_kept(console)}", sys.stderr)
        return result.exit_code
    except typer.Exit as left:  # the person who was asked which run picked none
        return left.exit_code
    except Exception as raised:  # noqa: BLE001 - the last handler: reported in one line, and kept
        error = named(raised, output.state_dir)
        if isinstance(error, DiskFull) and (console.begun_here or not console.run_id):
            error.nothing_spent |= not console.may_have_spent
        result = Result.of_error(error, run_id=console.run_id, state=console.state)
        console.finish(result)
        show_error(error)
        # A run goes on with the options and the task file that it began with.
        if (
            console.run_id
            and console.begun_here
            and error.nothing_spent
            and IN_ORDER.search(error.path)
        ):
            _forget(output.state, console.run_id)
        elif console.run_id:
            tell(f"The run is kept:  agentrunner resume {console.run_id}", sys.stderr)
        return error.exit_code
    console.finish(result)
    if not output.json:
        show_end(result, console)
    return result.exit_code


def _forget(state_dir: Path, run_id: str) -> None:
    """Remove a run that an option or its task file kept from its first step."""
    from agentrunner.engine import retention

    with contextlib.suppress(AgentRunnerError, OSError):
        retention.forget(state_dir, run_id)


async def _ticking(work: Work, console: Console) -> Result:
    awaitable = work(_options(console))
    # The modules of the engine stay to the end. To look through their half a million objects for
    # cycles, again and again, is a twelfth of a round's CPU.
    gc.freeze()
    async with meanwhile(_tick(console)):
        return await awaitable


async def _tick(console: Console) -> None:
    while True:
        await asyncio.sleep(TICK_SEC)
        console.tick()


def _options(console: Console) -> Options:
    from agentrunner.engine.attempt_run import Options

    state_dir = console.output.state

    def ask(question: Question) -> Answer | None:
        answer = ask_inline(question, console, state_dir / "runs" / str(console.run_id))
        console.left = question.id if answer is None else ""
        return answer

    return Options(
        state_dir=state_dir,
        on_event=console.on_event,
        ask=ask if interactive(console.output) and not console.output.detach else None,
        confirm=(lambda text: ask_yes(text, console)) if interactive(console.output) else None,
        environ=os.environ,
        given_at=datetime.fromtimestamp(given, UTC) if (given := GIVEN_AT.get()) else None,
        leaving=lambda: tell(f"\nStopped at once. {_kept(console)}", sys.stderr),
    )


def _kept(console: Console) -> str:
    """Return what is kept of a run that was interrupted, and the command for it."""
    if console.run_id:
        return f"The run is kept:  agentrunner resume {console.run_id}"
    return "It was only starting, and nothing was spent; if it is kept:  agentrunner list"


def show_end(result: Result, console: Console) -> None:
    """Show the last screen: how it ended, what it waits for, or the error before it began."""
    if sys.stdout.isatty():
        show("")
    state_dir = console.output.state
    if result.waiting:
        brief = sys.stdout.isatty() and result.waiting.id == console.left
        name = name_needed(state_dir, str(result.run_id))
        show_waiting(result, state_dir, name, brief=brief)
        _say_place(console.output)
        return
    if result.error and not result.state:
        error = as_error(result.error)
        show_error(error)
        return
    home = os.environ.get("HOME", "")
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    screen = summary_screen(
        result,
        warnings=warnings_of(state_dir, str(result.run_id)),
        width=width,
        paint=paint,
        home=home,
        target=name_needed(state_dir, str(result.run_id)),
        git=git_of(result),
    )
    show(screen)
    _say_place(console.output)
    _say_size(state_dir)


def _say_place(output: Output) -> None:
    """Say that the commands shown need the option that says where runs are, where it was given."""
    if output.state_dir and output.state != environment.state_dir():
        option = shlex.join(["--state-dir", output.state_dir])
        tell(f"These commands need it, too:  {option}", sys.stderr)


def warnings_of(state_dir: Path, run_id: str) -> list[str]:
    """Return the warnings that every last screen of a run has."""
    from agentrunner.screens.story import warnings_in
    from agentrunner.storage.events import read_events
    from agentrunner.storage.run_folder import runs_root

    return warnings_in(read_events(runs_root(state_dir) / run_id / "events.jsonl"))


def _say_size(state_dir: Path) -> None:
    from agentrunner.storage.state_size import NOTICE_BYTES, gigabytes, is_large

    if is_large(state_dir):
        tell(
            f"More than {gigabytes(NOTICE_BYTES)} are kept of runs in {state_dir}."
            "  agentrunner gc --max-size 1g",
            sys.stderr,
        )


def show_waiting(result: Result, state_dir: Path, target: str = "", *, brief: bool = False) -> None:
    """Show the screen of a paused run, with the worker's prompt if that is to be approved.

    `brief` leaves out what is asked.
    """
    assert result.waiting is not None
    screen = paused_screen(
        result,
        where=this_machine(),
        prompt=prompt_of(result.waiting.subject, state_dir / "runs" / str(result.run_id)),
        width=width_of(sys.stdout),
        paint=paint_for(sys.stdout),
        target=target,
        brief=brief,
    )
    show(screen)


def as_error(error: Problem) -> AgentRunnerError:
    """Convert a result's `error` object to an exception, to show it in the common form."""
    return AgentRunnerError(error.message, code=error.code, path=error.path, remedy=error.remedy)


def this_machine() -> str:
    """Return `hana@devbox`: where the state of a waiting run is."""
    return f"{user_name()}@{socket.gethostname()}"
