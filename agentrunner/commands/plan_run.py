"""Carrying a plan out, and looking at how it stands."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from agentrunner import settings
from agentrunner.commands import engine
from agentrunner.commands import options as opt
from agentrunner.commands.asking import ask_which
from agentrunner.commands.console import (
    Console,
    Output,
    interactive,
    logging_to,
    paint_for,
    show,
    width_of,
)
from agentrunner.commands.fail import failed_plan, named
from agentrunner.commands.plan_place import repository, task_id_of
from agentrunner.commands.start import budget_override
from agentrunner.errors import UsageError
from agentrunner.screens.errors import error_screen

if TYPE_CHECKING:
    from agentrunner.conductor.order import Order
    from agentrunner.planning.plan import Plan
    from agentrunner.runs.plan_folder import PlanFolder

FOLLOW_SEC = 1.0
WAYS = {
    "g": ("git_init", "make it a git repository: git init, and one commit of what is there"),
    "i": ("in_place", "work without git: one task after another, in the folder itself"),
}
"""By letter: the option that a person chooses with it, and what it does."""


@opt.with_output
def run(
    parallel: Annotated[
        int | None,
        typer.Option("--parallel", "-j", min=1, max=1000, help="Tasks at once. Default: cores."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID", help="This task and what it depends on."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the order; nothing is started.")
    ] = False,
    test: opt.Test = None,
    setup: Annotated[
        str | None, typer.Option("--setup", metavar="CMD", help="Makes a work tree ready.")
    ] = None,
    meta: opt.Meta = None,
    worker: opt.Worker = None,
    sandbox: opt.Sandbox = None,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", metavar="NAME=AMOUNT", help="Of the whole plan, e.g. usd=5."),
    ] = None,
    overrides: opt.Overrides = None,
    include_uncommitted: Annotated[
        bool, typer.Option("--include-uncommitted", help="Begin with what is not committed, too.")
    ] = False,
    git_init: Annotated[
        bool,
        typer.Option("--git-init", help="No git yet: begin it, with one commit."),
    ] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="No git: one after another, in the folder itself.")
    ] = False,
    pr: Annotated[
        bool, typer.Option("--pr", help="Push the result, open a pull or merge request.")
    ] = False,
    onto: Annotated[
        str | None, typer.Option("--onto", metavar="BRANCH", help="Bring the result onto it.")
    ] = None,
    squash: Annotated[
        bool, typer.Option("--squash", help="One commit for the whole plan.")
    ] = False,
    author: Annotated[
        str | None, typer.Option("--author", metavar="NAME <EMAIL>", help="Of the commits.")
    ] = None,
    message: Annotated[
        str | None,
        typer.Option("--commit-message", metavar="TEMPLATE", help="Of each task's commit."),
    ] = None,
    repo: opt.PlanRepo = None,
    policy: opt.PolicyFile = None,
    *,
    output: Output,
) -> int:
    """Carry the plan out: each task as a run in a work tree of its own, landed on a branch.

    Settings are kept with the plan for the next time. Run again, it goes on where it was.
    """
    from agentrunner.conductor.delivery import Wishes
    from agentrunner.conductor.settings import save_settings

    engine.load()
    place = repository(repo)
    options = {"test": test, "meta": meta, "worker": worker, "sandbox": sandbox}
    given = [*(overrides or []), *map(budget_override, budget or [])]
    order = _order(place, options, setup, given, output, policy)
    order = _changed(
        order,
        parallel=parallel,
        only=_ids(only) if only else (),
        git_init=git_init,
        in_place=in_place,
        include_uncommitted=include_uncommitted,
        settings=order.settings.with_commits(author, message),
        wishes=Wishes(squash=squash, onto=onto or "", request=pr),
    )
    if dry_run:
        return _dry_run(order, output)
    ready = _checked(order, output)
    if ready is None:
        show("Nothing was started.", sys.stderr)
        return 0
    save_settings(_folder(ready), ready.settings)
    return _drive(ready, output)


def _order(
    repo: Path,
    options: Mapping[str, str | None],
    setup: str | None,
    overrides: list[str],
    output: Output,
    policy: Path | None,
) -> Order:
    from agentrunner.conductor.order import Order
    from agentrunner.conductor.settings import load_settings
    from agentrunner.graph.drive import Options
    from agentrunner.runs.plan_folder import plan_folder

    state_dir = settings.state_dir(output.state_dir)
    shared = load_settings(plan_folder(state_dir, repo), Path.cwd())
    shared = shared.with_given(options, setup, overrides, Path.cwd())
    how = Options(
        state_dir=state_dir, on_event=lambda event: None, environ=os.environ, policy=policy
    )
    return Order(repo, shared, how, parallel=len(os.sched_getaffinity(0)))


def _changed(order: Order, *, parallel: int | None, **how: Any) -> Order:
    from dataclasses import replace

    return replace(order, parallel=parallel or order.parallel, **how)


def _ids(names: list[str]) -> tuple[str, ...]:
    """The tasks of `--only`; all of them where nothing is said is not what was meant."""

    parts = [part.strip() for name in names for part in name.split(",")]
    ids = tuple(dict.fromkeys(task_id_of(part) for part in parts if part))
    if not ids:
        raise UsageError(
            "--only names no task.",
            code="unknown-task",
            path="--only",
            remedy="--only TASK-0001, or leave it out for the whole plan",
        )
    return ids


def _checked(order: Order, output: Output) -> Order | None:
    """The order where it can be carried out; None where the person leaves.

    In a terminal a folder without git, or without a commit, is a question, and else an error.
    """
    from agentrunner.conductor.ground import ways_on

    try:
        _check(order)
    except UsageError as error:
        ways = ways_on(order.repo) if error.code in ("no-repository", "no-commit") else ()
        if not ways or not interactive(output):
            raise
        choices = {letter: told for letter, (way, told) in WAYS.items() if way in ways}
        if error.code == "no-commit":
            choices["g"] = "make the first commit, of what is there"
        chosen = ask_which(error.message, {**choices, "q": "quit"}, Console(output))
        if chosen == "q":
            return None
        order = _changed(order, parallel=None, **{WAYS[chosen][0]: True})
        _check(order)
    return order


def _check(order: Order) -> Plan:
    from agentrunner.conductor.order import check_order
    from agentrunner.planning.store import PlanStore

    plan = PlanStore(_folder(order).plan).load()
    check_order(order, plan)
    return plan


def _folder(order: Order) -> PlanFolder:
    from agentrunner.runs.plan_folder import plan_folder

    return plan_folder(order.options.state_dir, order.repo)


def _dry_run(order: Order, output: Output) -> int:
    """The waves in which tasks would start, and what they share."""
    from agentrunner.conductor.outlook import waves

    plan = _check(order)
    planned = waves(plan, order.only, order.parallel)
    if output.json:
        show(json.dumps({"waves": planned}))
        return 0
    from agentrunner.screens.layout import flat

    for number, tasks in enumerate(planned, start=1):
        show(f"{number:>4}. " + ", ".join(tasks))
        for task in tasks:
            show(f"        {task}  {flat(plan.design_of(task).title)}")
    if not planned:
        show("Nothing is left to do: every task that is wanted is COMPLETE.")
        return 0
    show("\nNothing was started. A task starts as soon as it may, not in waves.")
    return 0


# -- driving --------------------------------------------------------------------------------------


class _PlanConsole:
    """Shows events as they come: as JSON on stdout, in a file, or as lines on stderr."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._file: TextIO | None = None
        self._warned: set[str] = set()
        """Each run looks for itself; what was said once of the plan says nothing new again."""
        self.result: Mapping[str, Any] | None = None
        """The `plan_result`, once it was heard."""

    def hear(self, event: Mapping[str, Any]) -> None:
        from agentrunner.screens.plan_events import event_line

        line = json.dumps(event)
        if self._output.json:
            show(line)
        if self._output.events:
            self._file = self._file or self._output.events.open("a", encoding="utf-8")
            self._file.write(line + "\n")
            self._file.flush()
        if event["event"] == "plan_result":
            self.result = event
        told = event_line(event)
        said = event["event"] == "warning" and event["message"] in self._warned
        if self._output.json or self._output.quiet or not told or said:
            return
        if event["event"] == "warning":
            self._warned.add(event["message"])
        show(_timed(told), sys.stderr)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _timed(text: str) -> str:
    """With the time; in a terminal so that words stay whole, elsewhere always one line."""
    from agentrunner.screens.layout import wrap

    at = f"{datetime.now():%H:%M:%S}  "
    if not sys.stderr.isatty():
        return at + text
    lines = wrap(text, width_of(sys.stderr), " " * len(at))
    return "\n".join([at + lines[0][len(at) :], *lines[1:]])


