"""The folder of one repository's plan: the plan, the private clone and the tasks' work trees."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from agentrunner.storage.locks import FileLock
from agentrunner.storage.run_folder import make_private

SLUG_LENGTH = 40


@dataclass(frozen=True)
class PlanFolder:
    """Where everything of a plan is; for its owner only, and never shown to a worker as a whole."""

    root: Path

    @property
    def plan(self) -> Path:
        """The database of `PlanStore`."""
        return self.root / "plan.sqlite"

    @property
    def clone(self) -> Path:
        """The private clone of `CloneStore`."""
        return self.root / "clone.git"

    @property
    def work(self) -> Path:
        """Work trees of tasks that are under way."""
        return self.root / "work"

    @property
    def settings(self) -> Path:
        """What all tasks share: test, setup, who plans and who works."""
        return self.root / "settings.json"

    @property
    def begun(self) -> Path:
        """The options of the latest `plan run` that are no settings."""
        return self.root / "begun.json"

    @property
    def log(self) -> Path:
        """What happened while the plan ran: one line of JSON each."""
        return self.root / "log.jsonl"

    @property
    def conversation(self) -> Path:
        """What was asked of a planner about the plan, and its replies, as files."""
        return self.root / "conversation"

    def workspace(self, task_id: str, number: int) -> Path:
        """The work tree of a task's run, counted from 1 for each task."""
        return self.work / task_id / str(number)

    def make(self) -> None:
        """Make the folder, for its owner only."""
        make_private(self.root)

    def lock(self) -> FileLock:
        """The lock of the process that carries the plan out; the folder must exist."""
        return FileLock(self.root / "run.lock", "this plan")


def plan_folder(state_dir: Path, repo: Path) -> PlanFolder:
    """The folder of the plan of a repository; nothing is made."""
    return PlanFolder(_plans(state_dir) / repository_key(repo))


def is_workspace(state_dir: Path, folder: Path) -> bool:
    """Whether a folder is the work tree of a plan's task, and there: what it has did not land."""
    return folder.is_dir() and folder.resolve().is_relative_to(_plans(state_dir).resolve())


def _plans(state_dir: Path) -> Path:
    return state_dir / "plans"


def repository_key(repo: Path) -> str:
    """The name of folders that are about one repository.

    Made of the path with its links resolved: an inode would be another's after the repository is
    gone, and a device number changes when a machine starts again.
    """
    place = repo.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", place.name.lower()).strip("-")[:SLUG_LENGTH].strip("-")
    digest = hashlib.sha256(str(place).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{slug or 'repository'}-{digest}"
