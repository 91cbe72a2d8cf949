"""Finds the parts of /etc that the toolchains in a sandbox need: by links and names, never secrets.

Debian moves the configuration of its packages to /etc and leaves links behind: a JVM's `conf` leads
to /etc/java-17-openjdk, Maven's to /etc/maven. Without it such a program does not start.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from agentrunner.folders import walk
from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.deny import holds
from agentrunner.text.lazy_regex import lazy_regex

ETC = Path("/etc")
COMMON = (
    "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies",
    "debian_version", "fonts", "gai.conf", "group", "host.conf", "hosts", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias", "magic", "mime.types",
    "nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/java", "pki/tls/cert.pem",
    "pki/tls/certs", "protocols", "rpc", "services", "shells", "ssl/cert.pem", "ssl/certs",
    "ssl/openssl.cnf", "terminfo", "timezone", "xattr.conf",
)  # fmt: skip
"""Entries of /etc that all programs need; none of them can hold a secret.

Entries that belong to a toolchain are found by `configuration_of`.
"""
SHARED = tuple(map(Path, ("/", "/usr", "/usr/local")))
"""Prefixes shared by many programs; they are not the installation of one program."""
_MAX_ENTRIES = 20_000
"""The most entries of an installation that are examined; the rest of a larger one is ignored."""
_MAX_LINKS = 20
_MAX_SINGLE_FILES = 3
"""The most files of one folder that are mounted one by one."""
_VERSION = lazy_regex(r"(?<![-.\d])[-.\d]+$")
_SECRET_NAMES = lazy_regex(
    r"(?:g?shadow.*|.*\.(?:key|keytab|p12|pfx|password|secret|credentials)|private)-?",
    re.IGNORECASE,
)
_SECRET_TEXT = lazy_regex(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_SEARCHED_BYTES = 65_536
"""Bytes at the start of a file that are searched for a key."""
_scanned: dict[str, tuple[dict[str, int], list[str]]] = {}
"""By installation: its folders with their change times, and its links."""


def configuration_of(programs: Iterable[Path], etc: Path = ETC) -> tuple[Mount, ...]:
    """Return read-only mounts of the configuration below `etc` that these programs use.

    `programs` are real files. Included are the targets of links in a program's own installation,
    and the folder of `etc` that has the program's name, with or without its version. Excluded is
    anything that others may not read or that holds a key; then the files beside it are mounted one
    by one.
    """
    found: dict[Path, None] = {}
    scanned_roots: set[Path] = set()
    for program in dict.fromkeys(programs):
        root = _installation(program)
        if root is not None and root not in scanned_roots:
            scanned_roots.add(root)
            found |= dict.fromkeys(_linked_paths(root, etc))
        for name in dict.fromkeys((program.name, _VERSION.sub("", program.name))):
            if name and (etc / name).is_dir():
                found[etc / name] = None
    found |= dict.fromkeys(_whole_folders(found, etc))
    kept = [path for path in found if not any(p != path and holds(p, path) for p in found)]
    return tuple(mount for path in sorted(kept) for mount in _mounts(path))


def _whole_folders(places: Iterable[Path], etc: Path) -> list[Path]:
    """Return folders with many wanted files, of which everybody may see all the contents.

    Mounting the folder saves time: each mount delays a command's start more than the one before,
    and a JVM has two dozen.
    """
    wanted = Counter(place.parent for place in places)
    return [
        folder
        for folder, count in wanted.items()
        if count > _MAX_SINGLE_FILES and folder != etc and _is_whole(folder)
    ]


def _installation(program: Path) -> Path | None:
    """Return the folder above a program's `bin`; None where many programs share it."""
    root = program.parent.parent
    return None if program.parent.name not in ("bin", "sbin") or root in SHARED else root


def _linked_paths(root: Path, etc: Path) -> Iterator[Path]:
    """Yield the paths below `etc` that links in an installation lead to."""
    for link in _links(str(root)):
        yield from _follow(link, f"{etc}/")


def _links(root: str) -> list[str]:
    """Return all links in an installation, from the cache where nothing has changed.

    A folder whose entries changed has another time, so one stat of each folder is enough.
    """
    folders, links = _scanned.get(root, ({}, []))
    if not folders or any(_change_time(folder) != time for folder, time in folders.items()):
        folders, links = _scanned[root] = _scan(root)
    return links


def _scan(root: str) -> tuple[dict[str, int], list[str]]:
    """Return an installation's folders with their change times, and its links.

    Paths are strings here because there are thousands of them.
    """
    folders: dict[str, int] = {}
    links: list[str] = []
    seen = 0
    todo = [root]
    while todo:
        here = todo.pop()
        folders[here] = _change_time(here)
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MAX_ENTRIES:
                        return folders, links
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.is_symlink():
                        links.append(entry.path)
        except OSError:
            continue
    return folders, links


def _change_time(folder: str) -> int:
    try:
        return os.stat(folder).st_ctime_ns  # noqa: PTH116 - one of thousands
    except OSError:
        return -1


def _follow(link: str, etc: str) -> Iterator[Path]:
    """Yield every path below `etc` (which ends in a slash) on the way from a link to its target."""
    here = link
    for _ in range(_MAX_LINKS):
        try:
            text = os.readlink(here)  # noqa: PTH115 - one of thousands
        except OSError:
            return
        here = os.path.normpath(os.path.join(os.path.dirname(here), text))  # noqa: PTH118, PTH120
        if here.startswith(etc) and os.path.exists(here):  # noqa: PTH110
            yield Path(here)


def _mounts(path: Path) -> Iterator[Mount]:
    """Yield a mount of the whole path, or of each public file where some part is not public."""
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
    """Whether everybody may see all files in a folder."""
    return all(_is_public(file) and _may_enter(file.parent, folder) for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for here, _, names in walk(folder):
        for name in names:
            yield Path(here) / name


def _may_enter(folder: Path, top: Path) -> bool:
    """Whether everybody may enter a folder and all its parents up to `top`."""
    while True:
        if _SECRET_NAMES.fullmatch(folder.name) or not folder.stat().st_mode & stat.S_IXOTH:
            return False
        if folder == top:
            return True
        folder = folder.parent


def _is_public(file: Path) -> bool:
    """Whether a file is a regular one that everybody may read, and holds no key."""
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
    """Whether a file holds a key. It is read again only when its facts change."""
    with file.open("rb") as stream:
        return _SECRET_TEXT.search(stream.read(_SEARCHED_BYTES)) is not None
