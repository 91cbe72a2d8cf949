"""Look at runs, and undo or delete them: list, show, logs, diff, undo, gc."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrunner import api, environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import (
    Output,
    interactive,
    paint_for,
    show,
    show_json,
    tell,
    width_of,
)
from agentrunner.commands.which_run import git_of, here, resolve
from agentrunner.errors import SandboxUnavailable
from agentrunner.errors.command_line import BadOption
from agentrunner.errors.runs import NoTestOutput, UnknownRound
from agentrunner.errors.task_files import BadValue
from agentrunner.screens.layout import cell, count, flat
from agentrunner.state.lifecycle import NOT_STARTED, UNDONE
from agentrunner.state.rounds import round_of
from agentrunner.storage.events import Event as EventLine
from agentrunner.storage.events import read_events
from agentrunner.storage.locks import is_driven
from agentrunner.storage.run_folder import RunFolder
from agentrunner.text.terminal import cell_width, sanitize

if TYPE_CHECKING:
    from agentrunner.api import EventReader
    from agentrunner.results import Result

FOLLOW_SEC = 0.25


STATES = ("waiting", "review", "stopped", "running", "complete", "failed", UNDONE, NOT_STARTED)
"""Values of `list --state`: a word of the state as lists show it."""


@opt.with_file
def list_runs(
    everywhere: Annotated[bool, typer.Option("--all", help="Runs of all repositories.")] = False,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help=f"Only those that are {', '.join(STATES)}."),
    ] = None,
    number: Annotated[
        int | None, typer.Option("--number", "-n", min=1, metavar="N", help="The newest N.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    state_dir: opt.StateDir = None,
) -> int:
    """The runs of this repository, the newest first."""
    from agentrunner.screens.run_table import runs_table

    rows = api.listed_runs_sync(None if everywhere else here(), state_dir=state_dir)
    wanted = _find_state(state) if state else ""
    found = [row for row in rows if not wanted or wanted in (row.stands, *row.stands.split())]
    shown = found[:number]
    if as_json:
        for row in shown:
            show_json(api.RunEntry.of(row).as_dict())
        return 0
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    now = datetime.now().astimezone()
    show(
        runs_table(
            [asdict(row) for row in shown],
            now,
            width=width,
            paint=paint,
            all_repositories=everywhere,
            left_out=len(found) - len(shown),
            state=wanted,
        )
    )
    return 0


def _find_state(name: str) -> str:
    """Return the one of STATES that begins with `name`; raises UsageError if there is none."""
    from agentrunner.text.likeness import likest

    word = name.strip().lower().replace("_", " ").removeprefix("needs ")
    for state in STATES:
        if word and (state.startswith(word) or word.startswith(state)):
            return state
    near = likest(word, STATES)
    raise BadOption(
        f'no run can be "{name}"; one is {", ".join(STATES)}.',
        path="--state",
        remedy=f"did you mean {near}?" if near else "agentrunner list --state waiting",
    )


@opt.with_file
def show_run(
    run: opt.Run = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result object.")] = False,
    state_dir: opt.StateDir = None,
) -> int:
    """How a run stands: what is proven, what is not, what it waits for."""
    from agentrunner.screens.people import people_screen
    from agentrunner.screens.summary import summary_screen

    folder, run_id = resolve(run, state_dir)
    if as_json:
        return show_json(api.look_values_sync(run_id, state_dir=folder))
    result = api.look_sync(run_id, state_dir=folder)
    target = run_id if run else ""
    if decided := people_screen(result.people, width=width_of(sys.stdout)):
        tell(f"{decided}\n")
    if result.waiting:
        from agentrunner.commands.drive import show_waiting

        show_waiting(result, folder, target)
        return 0
    from agentrunner.commands.drive import warnings_of

    driven = is_driven(folder, run_id)
    screen = summary_screen(
        result,
        warnings=warnings_of(folder, run_id),
        width=width_of(sys.stdout),
        paint=paint_for(sys.stdout),
        home=os.environ.get("HOME", ""),
        target=target,
        all_rows=True,
        git=git_of(result),
        driven=driven,
        at_work=not driven and api.worker_at_work_sync(run_id, state_dir=folder),
    )
    if sys.stdout.isatty():
        from agentrunner.commands.paging import page

        page(screen, sys.stdout)
    else:
        show(screen)
    return 0


@opt.with_file
def logs(
    run: opt.Run = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow it until it ends.")
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("--round", min=0, metavar="N", help="Only this round; 0: before."),
    ] = None,
    tests: Annotated[
        bool, typer.Option("--tests", help="All that the test command printed last.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The events, one JSON object per line.")
    ] = False,
    state_dir: opt.StateDir = None,
) -> int:
    """What happened in a run, and what its workers said and did."""
    from agentrunner.screens.log import LogView

    state, run_id = resolve(run, state_dir)
    if tests:
        from agentrunner.storage.run_folder import RunFolder

        return show_test_output(RunFolder.open(state, run_id), run_id, number, as_json=as_json)
    view = LogView(width=width_of(sys.stdout), paint=paint_for(sys.stdout), only_round=number)

    for event in _events(api.read_events(run_id, state_dir=state), follow):
        lines = view.feed(event)
        if as_json:
            lines = [json.dumps(event)] if number in (None, view.rounds) else []
        for line in lines:
            show(line)
    for line in view.flush() if not as_json else ():
        show(line)
    if number is not None and number > view.rounds:
        raise UnknownRound.of(run_id, view.rounds, number)
    return 0


def _events(reader: EventReader, follow: bool) -> Iterator[EventLine]:
    """Yield the events so far, and further ones as long as the run is driven if it is followed."""
    driven, events = reader.read_new()
    yield from events
    while driven and follow:
        time.sleep(FOLLOW_SEC)
        driven, events = reader.read_new()
        yield from events


@opt.with_file
def diff(
    run: opt.Run = None,
    number: Annotated[
        int | None, typer.Option("--round", min=1, metavar="N", help="Only this round.")
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only file names and counts.")] = False,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """What a run changed: in a terminal in colours, through $PAGER where it is long.

    Elsewhere it is a patch as it is, for git apply.
    """
    from agentrunner.commands.paging import show_diff

    folder, run_id = resolve(run, state_dir)
    if as_json:
        files = api.changes_sync(run_id, number=number, state_dir=folder)
        text = None if stat else api.diff_sync(run_id, number=number, state_dir=folder)
        show_json({"run_id": run_id, "round": number, "files": files, "diff": text})
    elif stat and sys.stdout.isatty():
        from agentrunner.screens.diff import stat_screen

        files = api.changes_sync(run_id, number=number, state_dir=folder)
        show(stat_screen(files, width_of(sys.stdout), paint_for(sys.stdout)))
    elif stat:
        text = api.diff_sync(run_id, number=number, stat=True, state_dir=folder)
        show(text.rstrip("\n"))
    elif text := api.diff_sync(run_id, number=number, state_dir=folder):
        show_diff(text)
    else:
        where = f" in round {number}" if number else ""
        tell(f"{run_id} has changed no file{where}.", sys.stderr)
    return 0


def undo(
    run: opt.FittingRun = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also undo files that were edited since.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    no_input: opt.NoInput = False,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Put the files back as they were before the run. A second undo takes that back."""
    from agentrunner.commands.pick import run_for

    def files_of(run_id: str) -> str:
        paths = _listed([one["path"] for one in api.changes_sync(run_id, state_dir=state_dir)])
        if api.look_values_sync(run_id, state_dir=state_dir).get("undone"):
            return f"Its files were put back; this brings them again: {paths}."
        return f"It changed {paths}." if paths else ""

    output = Output(json=as_json, no_input=yes or no_input, state_dir=state_dir)
    run_id = run_for("undo", run, output, about=files_of)
    done = api.undo_sync(run_id, force=force, state_dir=state_dir)
    if as_json:
        show_json({"run_id": run_id, **done.as_dict()})
        return 2 if done.refused else 0
    what = (
        f"restored to what {run_id} left"
        if done.undo_taken_back
        else f"put back as before {run_id}"
    )
    if done.files or done.refused:
        listed = f": {_listed(done.files)}" if done.files else ""
        tell(f"{count(len(done.files), 'file')} {what}{listed}.")
    else:
        tell(f"There was nothing to change: the files are as before {run_id}.")
    for name in done.not_kept:
        tell(f"  cannot be put back, what was in it is not kept: {flat(str(name))}")
    for name in sorted(set(done.refused).difference(done.not_kept)):
        why = "it cannot be written" if force else "edited since"
        tell(f"  left alone, {why}: {flat(str(name))}")
    if not done.undo_taken_back:
        for sentence in _beyond_undo(api.look_sync(run_id, state_dir=state_dir)):
            tell(sentence)
    if done.refused:
        others = "the others" if done.not_kept else "also the files above"
        if not force:
            tell(f"Next:  agentrunner undo {run_id} --force   {others}")
        return 2
    if done.files and not done.undo_taken_back:
        tell(f"Next:  agentrunner undo {run_id}   brings them again")
    return 0


