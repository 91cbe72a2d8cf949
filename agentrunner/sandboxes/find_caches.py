"""Finds the caches that one sandbox is shown: those that exist and that may be shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import filter as matching
from fnmatch import fnmatchcase, translate
from pathlib import Path

from msgspec import Struct, field

from agentrunner.sandboxes.base import Cache, Caches
from agentrunner.sandboxes.caches import CACHES, CacheRow
from agentrunner.sandboxes.deny import (
    MOST_FILES,
    TooMany,
    credential_paths,
    exposes,
    holds,
    secrets_in,
)

DEEPEST = 3
"""How many levels of folders below the repository are searched for manifests."""
MOST_FOLDERS = 2000
MOST_READ, MOST_TEXT = 50, 1 << 18
"""Files of one name that are read for a cache of the repository's own, and bytes of each."""
MOST_HIDDEN = 100
"""With more files that hold credentials, the cache is not shown at all."""
SHOWN = 3


class _Found(Struct):
    folders: list[Cache] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    offline: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def find_caches(
    repo: Path,
    environ: Mapping[str, str],
    host_home: Path,
    wanted: Sequence[str] | None = None,
    *,
    allowed: Iterable[str] | None = None,
) -> Caches:
    """Return the caches for a sandbox of this repository; blocks while their files are searched.

    `wanted` names ecosystems; None stands for those whose manifests are in the repository.
    `allowed` lists all that may be shown, None allows any. What cannot be shown becomes a notice.
    Tools of the repository are told their place even where nothing is shown: a set-up fills it. Not
    so those for which the repository itself names one.
    """
    files = _of_any_tool(upper_files(repo))
    names = set(files)
    found = _Found()
    for row in CACHES:
        if any((repo / name).exists() for name in row.unless):
            continue
        used = any(matching(names, pattern) for pattern in row.used_by)
        if used:
            found.env.update(_variables(row, files))
            found.offline.update(row.offline)
        if not (used if wanted is None else row.ecosystem in wanted):
            continue
        if allowed is not None and row.ecosystem not in allowed:
            continue
        _add(row, repo, environ, host_home, found, files)
    return Caches(
        tuple(found.folders), found.env, found.offline, tuple(found.path), tuple(found.notices)
    )


def upper_files(repo: Path) -> Iterator[tuple[Path, str]]:
    """Yield folder and name of the files in the upper folders, without installed packages."""
    folders = [(repo, 0)]
    for count, (folder, depth) in enumerate(folders):
        if count >= MOST_FOLDERS:
            break
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        yield folder, entry.name
                    elif depth < DEEPEST and _is_source(entry.name):
                        folders.append((folder / entry.name, depth + 1))
        except OSError:
            continue


def place_of(row: CacheRow, environ: Mapping[str, str], host_home: Path) -> Path:
    """Return where this cache is on this machine, whether it exists or not."""
    written = next(filter(None, (_location_in(*moved, host_home) for moved in row.moved_in)), None)
    for text in row.places:
        if not text.startswith("$"):
            return written or host_home / text.removeprefix("~/")
        name, _, rest = text.removeprefix("$").partition("/")
        value = environ.get(name, "").split(":")[0]
        if value.startswith("/"):
            return Path(value) / rest
    raise AssertionError(row.places)


def _add(
    row: CacheRow,
    repo: Path,
    environ: Mapping[str, str],
    host_home: Path,
    found: _Found,
    files: Mapping[str, Sequence[Path]],
) -> None:
    root = place_of(row, environ, host_home)
    shown = []
    for folder in row.folders:
        for source in _matching(root, folder.name):
            below = source.relative_to(root)
            if reason := _refusal(source, repo, host_home):
                found.notices.append(f"{row.ecosystem}: {source} is not shown: {reason}")
                continue
            try:
                hidden, why = _hidden(row, root, below)
            except TooMany:
                found.notices.append(
                    f"{row.ecosystem}: {source} is not shown: it has more than {MOST_FILES:,} "
                    "files to search for credentials"
                )
                continue
            if len(hidden) > MOST_HIDDEN:
                found.notices.append(
                    f"{row.ecosystem}: {source} is not shown: {len(why)} of its files hold "
                    "credentials"
                )
                continue
            if why:
                listed = ", ".join(why[:SHOWN]) + (", …" if len(why) > SHOWN else "")
                found.notices.append(
                    f"{row.ecosystem}: left out as they hold credentials: {listed} in {source}"
                )
            place = str(Path(row.below_home) / below)
            shown.append(Cache(row.ecosystem, source.resolve(), place, folder.layer, hidden))
    if shown:
        found.folders += shown
        found.env.update(_variables(row, files))
        found.offline.update(row.offline)
        for programs in (one for pattern in row.programs for one in _matching(root, pattern)):
            where = Path(row.below_home) / programs.relative_to(root)
            if any(where.is_relative_to(cache.place) for cache in shown):
                found.path.append(f"{{home}}/{where}")


