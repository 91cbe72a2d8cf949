"""Find and check the folder in which a task works, without running git."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.errors.repositories import BadRepository, ForeignRepository

if TYPE_CHECKING:
    from agentrunner.config.yaml_text import Place

_BARE = ("HEAD", "objects", "refs")


def is_repository(folder: Path) -> bool:
    """Whether a folder has a `.git` of its own, which is a file in a submodule or work tree."""
    return os.path.lexists(folder / ".git")


def git_root(start: Path) -> Path | None:
    """Return the nearest folder at or above `start` that holds a `.git`; nothing is run or read."""
    for folder in (start, *start.parents):
        if is_repository(folder):
            return folder
    return None


def bare_root(start: Path) -> Path | None:
    """Return the bare repository that `start` is, or lies in; None if it is in none."""
    for folder in (start, *start.parents):
        if is_repository(folder):
            return None
        if all((folder / name).exists() for name in _BARE) and (folder / "objects").is_dir():
            return folder
    return None


def checked_repo(path: Path, place: Place, environ: Mapping[str, str]) -> Path:
    """Return `path` with links resolved, if a task may work there.

    Raises UsageError (`bad-repo`) for a missing folder, a file, `/`, the home folder or a path that
    is not UTF-8, and InfraError (`repo-owner`) if the folder or its `.git` belongs to another user.
    """
    real = Path(os.path.realpath(path))
    problem = _problem(real, environ)
    if problem:
        raise BadRepository(
            f"the repository {path} {problem}.",
            path=place.where,
            source_line=place.source_line,
            remedy="name the project's folder: --repo DIR",
        )
    for owned in (real, real / ".git"):
        owner = os.lstat(owned).st_uid if os.path.lexists(owned) else os.geteuid()
        if owner != os.geteuid():
            raise ForeignRepository(
                f"{owned} belongs to another user (uid {owner}, we are {os.geteuid()}).",
                path=str(owned),
                remedy="run as its owner, or work in a clone of your own",
                nothing_spent=True,
            )
    return real


def _problem(real: Path, environ: Mapping[str, str]) -> str:
    if "\0" in str(real) or not os.path.lexists(real):
        return "does not exist"
    if any("\udc80" <= character <= "\udcff" for character in str(real)):
        return "has a path that is not UTF-8"
    if not real.is_dir():
        return "is not a folder"
    if real == Path("/"):
        return "is the root of the file system"
    home = environ.get("HOME")
    if home and real == Path(os.path.realpath(home)):
        return "is your home folder"
    return ""
