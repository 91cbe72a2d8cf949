"""Read facts from a repository's git folder without running git, which would obey its settings."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from agentrunner.config.repo import is_repository
from agentrunner.config.text_files import read_text
from agentrunner.errors import UsageError
from agentrunner.folders import walk
from agentrunner.git.submodules import submodules_in
from agentrunner.git.user_index import IndexDamaged, read_index
from agentrunner.text.cut import some_of
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.files import text_of

MOST_FILES = 200_000
MOST_BYTES = 400_000
"""Most bytes read of one file."""
_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1_024
_MOST_NAMED = 3
_SHA256 = lazy_regex(r"(?im)^[^\S\n]*objectformat\s*=\s*sha256")

_REF = lazy_regex(r"ref: refs/heads/([^\s~^:?*\[\\]{1,200})\n?")
_COMMIT = lazy_regex(r"([0-9a-f]{40}|[0-9a-f]{64})\n?")
_GITDIR = lazy_regex(r"gitdir: (\S.{0,4000}?)\s*")


def read_branch(repo: Path) -> str | None:
    """Return the branch checked out in `repo`, "detached at 1a2b3c4", or None if unknown."""
    head = _small(git_dir(repo) / "HEAD")
    if match := _REF.fullmatch(head):
        return match[1] if match[1].isprintable() else None
    if match := _COMMIT.fullmatch(head):
        return f"detached at {match[1][:7]}"
    return None


def git_dir(repo: Path) -> Path:
    """Return `.git`, or the folder that a worktree's `.git` file names."""
    place = repo / ".git"
    if place.is_dir() or not os.path.lexists(place):
        return place
    match = _GITDIR.fullmatch(_small(place))
    return repo / match[1] if match else place


def _small(path: Path) -> str:
    try:
        return read_text(path, name=path.name)
    except UsageError:
        return ""


def files_of(repo: Path, most: int = MOST_FILES) -> list[str] | None:
    """Return the paths of the files in a checkout; None if there are more than `most`.

    These are the files of git's index; without an index, all files on disk. Names that are not
    UTF-8 and missing files are left out. Blocks.
    """
    found = _tracked(git_dir(repo))
    if found is None:
        return _on_disk(repo, most)
    return found if len(found) <= most else None


def not_fetched(repo: Path) -> list[str]:
    """Return a sentence for each kind of content that git only names in this checkout. Blocks."""
    submodules = submodules_in(git_dir(repo) / "index")
    empty = [name for name in submodules if not os.path.lexists(repo / name / ".git")]
    pointers = []
    if "filter=lfs" in text_of(repo / ".gitattributes", MOST_BYTES):
        read = reader_of(repo)
        small = (path for path in files_of(repo) or () if _is_small(repo / path))
        pointers = [path for path in small if (read(path) or b"").startswith(_POINTER)]
    kinds = (
        (empty, "a submodule whose files are not here; git submodule update --init fetches them"),
        (pointers, "a pointer of Git LFS in the place of the file; git lfs pull fetches it"),
    )
    return [f"{some_of(names, _MOST_NAMED)}: {what}" for names, what in kinds if names]


def _is_small(place: Path) -> bool:
    try:
        return place.lstat().st_size <= _POINTER_BYTES
    except OSError:
        return False


def reader_of(repo: Path) -> Callable[[str], bytes | None]:
    """Return a reader of a checkout's files (first 400,000 bytes); links must stay inside it."""
    root = Path(os.path.realpath(repo))

    def read(path: str) -> bytes | None:
        try:
            place = Path(os.path.realpath(root / path))
            if not place.is_relative_to(root) or not place.is_file():
                return None
            with place.open("rb") as file:
                return file.read(MOST_BYTES)
        except (OSError, ValueError):
            return None

    return read


def _tracked(git: Path) -> list[str] | None:
    """Return the paths in the index of a git folder; None without one that can be read."""
    configs = (text_of(place / "config", 100_000) for place in (git, git.parent.parent))
    try:
        sha256 = _SHA256.search(next(filter(None, configs), "")) is not None
        index = read_index(os.fsencode(git / "index"), sha256=sha256)
    except IndexDamaged:
        return None
    if index is None:
        return None
    found = []
    for name, mode in index.tracked.items():
        if stat.S_ISREG(mode) or stat.S_ISLNK(mode):  # no submodule or folder of a sparse index
            with contextlib.suppress(UnicodeDecodeError):
                found.append(name.decode("utf-8"))
    return found


def _on_disk(repo: Path, most: int) -> list[str] | None:
    found: list[str] = []
    for folder, names, files in walk(repo):
        inner = (name for name in names if name != ".git")
        names[:] = [name for name in inner if not is_repository(Path(folder, name))]
        place = os.path.relpath(folder, repo)
        for name in files:
            path = name if place == "." else f"{place}/{name}"
            if path.isprintable():
                found.append(path)
        if len(found) > most:
            return None
    return sorted(found)