def _hidden(row: CacheRow, root: Path, below: Path) -> tuple[tuple[str, ...], list[str]]:
    """Return what is shown empty below one folder of a cache, and what of it holds credentials."""
    source = root / below
    paths = [path for pattern in row.without for path in root.glob(pattern)]
    closed = [
        str(path.relative_to(source))
        for path in paths
        if path.is_relative_to(source) and not path.is_symlink()
    ]
    patterns = [
        *_relative_patterns(row.published, below),
        *closed,
        *(f"{path}/*" for path in closed),
    ]
    why = sorted(secrets_in(source, patterns))
    return (*closed, *why), why


def _relative_patterns(patterns: Sequence[str], below: Path) -> Iterator[str]:
    """Yield the patterns that apply below a folder, rewritten relative to it."""
    depth = len(below.parts)
    for pattern in patterns:
        parts = pattern.split("/")
        if pattern.startswith("*"):
            yield pattern
        elif all(map(fnmatchcase, below.parts, parts)) and len(parts) > depth:
            yield "/".join(parts[depth:])


def _refusal(source: Path, repo: Path, host_home: Path) -> str:
    """Return why a folder of a cache may not be shown, judged by its real path; "" if it may."""
    real = source.resolve()
    if len(real.parts) < 3 or exposes(real, host_home):
        return "it leads to a home, to credentials, or to a folder of the system"
    if holds(real, repo) or holds(repo, real):
        return "it is in the repository, or above it"
    if any(holds(place, real) for place in credential_paths(host_home)):
        return "it leads to credentials"
    if not _can_be_read(real):
        return "it cannot be read"
    return ""


def _can_be_read(folder: Path) -> bool:
    """Whether commands in a sandbox can read a folder: root is not above permissions there."""
    if not os.access(folder, os.R_OK | os.X_OK):
        return False
    facts = folder.stat()
    return bool(os.geteuid()) or facts.st_uid == 0 or facts.st_mode & 0o005 == 0o005


def _matching(root: Path, name: str) -> list[Path]:
    found = [root] if name == "." else sorted(root.glob(name))
    return [path for path in found if path.is_dir()]


def _of_any_tool(files: Iterable[tuple[Path, str]]) -> dict[str, list[Path]]:
    """The names that some cache asks about, and where. There may be 100,000 names."""
    patterns = {name for row in CACHES for name in (*row.used_by, *dict(row.named_in))}
    asked = re.compile("|".join(map(translate, sorted(patterns))))
    found: dict[str, list[Path]] = {}
    for folder, name in files:
        if asked.match(name):
            found.setdefault(name, []).append(folder / name)
    return found


def _variables(row: CacheRow, files: Mapping[str, Sequence[Path]]) -> Mapping[str, str]:
    """Return the variables for a tool, without its place where the repository names another."""
    own = any(
        re.search(setting, _text(place))
        for pattern, setting in row.named_in
        for name in matching(files, pattern)
        for place in files[name][:MOST_READ]
    )
    return {name: text for name, text in row.env.items() if not (own and "{home}" in text)}


def _text(place: Path) -> str:
    """Return the beginning of a file of the repository; "" for what is no readable file."""
    try:
        opened = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe opens, too
        with os.fdopen(opened, "rb") as stream:
            return (stream.read(MOST_TEXT) or b"").decode("utf-8", "replace")
    except OSError:
        return ""


def _is_source(name: str) -> bool:
    return not name.startswith(".") and name not in ("node_modules", "target", "vendor", "venv")


def _location_in(name: str, pattern: str, host_home: Path) -> Path | None:
    """Return the location that a configuration file of the user's names for a cache."""
    try:
        text = (host_home / name.removeprefix("~/")).read_text(errors="replace")
    except OSError:
        return None
    match = re.search(rf"(?m)^\s*{pattern}", text)
    return Path(match[1].strip()) if match else None
