"""What all tasks of a plan share, kept beside it: test and set-up, who plans and who works."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from agentrunner.errors.plans import BadCommitAuthor, PlanDamaged
from agentrunner.git.identity import identity_of
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.plans.execution.commit_message import commit_message
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import write_private

_IDENTITY = re.compile(r"^\s*(?P<name>[^<>\n\0]*[^<>\s\0])\s*<(?P<email>[^<>\s\0]+)>\s*$")


class PlanSettings(BaseModel):
    """Options as `run` takes them, each as it was last given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_dir: str
    """Absolute: what relative paths in them mean."""
    options: dict[str, str] = {}
    """`test`, `meta`, `worker`, `sandbox`, `max_loops`."""
    setup: str | None = None
    """The command of `task.setup`."""
    overrides: dict[str, str] = {}
    """`--set key.path=VALUE`, by key."""
    author: str = ""
    """Of the plan's commits, "NAME <EMAIL>"; "" for who the user's git settings name."""
    message: str = ""
    """The template of messages of its tasks' commits; "" for the built-in one."""

    def with_given(
        self,
        options: Mapping[str, str | None],
        setup: str | None,
        overrides: list[str],
        base_dir: Path,
    ) -> PlanSettings:
        """These settings under newly given ones; where none are given, the same."""
        given = {name: value for name, value in options.items() if value is not None}
        if not (given or setup or overrides):
            return self
        more = {text.partition("=")[0].strip(): text for text in overrides}
        return self.model_copy(
            update={
                "base_dir": str(base_dir.absolute()),
                "options": {**self.options, **given},
                "setup": setup if setup is not None else self.setup,
                "overrides": {**self.overrides, **more},
            }
        )

    @property
    def key(self) -> str:
        """Stands for all that a task's run is made under, but for what it may spend."""
        spends = "runner.budget"
        others = {
            name: text for name, text in self.overrides.items() if not name.startswith(spends)
        }
        content = json.dumps([self.options, self.setup, others], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def with_commits(self, author: str | None, message: str | None) -> PlanSettings:
        """These settings with another author and template, where they are given.

        Raises UsageError: `commit-author`, `commit-message`.
        """
        if author:
            read_identity(author)
        if message:
            commit_message(message, title="Title", proof=["proof"], task_id="T", run_id="R")
        given = {"author": author, "message": message}
        return self.model_copy(update={k: v for k, v in given.items() if v is not None})

    def identity(self, clone: CloneStore, environ: Mapping[str, str]) -> Identity:
        """Whose name the plan's commits bear. Blocking."""
        return read_identity(self.author) if self.author else identity_of(clone, environ)


def read_identity(text: str) -> Identity:
    """ "NAME <EMAIL>" as its parts; raises UsageError (`commit-author`)."""
    found = _IDENTITY.match(text)
    if found is None:
        raise BadCommitAuthor(
            f'"{text}" names no author.',
            path="--author",
            remedy='--author "NAME <EMAIL>"',
        )
    return Identity(found["name"], found["email"])


def load_settings(folder: PlanFolder, base_dir: Path) -> PlanSettings:
    """What is kept of a plan; `base_dir` where nothing is. Raises UsageError (`plan-damaged`)."""
    try:
        return PlanSettings.model_validate_json(folder.settings.read_bytes())
    except FileNotFoundError:
        return PlanSettings(base_dir=str(base_dir.absolute()))
    except ValidationError as error:
        raise PlanDamaged(
            f"The settings of the plan in {folder.settings} cannot be read.",
            path=str(folder.settings),
            remedy=f"rm {folder.settings}, and give the options again",
        ) from error


def save_settings(folder: PlanFolder, settings: PlanSettings) -> None:
    """Keep them for the next `plan run`."""
    folder.make()
    write_private(folder.settings, settings.model_dump_json(indent=1).encode())
