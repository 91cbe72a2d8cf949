"""Settings that all tasks of a plan share, saved beside it: test, set-up, planner, worker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentrunner.config.agents import OF_ONE_KIND, is_other_kind
from agentrunner.config.layers import KINDS, check_names, key_of, kind_named, option_name
from agentrunner.errors.plans import BadCommitAuthor, PlanDamaged
from agentrunner.git.identity import identity_of
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.plans.execution.commit_message import commit_message
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import write_private
from agentrunner.text.lazy_regex import lazy_regex

_IDENTITY = lazy_regex(r"^\s*+(?P<name>[^<>\n\0]*[^<>\s\0])\s*<(?P<email>[^<>\s\0]+)>\s*$")


class PlanSettings(BaseModel):
    """Options as `run` takes them, each as it was last given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_dir: str
    """Absolute: relative paths in the settings start here."""
    options: dict[str, str] = {}
    """`test`, `meta`, `worker`, `sandbox`, `max_loops`."""
    setup: str | None = None
    """The command of `task.setup`."""
    overrides: dict[str, str] = {}
    """`--set key.path=VALUE`, by key."""
    author: str = ""
    """Author of the plan's commits, "NAME <EMAIL>"; "" for the one in the user's git settings."""
    message: str = ""
    """The template of messages of its tasks' commits; "" for the built-in one."""
    left: tuple[str, ...] = Field((), exclude=True)
    """Settings that were kept for another planner or worker, and are not any more."""

    def with_given(
        self,
        options: Mapping[str, str | None],
        setup: str | None,
        overrides: list[str],
        base_dir: Path,
        kinds: Callable[[PlanSettings], Mapping[str, str]] = lambda kept: {},
    ) -> PlanSettings:
        """Return these settings, overridden by newly given ones.

        What was kept for another kind of planner or worker is left out. `kinds` returns the kinds
        that a task with the kept settings has, by section, for those that no option names. Raises
        UsageError (`bad-option`) for an option that `run` does not have.
        """
        check_names(options)
        given = {name: value for name, value in options.items() if value is not None}
        if not (given or setup or overrides):
            return self
        more = {key_of(text): text for text in overrides}
        left = self._for_other_kinds(overrides, given, kinds)
        kept = {name: value for name, value in self.options.items() if name not in left}
        kept_overrides = {key: text for key, text in self.overrides.items() if key not in left}
        return self.model_copy(
            update={
                "base_dir": str(base_dir.absolute()),
                "options": {**kept, **given},
                "setup": setup if setup is not None else self.setup,
                "overrides": {**kept_overrides, **more},
                "left": tuple(name for name in left if name not in {**given, **more}),
            }
        )

    def _for_other_kinds(
        self,
        overrides: list[str],
        given: Mapping[str, str],
        kinds: Callable[[PlanSettings], Mapping[str, str]],
    ) -> list[str]:
        """Return names of options and settings kept for a kind that newly given ones replace."""
        found: list[str] = []
        for section, model in KINDS.items():
            wanted = kind_named(section, overrides, given)
            if wanted is None:
                continue
            whole = f"runner.{section}"
            begins = tuple(f"{whole}.{name}." for name in OF_ONE_KIND[section])
            kept = [name for name in (section, model) if name in self.options]
            kept += [k for k in self.overrides if k == whole or f"{k}.".startswith(begins)]
            known = kind_named(section, self.overrides.values(), self.options)
            if kept and not known:
                known = kinds(self).get(section)
            found += kept if not known or is_other_kind(known, wanted) else []
        return found

    @property
    def key(self) -> str:
        """Return a digest of all settings that a task's run depends on, without its budget."""
        spends = "runner.budget"
        others = {
            name: text for name, text in self.overrides.items() if not name.startswith(spends)
        }
        content = json.dumps([self.options, self.setup, others], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def with_commits(self, author: str | None, message: str | None) -> PlanSettings:
        """Return these settings with another author and template, where they are given.

        Raises UsageError: `commit-author`, `commit-message`.
        """
        if author:
            read_identity(author)
        if message:
            commit_message(message, title="Title", proof=["proof"], task_id="T", run_id="R")
        given = {"author": author, "message": message}
        return self.model_copy(update={k: v for k, v in given.items() if v is not None})

    def identity(self, clone: CloneStore, environ: Mapping[str, str]) -> Identity:
        """Return the author of the plan's commits. Blocks."""
        return read_identity(self.author) if self.author else identity_of(clone, environ)


def left_text(settings: PlanSettings) -> list[str]:
    """Return a sentence on what is no longer kept; [] for nothing."""
    if not settings.left:
        return []
    names = [name if "." in name else option_name(name) for name in settings.left]
    return [f"No longer kept, as it was for another planner or worker: {', '.join(names)}."]


def read_identity(text: str) -> Identity:
    """Return the parts of "NAME <EMAIL>"; raise UsageError (`commit-author`)."""
    found = _IDENTITY.match(text)
    if found is None:
        raise BadCommitAuthor(
            f'"{text}" names no author.',
            path="--author",
            remedy='--author "NAME <EMAIL>"',
        )
    return Identity(found["name"], found["email"])


def load_settings(folder: PlanFolder, base_dir: Path) -> PlanSettings:
    """Return the saved settings, or none with `base_dir`. Raises UsageError (`plan-damaged`)."""
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
    """Save them for the next `plan run`."""
    folder.make()
    write_private(folder.settings, settings.model_dump_json(indent=1).encode())
