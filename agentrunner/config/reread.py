"""Reads the files of a run again: what changed in them is taken, all else stays as the run has it.

What options set, at the start or later, is written in no file. So only what the file says now and
did not say before is taken, setting by setting.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from agentrunner.config.document import TaskSource, settings_of
from agentrunner.config.load import load_task, named_texts
from agentrunner.config.spec import RunnerSection, TaskSpec

WORKERS = ("worker", "workers")
"""Two ways to write one setting: who works."""


def reread(spec: TaskSpec, environ: Mapping[str, str]) -> TaskSpec:
    """Return the task as its files are now; what options set at the start stays.

    A planner or worker that the files name no more is of kind `auto`. Raises as `load_task`.
    """
    source = spec.task_file or spec.prd_file
    if source is None or source.path is None:
        return spec
    path = Path(source.path)
    is_prd = spec.prd_file is not None and spec.prd_file.path == source.path
    by_option = is_prd and path.parent != Path(spec.base_dir)
    kind: Literal["file", "prd"] = "prd" if by_option else "file"
    named = TaskSource(kind, source.path)
    now = load_task(named, environ=environ, cwd=Path(spec.base_dir), auto=True)
    text = now.task_file.text if now.task_file else ""
    before, after = (settings_of(one, source.path, is_prd=is_prd) for one in (source.text, text))
    options = {name for name, place in spec.places.items() if place.startswith("--")}
    runner, changed = _taken(spec.runner, now.runner, before, after, options)
    task = now.task.model_copy(update={"test": now.task.test or spec.task.test})
    known = {name for name in spec.places if name not in options}
    places = {
        name: place
        for name, place in now.places.items()
        if name[:5] == "task." or name in known or _within(name, changed)
    }
    gone = {name for name in known if _within(name, changed)}
    fresh = spec.model_copy(
        update={
            "task": task,
            "runner": runner,
            "prd_text": now.prd_text,
            "criteria": now.criteria,
            "task_file": now.task_file,
            "prd_file": now.prd_file,
            "language": now.language,
            "note_language": now.note_language,
            "places": {k: v for k, v in spec.places.items() if k not in gone} | places,
        }
    )
    return fresh.model_copy(update=named_texts(fresh, now))


def _taken(
    kept: RunnerSection,
    now: RunnerSection,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    options: Collection[str],
) -> tuple[RunnerSection, set[str]]:
    """Return the settings with what the file changed in them, and the dotted names of that."""
    update: dict[str, Any] = {}
    changed: set[str] = set()
    alone = [one for one in RunnerSection.model_fields if one not in WORKERS]
    if before.get("workers") == after.get("workers"):
        alone.append("worker")
    elif not any(_within(name, {f"runner.{one}" for one in WORKERS}) for name in options):
        update |= {one: getattr(now, one) for one in WORKERS}
        changed |= {f"runner.{one}" for one in WORKERS}
    for section in alone:
        old, new = before.get(section), after.get(section)
        if old != new:
            name = f"runner.{section}"
            ours, theirs = getattr(kept, section), getattr(now, section)
            update[section], names = _merged(name, ours, theirs, (old, new), options)
            changed |= names
    return kept.model_copy(update=update), changed


def _merged(
    name: str, ours: Any, theirs: Any, written: tuple[Any, Any], options: Collection[str]
) -> tuple[Any, set[str]]:
    """Return a setting, or a section of them, with what was `written` in it before and now."""
    if not isinstance(ours, BaseModel) or not isinstance(theirs, BaseModel):
        return (ours, set()) if name in options else (theirs, {name})
    old, new = (one if isinstance(one, Mapping) else {} for one in written)
    asked = f"{name}.kind"
    if old.get("kind") != new.get("kind") and asked not in options:
        # What another kind was told is nothing to this one.
        mine = {
            option.removeprefix(f"{name}."): getattr(ours, option.removeprefix(f"{name}."))
            for option in options
            if option.rpartition(".")[0] == name
        }
        return theirs.model_copy(update=mine), {name}
    update = {}
    changed = set()
    for field in type(theirs).model_fields:
        full = f"{name}.{field}"
        if old.get(field) != new.get(field) and not _within(full, options):
            update[field] = getattr(theirs, field)
            changed.add(full)
    return ours.model_copy(update=update), changed


def _within(name: str, names: Collection[str]) -> bool:
    """Whether it is one of these dotted names, or a setting of one of them."""
    return any(name == one or name.startswith(f"{one}.") for one in names)
