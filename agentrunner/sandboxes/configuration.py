"""What of /etc belongs to the toolchains that a sandbox shows: by links and names, never secrets.

Debian moves the configuration of what it packages to /etc and leaves links behind: a JVM's `conf`
leads to /etc/java-17-openjdk, Maven's to /etc/maven. Without it such a program does not start.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.deny import holds

ETC = Path("/etc")
SHARED = tuple(map(Path, ("/", "/usr", "/usr/local")))
"""Prefixes of many programs, which are no installation of one."""
_MOST_ENTRIES = 20_000
"""Of an installation that are looked at; the rest of a larger one is left out."""
_MOST_HOPS = 20
_FEW = 3
"""Files of one folder that are shown singly."""
_VERSION = re.compile(r"[-.\d]+$")
_SECRET_NAMES = re.compile(
    r"(?:g?shadow.*|.*\.(?:key|keytab|p12|pfx|password|secret|credentials)|private)-?",
    re.IGNORECASE,
)
_SECRET_TEXT = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_LOOKED_AT = 65_536
"""Bytes of a file in which a key is looked for."""
_looked_at: dict[str, tuple[dict[str, int], list[str]]] = {}
"""By installation: its folders with their times, and its links."""


def configuration_of(programs: Iterable[Path], etc: Path = ETC) -> tuple[Mount, ...]:
    """Read-only mounts of the configuration below `etc` that these programs use.

    `programs` are real files. Taken is what links in a program's own installation lead to, and
    the folder of `etc` that has the program's name, with or without its version. Nothing that
    others may not read, and nothing that holds a key: then the files beside it are shown singly.
    """
    found: dict[Path, None] = {}
    looked_at: set[Path] = set()
    for program in dict.fromkeys(programs):
        root = _installation(program)
        if root is not None and root not in looked_at:
            looked_at.add(root)
            found |= dict.fromkeys(_linked(root, etc))
        for name in dict.fromkeys((program.name, _VERSION.sub("", program.name))):
            if name and (etc / name).is_dir():
                found[etc / name] = None
    found |= dict.fromkeys(_together(found, etc))
    kept = [path for path in found if not any(p != path and holds(p, path) for p in found)]
    return tuple(mount for path in sorted(kept) for mount in _shown(path))


def _together(places: Iterable[Path], etc: Path) -> list[Path]:
    """Folders of which many files are wanted, where everybody may see all that is in them.

    Each mount takes a command longer to start than the one before, and a JVM has two dozen.
    """
    wanted = Counter(place.parent for place in places)
    return [
        folder
        for folder, count in wanted.items()
        if count > _FEW and folder != etc and _is_whole(folder)
    ]


def _installation(program: Path) -> Path | None:
    """The folder above a program's `bin`; None where it is one of many programs."""
    root = program.parent.parent
    return None if program.parent.name not in ("bin", "sbin") or root in SHARED else root


def _linked(root: Path, etc: Path) -> Iterator[Path]:
    """Places below `etc` that links in an installation lead to."""
    for link in _links(str(root)):
        yield from _on_the_way(link, f"{etc}/")


def _links(root: str) -> list[str]:
    """All links in an installation. One that was looked at before, and is as it was, is known.

    A folder that has other entries has another time, so that one stat of each folder says so.
    """
    folders, links = _looked_at.get(root, ({}, []))
    if not folders or any(_changed(folder) != time for folder, time in folders.items()):
        folders, links = _looked_at[root] = _look(root)
    return links


def _look(root: str) -> tuple[dict[str, int], list[str]]:
    """Its folders, each with the time of its last change, and its links. Texts: there are many."""
    folders: dict[str, int] = {}
    links: list[str] = []
    seen = 0
    todo = [root]
    while todo:
        here = todo.pop()
        folders[here] = _changed(here)
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST_ENTRIES:
                        return folders, links
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.is_symlink():
                        links.append(entry.path)
        except OSError:
            continue
    return folders, links


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_ctime_ns  # noqa: PTH116 - one of thousands
    except OSError:
        return -1


def _on_the_way(link: str, etc: str) -> Iterator[Path]:
    """Every place below `etc`, which ends in a slash, from a link to what it stands for."""
    here = link
    for _ in range(_MOST_HOPS):
        try:
            text = os.readlink(here)  # noqa: PTH115 - one of thousands
        except OSError:
            return
        here = os.path.normpath(os.path.join(os.path.dirname(here), text))  # noqa: PTH118, PTH120
        if here.startswith(etc) and os.path.exists(here):  # noqa: PTH110
            yield Path(here)


def _shown(path: Path) -> Iterator[Mount]:
    """A mount of the whole, or, where a part of it may not be seen, of each file that may."""
    if path.is_dir():
        if _is_whole(path):
            yield Mount(path.resolve(), path)
            return
        for file in _files(path):
            if _is_public(file) and _may_enter(file.parent, path):
                yield Mount(file.resolve(), file)
    elif _is_public(path):
        yield Mount(path.resolve(), path)


def _is_whole(folder: Path) -> bool:
    """Whether everybody may see all files that are in a folder."""
    return all(_is_public(file) and _may_enter(file.parent, folder) for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for here, _, names in os.walk(folder):
        for name in names:
            yield Path(here) / name


def _may_enter(folder: Path, top: Path) -> bool:
    """Whether everybody may enter a folder and all above it, up to `top`."""
    while True:
        if _SECRET_NAMES.fullmatch(folder.name) or not folder.stat().st_mode & stat.S_IXOTH:
            return False
        if folder == top:
            return True
        folder = folder.parent


def _is_public(file: Path) -> bool:
    """Whether a file is an ordinary one that everybody may read, and holds no key."""
    real = file.resolve()
    if any(_SECRET_NAMES.fullmatch(part) for part in (file.name, *real.parts)):
        return False
    try:
        status = real.stat()
        if not stat.S_ISREG(status.st_mode) or not status.st_mode & stat.S_IROTH:
            return False
        facts = (status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns)
        return not _holds_key(real, facts)
    except OSError:
        return False


@lru_cache(maxsize=1024)
def _holds_key(file: Path, _facts: tuple[int, ...]) -> bool:
    """Whether there is a key in a file, which is read again where it is not as it was."""
    with file.open("rb") as stream:
        return _SECRET_TEXT.search(stream.read(_LOOKED_AT)) is not None
