"""The verbs of runs: drive them, look at them, take their work back."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentrunner.api.driving import aside, ignore, in_thread, options, state_folder
from agentrunner.errors import UsageError

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.engine.attempt_run import Options
    from agentrunner.engine.queries import ChangedFile, ListedRun
    from agentrunner.engine.retention import Collected
    from agentrunner.engine.verify import Verification
    from agentrunner.events import Event
    from agentrunner.results import Result, RunEntry, Undone
    from agentrunner.storage.events import EventReader

__all__ = [
    "accept",
    "cancel",
    "changes",
    "changes_sync",
    "delete_old_runs",
    "delete_old_runs_sync",
    "diff",
    "diff_sync",
    "follow",
    "listed_runs_sync",
    "look",
    "look_sync",
    "look_values_sync",
    "read_events",
    "read_task",
    "respond",
    "resume",
    "run",
    "runs",
    "undo",
    "undo_sync",
    "verify",
    "worker_at_work_sync",
]

FOLLOW_SEC = 0.2
"""How often `follow` looks for new events, in seconds."""


def read_task(
    file: Path | str | None = None,
    *,
    goal: str | None = None,
    settings: Sequence[str] = (),
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    **named: Any,
) -> TaskSpec:
    """Return a task from a task file or PRD, or from a goal in words, as `agentrunner run` reads
    it.

    `settings` are texts like "runner.meta.max_loops=3"; `named` are the options of the command line
    by their names: repo, test, meta, worker, model, planner_model, sandbox, max_loops, approve,
    strict. Raises UsageError with the place of what is wrong. Blocks.
    """
    if (file is None) == (goal is None):
        raise UsageError("Give either a file or a goal.")
    from datetime import date

    from agentrunner.config.load import TaskSource, load_task
    from agentrunner.discovery.candidates import detect_test

    source = TaskSource("goal", str(goal)) if file is None else TaskSource("file", os.fspath(file))
    return load_task(
        source,
        overrides=settings,
        options=named,
        environ=os.environ if environ is None else environ,
        cwd=cwd or Path.cwd(),
        detect_test=detect_test,
        today=date.today(),
        auto=True,
    )


async def run(task: TaskSpec, how: Options | None = None) -> Result:
    """Run a task to its end, or until it waits for a person."""
    from agentrunner.engine import runs as engine_runs

    how = how or options()
    return await _remembered(await engine_runs.start(task, how), how)


async def resume(
    run_id: str,
    how: Options | None = None,
    *,
    max_loops: int | None = None,
    message: str | None = None,
    on_change: Literal["replan", "continue"] | None = None,
    budget: Sequence[str] = (),
    planner: str | None = None,
    planner_model: str | None = None,
    model: str | None = None,
    by: str = "",
) -> Result:
    """Continue a run; one that ended FAILED or NEEDS_REVIEW starts its next attempt.

    `message` is a text for the planner, of the person `by`; `budget` are grants like "usd=+5";
    `model` is the worker's from now on.
    """
    from agentrunner.engine import runs as engine_runs

    given: dict[str, Any] = {"max_loops": max_loops, "message": message, "on_change": on_change}
    given |= {"planner": planner, "planner_model": planner_model, "model": model}
    given |= {"budget": budget, "by": by}
    how = how or options()
    return await _remembered(await engine_runs.resume(run_id, how, **given), how)


async def respond(
    run_id: str,
    decision: Literal["answer", "approve", "reject"],
    text: str = "",
    *,
    question: str = "",
    edit: str = "",
    by: str = "",
    how: Options | None = None,
) -> Result:
    """Give a waiting run its answer, and continue it.

    `question` is the id of the question that is meant; without it, the one that waits. `edit` is an
    edited plan for "approve". Raises UsageError for an answer that does not fit.
    """
    from agentrunner.engine import runs as engine_runs
    from agentrunner.state.people import Answer

    # The engine checks it against the question that waits, under the run's lock.
    answer = Answer(id=question, kind="ask_human", decision=decision, text=text, edit=edit, by=by)
    how = how or options()
    return await _remembered(await engine_runs.respond(run_id, answer, how), how)


async def accept(
    run_id: str,
    reason: str,
    *,
    criteria: Sequence[str] = (),
    known_red: Sequence[str] = (),
    unchanged: bool = False,
    by: str = "",
    how: Options | None = None,
) -> Result:
    """Record a person's acceptance of an ended run, and verify once more; COMPLETE if the code
    agrees.

    Without `criteria` it covers all of them. `known_red` are tests that were red before for another
    reason.
    """
    from agentrunner.engine import runs as engine_runs

    how = how or options()
    more: dict[str, Any] = {"unchanged": unchanged, "known_red": known_red}
    ended = await engine_runs.accept(run_id, list(criteria), reason, by, how, **more)
    return await _remembered(ended, how)


async def cancel(run_id: str, how: Options | None = None) -> Result:
    """End a run FAILED, after stopping the process that drives it and its worker."""
    from agentrunner.engine import runs as engine_runs

    how = how or options()
    return await _remembered(await engine_runs.cancel(run_id, how), how)


async def _remembered(result: Result, how: Options) -> Result:
    """Cache what `look` and `diff` need of a run while the libraries for it are loaded."""
    from agentrunner.engine import queries

    run_id = result.run_id
    if run_id and (how.state_dir / "runs" / run_id / "checkpoints.sqlite").is_file():
        await aside(queries.remember, how.state_dir, run_id)
    return result


# -- looking at runs ------------------------------------------------------------------------------


async def runs(
    repo: Path | str | None = None, *, state_dir: Path | str | None = None
) -> list[RunEntry]:
    """Return the runs of a repository, or of all, the newest first.

    The end of a run that was killed before it recorded that itself is recorded.
    """
    from agentrunner.results import RunEntry

    found = await aside(listed_runs_sync, repo, state_dir=state_dir)
    return [RunEntry.of(row) for row in found]


def listed_runs_sync(
    repo: Path | str | None = None, *, state_dir: Path | str | None = None
) -> list[ListedRun]:
    """Return the same as `runs` with what else a list shows, as rounds. Blocks."""
    from agentrunner.engine.queries import listed_runs

    return listed_runs(state_folder(state_dir), None if repo is None else Path(repo))


def look_sync(run_id: str, *, state_dir: Path | str | None = None) -> Result:
    """Return the present result of a run."""
    from agentrunner.engine import queries

    return queries.show(state_folder(state_dir), run_id)


look = in_thread(look_sync)


def look_values_sync(run_id: str, *, state_dir: Path | str | None = None) -> dict[str, object]:
    """Return the same as `look` as the JSON values that `show --json` prints, sooner. Blocks."""
    from agentrunner.engine import queries

    return queries.show_values(state_folder(state_dir), run_id)


def worker_at_work_sync(run_id: str, *, state_dir: Path | str | None = None) -> bool:
    """Whether a worker of a run that nobody drives is still at work. Blocks."""
    from agentrunner.engine import queries

    return queries.has_worker(state_folder(state_dir), run_id)


async def follow(
    run_id: str, *, after: int = 0, state_dir: Path | str | None = None
) -> AsyncIterator[Event]:
    """Yield the events of a run as they come, from number `after` + 1 on, also those of another
    process.

    It ends with the result of an attempt that is no longer driven, and where a run that is not
    driven has no further event.
    """
    import asyncio

    from agentrunner.events import read_event

    reader = read_events(run_id, state_dir=state_dir)
    while True:
        driven, lines = await aside(reader.read_new)
        for line in lines:
            if int(line.get("seq", 0)) > after:
                yield read_event(line)
        if not driven and not lines:
            return
        if not lines:
            await asyncio.sleep(FOLLOW_SEC)


def read_events(run_id: str, *, state_dir: Path | str | None = None) -> EventReader:
    """Return a reader of the events of a run; each call of its `read_new` returns further ones.

    For programs that follow a run without an event loop, and want its events as JSON objects.
    """
    from agentrunner.storage.events import EventReader
    from agentrunner.storage.run_folder import RunFolder

    return EventReader(RunFolder.open(state_folder(state_dir), run_id))


def diff_sync(
    run_id: str,
    *,
    number: int | None = None,
    stat: bool = False,
    state_dir: Path | str | None = None,
) -> str:
    """Return what the run changed so far, or in its round `number`, as a unified diff.

    With `stat` a line for each file, and the counts.
    """
    from agentrunner.engine import queries

    return queries.diff(state_folder(state_dir), run_id, number, stat)


diff = in_thread(diff_sync)


def changes_sync(
    run_id: str, *, number: int | None = None, state_dir: Path | str | None = None
) -> list[ChangedFile]:
    """Return the files of `diff` with what happened to each and its lines."""
    from agentrunner.engine import queries

    return queries.changes(state_folder(state_dir), run_id, number)


changes = in_thread(changes_sync)


def undo_sync(run_id: str, *, force: bool = False, state_dir: Path | str | None = None) -> Undone:
    """Put the files back as they were before the run; a second call redoes it.

    Files that were edited since are left alone and are in `refused`, unless `force`. `not_kept` are
    those that nobody can put back.
    """
    from agentrunner.engine import queries

    return queries.undo(state_folder(state_dir), run_id, force)


undo = in_thread(undo_sync)


async def verify(
    run_id: str,
    *,
    mutants_sec: float = 0,
    on_event: Callable[[dict[str, Any]], None] = ignore,
    state_dir: Path | str | None = None,
) -> Verification:
    """Verify once more, from nothing, what a run delivered; the run is not changed.

    `mutants_sec` limits the time spent on mutants, 0 is none. Raises LockHeld for a run that is
    driven, UsageError for one that has delivered nothing.
    """
    from agentrunner.engine import attempts
    from agentrunner.engine import verify as again
    from agentrunner.engine.commits import load_task_of
    from agentrunner.errors import LockHeld
    from agentrunner.storage.locks import run_lock
    from agentrunner.storage.run_folder import RunFolder

    place = state_folder(state_dir)
    folder = RunFolder.open(place, run_id)
    if run_lock(folder).taken():
        raise LockHeld(
            f"{run_id} is being worked on.",
            remedy=f"agentrunner watch {run_id}, and verify it when it has ended or waits",
        )
    return await again.verify(
        folder,
        await aside(load_task_of, folder),
        await attempts.latest(folder),
        state_dir=place,
        environ=os.environ,
        emit=lambda event, **fields: on_event({"event": event, **fields}),
        mutants_sec=mutants_sec,
    )


def delete_old_runs_sync(
    *,
    older_than_days: float | None = None,
    max_bytes: int | None = None,
    dry: bool = False,
    state_dir: Path | str | None = None,
) -> Collected:
    """Delete what is kept of ended runs past their retention, or past `older_than_days`.

    The oldest go as well until the state folder takes no more than `max_bytes`. With `dry` nothing
    is deleted: `removed` are the runs that would be.
    """
    from datetime import UTC, datetime

    from agentrunner.engine.retention import collect_garbage

    place, now = state_folder(state_dir), datetime.now(UTC)
    return collect_garbage(place, now, older_than_days, max_bytes, dry=dry)


delete_old_runs = in_thread(delete_old_runs_sync)
