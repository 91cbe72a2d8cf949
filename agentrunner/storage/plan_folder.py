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
    """The folder of a plan, for its owner only. A worker never sees it as a whole."""

    root: Path

    @property
    def state_dir(self) -> Path:
        """Return the state folder, which has the runs of the plan's tasks, too."""
        return self.root.parent.parent

    @property
    def plan(self) -> Path:
        """Return the database of `PlanStore`."""
        return self.root / "plan.sqlite"

    @property
    def proposal(self) -> Path:
        """Return the file of the change that is proposed and waits."""
        return self.root / "proposal.json"

    @property
    def clone(self) -> Path:
        """Return the private clone of `CloneStore`."""
        return self.root / "clone.git"

    @property
    def work(self) -> Path:
        """Return the folder of work trees of tasks in progress."""
        return self.root / "work"

    @property
    def settings(self) -> Path:
        """Return the settings that all tasks share: test, setup, who plans and who works."""
        return self.root / "settings.json"

    @property
    def begun(self) -> Path:
        """Return the file with options of the latest `plan run` that are not settings."""
        return self.root / "begun.json"

    @property
    def log(self) -> Path:
        """Return the log of what happened while the plan ran: one line of JSON each."""
        return self.root / "log.jsonl"

    @property
    def conversation(self) -> Path:
        """Return the folder of what a planner was asked about the plan, and its replies."""
        return self.root / "conversation"

    def workspace(self, task_id: str, number: int) -> Path:
        """Return the work tree of a task's run, counted from 1 for each task."""
        return self.work / task_id / str(number)

    def make(self) -> None:
        """Make the folder, for its owner only."""
        make_private(self.root)

    @property
    def driven(self) -> bool:
        """Whether a process executes the plan now."""
        return self.root.is_dir() and self.lock().taken()

    @property
    def attended(self) -> bool:
        """Whether a process executes the plan now, or goes on with it once its questions are
        answered.
        """
        return self.driven or (self.root.is_dir() and self.attending().taken())

    def attending(self) -> FileLock:
        """Return the lock of the terminal that executes the plan, and then asks what stopped it."""
        return FileLock(self.root / "attend.lock", "this plan")

    def lock(self) -> FileLock:
        """Return the lock of the process that executes the plan; the folder must exist."""
        remedy = "wait until it ends, or stop it: agentrunner plan stop"
        return FileLock(self.root / "run.lock", "this plan", remedy=remedy)


def plan_folder(state_dir: Path, repo: Path) -> PlanFolder:
    """Return the folder of the plan of a repository; nothing is created."""
    return PlanFolder(_plans(state_dir) / repository_key(repo))


def is_workspace(state_dir: Path, folder: Path) -> bool:
    """Whether a folder is an existing work tree of a plan's task: its work is not merged."""
    return folder.is_dir() and folder.resolve().is_relative_to(_plans(state_dir).resolve())


def _plans(state_dir: Path) -> Path:
    return state_dir / "plans"


def repository_key(repo: Path) -> str:
    """Return the name of folders that belong to one repository.

    Made of the path with its links resolved: an inode may belong to another file once the
    repository is gone, and a device number changes when a machine restarts.
    """
    place = repo.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", place.name.lower()).strip("-")[:SLUG_LENGTH].strip("-")
    digest = hashlib.sha256(str(place).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{slug or 'repository'}-{digest}"