def _drive(order: Order, output: Output) -> int:
    console = _PlanConsole(output)
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
        _show_status(order.options.state_dir, _folder(order), result=console.result)
    return code


async def _carried_out(order: Order, console: _PlanConsole) -> int:
    from dataclasses import replace

    from agentrunner.conductor.carry_out import carry_out

    stop = asyncio.Event()
    options = replace(order.options, stop=stop, on_event=console.hear)
    with _signals(stop, order) as caught:
        result = await carry_out(replace(order, options=options), console.hear)
    return 128 + caught[0] if caught else int(result["exit_code"])


@contextmanager
def _signals(stop: asyncio.Event, order: Order) -> Iterator[list[int]]:
    """First signal: all runs stop in order. Second: leave at once, supervisors finish the stop."""
    from agentrunner.graph.drive import SIGNALS

    loop, caught = asyncio.get_running_loop(), list[int]()

    def on_signal(number: signal.Signals) -> None:
        if caught:
            _stop_workers(order)
            os._exit(128 + number)
        caught.append(number)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield caught
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _stop_workers(order: Order) -> None:
    from agentrunner.conductor.rounds import RoundBook
    from agentrunner.graph.attempts import stop_workers
    from agentrunner.runs.folder import RunFolder, runs_root

    for turn in RoundBook(_folder(order)).all():
        folder = RunFolder(runs_root(order.options.state_dir) / turn.run_id)
        if turn.run_id and folder.root.is_dir():
            stop_workers(folder)