def _beyond_undo(result: Result) -> Iterator[str]:
    """Yield what an undo does not touch: the checkout of a run that had its own, and its commit."""
    if result.worktree and not result.part_of:
        yield f"The run's files are in {flat(result.worktree)}; your checkout was not touched."
    if commit := result.commit:
        branch = flat(commit.branch)
        drop = f"git branch -D {branch}" if result.worktree else f"git revert {commit.id[:10]}"
        yield f"The commit {commit.id[:10]} stays on {branch}; to take it away:  {drop}"


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 4} more" if len(paths) > 5 else ""
    return ", ".join(map(flat, paths[: 4 if more else 5])) + more


@opt.with_file
def gc(
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than", metavar="DAYS", min=0, help="Instead of each run's own retention."
        ),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size", metavar="SIZE", help="Delete ended runs until it takes no more."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    no_input: opt.NoInput = False,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Delete what is kept of ended runs past their retention (14 days, or the task file's).

    With --max-size, as in 500m or 2g, the oldest ended runs go as well until that is kept to.

    It is about the runs of all repositories: in a terminal they are listed and you are asked.

    A deleted run's note goes, too, unless it was edited or is in git.

    Containers are removed whose AgentRunner was killed together with the engine.
    """
    import asyncio

    from agentrunner.storage.index import RunIndex
    from agentrunner.storage.state_size import disk_bytes, gigabytes

    place = environment.state_dir(state_dir)
    most = None if max_size is None else _size(max_size)
    repos = {row.run_id: row.repo for row in RunIndex(place).runs()}
    if not yes and interactive(Output(json=as_json, no_input=no_input)):
        found = api.delete_old_runs_sync(
            older_than_days=older_than, max_bytes=most, dry=True, state_dir=place
        )
        if found["removed"] and not _may_delete(found["removed"], repos):
            tell("Nothing was deleted.")
            return 0
    done = api.delete_old_runs_sync(older_than_days=older_than, max_bytes=most, state_dir=place)
    if as_json:
        containers = asyncio.run(_remove_dead_containers())
        return show_json(
            {"removed": done["removed"], "kept": done["kept"], "containers": containers}
        )
    tell(f"{count(len(done['removed']), 'run')} deleted.")
    per_repo = Counter(repos[run_id] for run_id in done["removed"] if run_id in repos)
    for repo, number in sorted(per_repo.items()):
        tell(f"  {number} of {flat(repo)}")
    if most is not None and (left := disk_bytes([place])) > most:
        tell(f"{gigabytes(left)} are kept: what is left is at work, waits, or is not merged.")
    if containers := asyncio.run(_remove_dead_containers()):
        tell(f"{count(len(containers), 'container')} of killed runs removed.")
    return 0


def _may_delete(run_ids: Sequence[str], repos: Mapping[str, str]) -> bool:
    """List the runs, each with its repository, and ask whether they may go."""
    from agentrunner.commands.command_line import is_yes
    from agentrunner.commands.question_prompt import ask_line

    widest = max(map(cell_width, run_ids), default=0)
    for run_id in run_ids:
        row = f"  {cell(flat(run_id), widest)}  {flat(repos.get(run_id, ''))}"
        show(row.rstrip(), sys.stderr)
    return is_yes(ask_line(f"Delete {count(len(run_ids), 'run')} for good? [y/N] "))


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)b?", text.strip().lower())
    if match is None:
        raise BadValue(
            f'"{text}" is no size',
            path="--max-size",
            remedy="write a number and a unit, as in 500m or 2g",
        )
    return int(float(match[1]) * {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match[2]])


async def _remove_dead_containers() -> list[str]:
    """Return the names of the removed containers; [] if no engine answers."""
    from agentrunner.sandboxes.docker.engine import Engine
    from agentrunner.sandboxes.docker.owners import remove_dead

    try:
        engine = await Engine.connect(os.environ)
    except SandboxUnavailable:
        return []
    with contextlib.closing(engine):
        return await remove_dead(engine)


def show_test_output(
    folder: RunFolder, run_id: str, number: int | None, *, as_json: bool = False
) -> int:
    """Print the test command's output of round `number`, by default of its last run.

    With `as_json` as one object, with its exit code and the red tests. Raises UsageError if it did
    not run in that round.
    """
    found, rounds = test_runs(folder)
    wanted = max(found, default=None) if number is None else number
    if wanted is None or wanted not in found:
        place = f"in round {wanted}" if wanted is not None else "in this run"
        known = ", ".join("before the run" if one == 0 else str(one) for one in sorted(found))
        raise NoTestOutput(
            f"{run_id} has no output of the test command {place}"
            + (f"; it ran in: {known}." if known else f" ({count(rounds, 'round')})."),
            remedy=f"agentrunner logs {run_id}",
        )
    event = found[wanted]
    text = (folder.root / _kept(folder, event)).read_text(encoding="utf-8", errors="replace")
    if as_json:
        data = {
            "run_id": run_id,
            "round": wanted,
            "exit_code": event.get("exit_code"),
            "red": event.get("red") or [],
            "output": text,
        }
        return show_json(data)
    # A pipe gets it unchanged; a terminal gets no foreign control sequences.
    show((sanitize(text) if sys.stdout.isatty() else text).rstrip("\n"))
    return 0


def test_runs(folder: RunFolder) -> tuple[dict[int, Mapping[str, Any]], int]:
    """Return the event of the last test command by round (0: before the run), and all rounds."""
    found: dict[int, Mapping[str, Any]] = {}
    rounds = 0
    for event in read_events(folder.events_file):
        if event.get("event") == "worker_started":
            rounds = round_of(event.get("round"), event.get("loop"))
        elif (
            event.get("event") in ("check", "baseline")
            and event.get("target") == "test"
            and _kept(folder, event)
        ):
            found[rounds] = event
    return found, rounds


def _kept(folder: RunFolder, event: Mapping[str, Any]) -> str:
    """Return the file's path below the run's folder; "" if it is not kept."""
    path = PurePosixPath(str(event.get("output") or ""))
    plain = path.parts[:1] == ("checks",) and ".." not in path.parts
    return str(path) if plain and (folder.root / path).is_file() else ""
