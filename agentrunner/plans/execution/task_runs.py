"""What is known of a task's runs: one small file each, so that any process can go on with them.

A task has one run, and one more each time its work could not be brought together with the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentrunner.errors import CheckpointCorrupt
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import make_private, write_private


@dataclass(frozen=True)
class TaskRun:
    """One run of a task, and where it works."""

    task_id: str
    number: int
    """From 1 on."""
    commit: str = ""
    """What its work tree was checked out at; "" for one that works in the repository itself."""
    parents: tuple[str, ...] = ()
    """Of the commit that comes of it."""
    run_id: str = ""
    """"" until the run has begun."""
    asked_for: str = ""
    """Stands for what the run was told to do; "" until it has begun."""
    words: str = ""
    """What a person said to the work of the run before."""
    words_for: str = ""
    """What they were asked, in one line."""
    evidence: str = ""
    """Why there is another run: the conflict, or what was red after the merge."""
    marked: tuple[str, ...] = ()
    """Files that it begins with the marks of a conflict in."""
    broken: tuple[dict[str, Any], ...] = ()
    """Criteria (`CriterionSpec`) that it has to make true again, of tasks it had broken."""
    fixes: int = 0
    """Runs so far that were for such a reason."""
    question: int = 0
    """The plan's question about it; 0 for none."""
    asked: str = ""
    """Id of the run's own question, where it waits with one; "landing" where its work was
    refused too often, "allowance" where it changes what proves others, "unfit" where the run
    cannot begin or go on."""
    hollow: tuple[str, ...] = ()
    """Checks of others (`Proof.key`) that the latest such question is about."""
    allowed: tuple[str, ...] = ()
    """Those that a person has said yes to."""


class TaskRunStore:
    """The runs of one plan's tasks. Every method may raise OSError."""

    def __init__(self, folder: PlanFolder) -> None:
        self._folder = folder

    def workspace(self, task_run: TaskRun) -> Path:
        """Its work tree."""
        return self._folder.workspace(task_run.task_id, task_run.number)

    def save(self, task_run: TaskRun) -> None:
        """Keep a run as it is now."""
        place = self._file(task_run.task_id, task_run.number)
        make_private(place.parent)
        write_private(place, json.dumps(asdict(task_run)).encode())

    def latest(self, task_id: str) -> TaskRun | None:
        """The run that a task is in, or came to an end with."""
        return max(self.of(task_id), key=lambda task_run: task_run.number, default=None)

    def of(self, task_id: str) -> Iterator[TaskRun]:
        """All runs of a task."""
        for file in self._file(task_id, 0).parent.glob("*.json"):
            yield _read(file)

    def all(self) -> Iterator[TaskRun]:
        """All runs of all tasks."""
        for file in self._folder.work.glob("*/*.json"):
            yield _read(file)

    def _file(self, task_id: str, number: int) -> Path:
        return self._folder.work / task_id / f"{number}.json"


def _read(file: Path) -> TaskRun:
    try:
        known: dict[str, Any] = json.loads(file.read_bytes())
        names = ("parents", "marked", "broken", "hollow", "allowed")
        lists = {name: tuple(known[name]) for name in names if name in known}
        return TaskRun(**{**known, **lists})
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointCorrupt(
            f"{file} cannot be read: {error}.", path=str(file), remedy=f"rm {file}"
        ) from error