# -- looking --------------------------------------------------------------------------------------


def status(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Until it comes to a rest.")
    ] = False,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """How the plan stands: progress, cost and time of each task, and what waits for you."""
    from agentrunner.runs.plan_folder import plan_folder

    place = settings.state_dir(state_dir)
    folder = plan_folder(place, repository(repo))
    engine.load()
    if follow and sys.stdout.isatty() and not as_json:
        _follow(place, folder)
        return 0
    _show_status(place, folder, as_json=as_json)
    return 0


def _show_status(
    state_dir: Path,
    folder: PlanFolder,
    *,
    as_json: bool = False,
    result: Mapping[str, Any] | None = None,
) -> None:
    from agentrunner.conductor.look import look
    from agentrunner.screens.plan_status import status_screen

    found = look(state_dir, folder, datetime.now(UTC))
    if as_json:
        show(json.dumps(found.as_dict()))
        return
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    show(status_screen(found, width=width, paint=paint, result=result))


def _follow(state_dir: Path, folder: PlanFolder) -> None:
    """Draw it again every second, in place, until nobody carries it out any more."""
    from rich.console import Console as Terminal
    from rich.live import Live
    from rich.text import Text

    from agentrunner.conductor.look import look
    from agentrunner.screens.plan_status import status_screen

    with Live(console=Terminal(), auto_refresh=False) as live:
        while True:
            found = look(state_dir, folder, datetime.now(UTC))
            screen = status_screen(
                found,
                width=width_of(sys.stdout),
                height=live.console.height,
                paint=paint_for(sys.stdout),
            )
            live.update(Text.from_ansi(screen), refresh=True)
            if not found.driven:
                return
            time.sleep(FOLLOW_SEC)
