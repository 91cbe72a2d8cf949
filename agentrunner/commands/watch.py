"""`agentrunner watch`: the live view of a run or plan that another process drives.

Everything is read from the run's folder. A new question can be answered here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from agentrunner import api
from agentrunner.commands import options as opt
from agentrunner.commands.console import Console, Output, interactive, tell
from agentrunner.commands.which_run import here
from agentrunner.errors import UsageError
from agentrunner.errors.runs import AmbiguousRun
from agentrunner.storage.locks import is_driven

if TYPE_CHECKING:
    from agentrunner.results import InboxItem, Result
    from agentrunner.state.people import Question
    from agentrunner.storage.events import Event as EventLine

LOOK_SEC = 0.25
TAIL = 12
"""Past lines that are shown in a terminal."""
ASKED_SEC = 1.5
"""Age of a question that is being asked inline in the other terminal; else the run pauses."""
INTERRUPTED = 130


@opt.with_output
def watch(
    run: opt.FittingRun = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="The plan of this repository, as a tree.")
    ] = False,
    repo: opt.PlanRepo = None,
    *,
    output: Output,
) -> int:
    """See a run at work that another process drives, and answer it; ends with the run.

    The exit code is the run's. Ctrl-C ends only the watching.
    """
    run_id = "" if plan else _find_run(run, output)
    if not run_id:
        from agentrunner.commands.plan_watch import watch_plan

        return watch_plan(repo, output)
    try:
        return _Watch(run_id, output).to_the_end()
    except KeyboardInterrupt:
        if not output.json:
            goes_on = is_driven(output.state, run_id)
            now = f"continues.  agentrunner watch {run_id}"
            if not goes_on:
                now = f"waits for you.  agentrunner answer {run_id}"
            tell(f"\n{run_id} {now}", sys.stderr)
        return INTERRUPTED


def _find_run(name: str | None, output: Output) -> str:
    """Return the id of the run; "" for the plan, if only that is active.

    Raises UsageError as `run_for` does.
    """
    from agentrunner.commands.pick import run_for
    from agentrunner.commands.question_prompt import ask_which
    from agentrunner.storage.index import RunIndex
    from agentrunner.storage.plan_folder import plan_folder

    state = output.state
    if name:
        return RunIndex(state).find(name, here())
    folder = plan_folder(state, here())
    rows = api.listed_runs_sync(here(), state_dir=state)
    if folder.attended:
        if not any(row.running for row in rows if not row.part_of):
            return ""
        if not interactive(output):
            raise AmbiguousRun(
                "both the plan and a run are at work here.",
                remedy="agentrunner watch --plan, or agentrunner watch RUN",
            )
        asked = {"p": "the plan", "r": "a run"}
        if ask_which("Both the plan and a run are at work here.", asked, Console(output)) == "p":
            return ""
    try:
        return run_for("watch", None, output)
    except UsageError:
        if rows and not any(row.waiting or row.running for row in rows):
            return "" if rows[0].part_of else rows[0].run_id  # its end is shown at once
        raise


class _Watch:
    """One person watching one run."""

    def __init__(self, run_id: str, output: Output) -> None:
        from agentrunner.commands.notify import notifier_of
        from agentrunner.storage.run_folder import RunFolder

        self._run_id = run_id
        self._output = output
        self._state_dir = output.state
        self._folder = RunFolder.open(self._state_dir, run_id)
        # The driving process uses the settings itself
        notifier = notifier_of(output.notify, settings=False)
        self._console = Console(output, notifier=notifier, watched=True)
        self._asks_person = interactive(output)
        self._reader = api.read_events(run_id, state_dir=self._state_dir)
        self._asked_at = 0.0
        """Since when a question is open; 0 if none is."""
        self._left: set[str] = set()
        """Questions that the person has left waiting."""

    def to_the_end(self) -> int:
        """Follow the run until no process drives it any more; return its exit code."""
        driven, events = self._read_new()
        self._console.catch_up(events, TAIL, goes_on=driven)
        try:
            while True:
                self._follow()
                standing = self._run_state()
                waiting = standing.waiting
                # Questions of a plan's task are answered to the plan, which then drives it.
                asks = self._asks_person and not standing.part_of
                if not (waiting and asks and self._ask_person(waiting)):
                    break
        finally:
            self._console.close()
        return self._end()

    def _read_new(self) -> tuple[bool, list[EventLine]]:
        """Return whether the run is driven, and the events written since the last call."""
        driven, events = self._reader.read_new()
        for event in events:
            if event.get("event") == "question":
                self._asked_at = time.monotonic()
            elif event.get("event") != "warning":
                self._asked_at = 0.0
        return driven, events

    def _follow(self) -> None:
        while True:
            driven, events = self._read_new()
            for event in events:
                self._console.on_event(event)
            if not driven and not events:
                return
            inline = self._asked_at and time.monotonic() - self._asked_at > ASKED_SEC
            if driven and inline and self._asks_person:
                waiting = self._run_state().waiting
                self._asked_at = 0.0
                if waiting:
                    self._ask_person(waiting)
            self._console.tick()
            time.sleep(LOOK_SEC)

    def _run_state(self) -> Result:
        return api.look_sync(self._run_id, state_dir=self._state_dir)

    def _ask_person(self, waiting: InboxItem) -> bool:
        """Ask the person here; return whether there is a reason to continue watching."""
        from agentrunner.commands.question_prompt import NotAskedAnyMore, asked, polling
        from agentrunner.commands.respond import give

        if waiting.id in self._left:
            return False
        question = waiting.question()
        driven = is_driven(self._state_dir, self._run_id)
        with self._console.silence(), polling(self._answer_watcher(question, driven)):
            try:
                answer = asked(question, self._folder.root, ends=True)
            except NotAskedAnyMore as settled:
                tell(f"\n{settled}", sys.stderr)
                return True
        if answer is None:
            self._left.add(question.id)
            if driven:
                tell("Left waiting; the view continues, and Ctrl-C ends it.", sys.stderr)
            return False
        there = replace(self._output, detach=True, quiet=False, notify=None, events=None)
        code = give(self._run_id, answer, there, left_alone=lambda _: "It continues by itself.")
        return code in (0, UsageError.exit_code)  # a wrong answer is asked for again

    def _answer_watcher(self, question: Question, driven: bool) -> Callable[[], None]:
        """Return a poll that ends the prompt once it is settled elsewhere or the driver changes."""
        from agentrunner.commands.elsewhere import settled_elsewhere
        from agentrunner.commands.question_prompt import NotAskedAnyMore

        settled = settled_elsewhere(self._folder, question.id, self._reader.offset)

        def look() -> None:
            self._console.poll()
            settled()
            if is_driven(self._state_dir, self._run_id) is not driven:
                settled()  # written before the driver let go
                left = "The other terminal has left the question waiting."
                raise NotAskedAnyMore(left if driven else "Another terminal resumes the run.")

        return look

    def _end(self) -> int:
        from agentrunner.commands.drive import show_end

        result = self._run_state()
        self._console.finish(result)
        if not self._output.json:
            show_end(result, self._console)
        return result.exit_code
