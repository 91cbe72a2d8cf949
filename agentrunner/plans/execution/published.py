"""What was published of a plan's branch, as the plan's folder keeps it. Knows no git."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from agentrunner.storage.plan_folder import PlanFolder


@dataclass(frozen=True)
class Published:
    """The plan's branch in the user's repository."""

    name: str
    """The branch."""
    commit: str
    """"" before the first time."""
    coming: tuple[str, ...] = ()
    """Commits that it was about to be moved to since; it may be at any of them."""


def published(folder: PlanFolder) -> Published | None:
    """Return what was published of a plan; None where nothing was."""
    known = read_published(branch_file(folder))
    return known if known and known.commit else None


def branch_file(folder: PlanFolder) -> Path:
    """Return where the plan keeps that."""
    return folder.root / "branch.json"


def read_published(file: Path) -> Published | None:
    """Return what such a file says; None where it is missing or damaged."""
    try:
        fields = json.loads(file.read_bytes())
        return Published(**{**fields, "coming": tuple(fields["coming"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
