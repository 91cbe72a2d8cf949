"""A plan as files for people and other tools: plan export, plan import."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from agentrunner import environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import tell
from agentrunner.commands.plan_place import repository, store_of
from agentrunner.environment import user_name
from agentrunner.errors.plans import BadExportFolder, NoPlan
from agentrunner.screens.layout import count
from agentrunner.text.times import stamp_now

PARTS = {"wbs.json", "design", "state", "tasks", "history"}
"""The entries of an exported folder."""


def export(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new or empty folder.")],
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier export in this folder.")
    ] = False,
    repo: opt.PlanRepo = None,
    state_dir: opt.StateDir = None,
) -> int:
    """Write the plan as JSON files: its tree, designs, tasks and history."""
    from agentrunner.plans.serialization import files_of
    from agentrunner.storage.plan_shelf import way_to_a_plan

    store = store_of(repo, state_dir)
    plan = store.load()
    if not plan.version:
        raise NoPlan(
            "There is no plan yet, so there is nothing to export.",
            remedy=way_to_a_plan(environment.state_dir(state_dir), repository(repo)),
        )
    history: list[Mapping[str, Any]] = [asdict(change) for change in store.changes()]
    write_folder(folder, files_of(plan, history), force=force)
    tell(f"Version {plan.version}, {count(len(plan.tasks), 'task')}, written to {folder}.")
    return 0


def import_plan(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What plan export wrote.")],
    repo: opt.PlanRepo = None,
    state_dir: opt.StateDir = None,
) -> int:
    """Take the plan in a folder in place of this one; plan undo takes that back."""
    from agentrunner.plans.plan import PlanTaskStatus
    from agentrunner.plans.replacement import take_over
    from agentrunner.plans.serialization import plan_from_files, unread_edits
    from agentrunner.plans.store import PlanStore, StoredTask
    from agentrunner.storage.locks import me
    from agentrunner.storage.plan_folder import plan_folder

    found = plan_from_files(folder)
    place = plan_folder(environment.state_dir(state_dir), repository(repo))
    place.make()
    lock = place.lock()
    lock.acquire(me("", stamp_now()))  # held by the process that executes the plan
    with contextlib.closing(lock):
        store = PlanStore(place.plan)
        current = store.load()
        unread = unread_edits(folder, found, current)
        taken = take_over(current, found)
        if replace(taken.plan, version=current.version) == current:
            _tell_unread(unread)
            tell(f"Nothing changed: the plan is as it was, version {current.version}.")
            return 0
        # Before saving: if we are killed, a task that is now another one must not count as done.
        for task_id in store.standings().keys() & set(taken.anew):
            detail = "It came with another plan."
            store.note(StoredTask(task_id, PlanTaskStatus.PENDING, detail=detail), stamp_now())
        message = f"Imported from {folder}"
        store.save(taken.plan, at=stamp_now(), kind="import", author=user_name(), message=message)
    _tell_unread(unread)
    tell(f"Version {taken.plan.version}, {count(len(taken.plan.tasks), 'task')}.")
    tell("Next:  agentrunner plan show   |   agentrunner plan undo")
    return 0


def _tell_unread(unread: list[tuple[str, str]]) -> None:
    for name, design in unread:
        tell(f"{name} was edited and is not read; what counts is in {design}.")


def write_folder(folder: Path, files: Iterable[tuple[str, str]], *, force: bool) -> None:
    """Write relative paths and texts as a whole folder, which appears at once or not at all.

    Raises UsageError (`export-folder`) for a folder that holds anything else, and for an earlier
    export unless `force`.
    """
    place = folder.absolute()
    there = _check_free(place, force=force)
    place.parent.mkdir(parents=True, exist_ok=True)
    mark = secrets.token_hex(4)
    new, old = (place.with_name(f".{place.name}.{mark}.{end}") for end in ("new", "old"))
    try:
        for name, text in files:
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        if there:
            place.rename(old)
        new.rename(place)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _check_free(place: Path, *, force: bool) -> bool:
    """Whether there is an earlier export to replace."""
    if not os.path.lexists(place):
        return False
    real = place.is_dir() and not place.is_symlink()
    names = {path.name for path in place.iterdir()} if real else {""}
    if not names:
        return False
    if not names <= PARTS or not _is_export(place):
        raise BadExportFolder(
            f"{place} holds something else than a plan, which stays as it is.",
            path=str(place),
            remedy="name a new folder",
        )
    if not force:
        raise BadExportFolder(
            f"{place} holds an earlier export.",
            path=str(place),
            remedy="--force replaces it, or name a new folder",
        )
    return True


def _is_export(place: Path) -> bool:
    try:
        return "node_index" in json.loads((place / "wbs.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False
