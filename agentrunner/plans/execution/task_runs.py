"""The runs of a plan's tasks: one small file each, so that any process can continue them.

A task has one run, and one more each time its work could not be merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentrunner.errors import CheckpointCorrupt
from agentrunner.state.lifecycle import TaskState
from agentrunner.storage.index import RunIndex
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import make_private, write_private

LANDING, ALLOWANCE, UNFIT = "landing", "allowance", "unfit"
"""What `TaskRun.asked` is where the plan itself asks: about work that was refused too often, about
work that changes what proves others, and where a run cannot start or continue: each process tries
that again."""


@dataclass(frozen=True)
class TaskRun:
    """One run of a task, and where it works."""

    task_id: str
    number: int
    """Counted from 1."""
    commit: str = ""
    """The commit its work tree was checked out at; "" for one that works in the repository
    itself."""
    parents: tuple[str, ...] = ()
    """The parents of the commit to be made from it."""
    run_id: str = ""
    """"" until the run has begun."""
    asked_for: str = ""
    """A digest of what the run was asked to do; "" until it has started."""
    words: str = ""
    """A person's answer about the work of the run before."""
    words_for: str = ""
    """The question to it, in one line."""
    evidence: str = ""
    """Why there is another run: the conflict, or what was red after the merge."""
    marked: tuple[str, ...] = ()
    """Files that have conflict marks when it starts."""
    broken: tuple[dict[str, Any], ...] = ()
    """Criteria (`CriterionSpec`) that it has to make true again, of tasks it had broken."""
    fixes: int = 0
    """Runs so far that were for such a reason."""
    question: int = 0
    """The plan's question about it; 0 for none."""
    asked: str = ""
    """Id of the run's own question, where it waits with one; "landing" where its work was refused
    too often, "allowance" where it changes what proves others, "unfit" where the run cannot start
    or continue."""
    hollow: tuple[str, ...] = ()
    """Checks of others (`ProvenCriterion.key`) that the latest such question is about."""
    allowed: tuple[str, ...] = ()
    """Those of them that a person agreed to."""


def accepted_apart(task_runs: Iterable[TaskRun], index: RunIndex) -> set[int]:
    """Return the questions about runs that are COMPLETE by now, as a person accepted them."""
    complete = {row.run_id for row in index.runs() if row.state == TaskState.COMPLETE}
    return {
        run.question
        for run in task_runs
        if run.question and run.run_id in complete and run.asked not in (LANDING, ALLOWANCE, UNFIT)
    }


class TaskRunStore:
    """The runs of one plan's tasks. Every method may raise OSError."""

    def __init__(self, folder: PlanFolder) -> None:
        self._folder = folder

    def workspace(self, task_run: TaskRun) -> Path:
        """Return its work tree."""
        return self._folder.workspace(task_run.task_id, task_run.number)

    def save(self, task_run: TaskRun) -> None:
        file = self._file(task_run.task_id, task_run.number)
        make_private(file.parent)
        write_private(file, json.dumps(asdict(task_run)).encode())

    def latest(self, task_id: str) -> TaskRun | None:
        """Return the present or last run of a task."""
        return max(self.of(task_id), key=lambda task_run: task_run.number, default=None)

    def of(self, task_id: str) -> Iterator[TaskRun]:
        for file in self._file(task_id, 0).parent.glob("*.json"):
            yield _read(file)

    def all(self) -> list[TaskRun]:
        """Return all runs of all tasks, those of one task in order."""
        runs = map(_read, self._folder.work.glob("*/*.json"))
        return sorted(runs, key=lambda task_run: task_run.number)

    def begun(self) -> dict[str, list[str]]:
        """Return by task the ids of its runs that have begun, in order."""
        found: dict[str, list[str]] = {}
        for task_run in self.all():
            if task_run.run_id:
                found.setdefault(task_run.task_id, []).append(task_run.run_id)
        return found

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
