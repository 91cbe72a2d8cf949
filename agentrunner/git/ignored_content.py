"""Watches ignored folders: installed packages, and files that influence tests unseen.

Snapshots leave these folders out, as they are large and not the worker's work. But a test tool
patched in a virtual environment can make red tests green, so changes in them are detected, by stats
rather than by content.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from agentrunner.folders import walk

PACKAGE_FOLDERS = frozenset(
    {
        ".bundle",
        ".nox",
        ".tox",
        ".venv",
        "__pypackages__",
        "bower_components",
        "env",
        "node_modules",
        "site-packages",
        "vendor",
        "venv",
    }
)
"""Names of folders that package managers fill."""

CODE = frozenset(
    {
        ".cjs",
        ".cts",
        ".js",
        ".json",
        ".jsx",
        ".mjs",
        ".mts",
        ".php",
        ".pth",
        ".py",
        ".rb",
        ".so",
        ".ts",
    }
)
"""Suffixes of files that a test tool loads; executables count whatever their name."""

STEERING = frozenset(
    {
        ".mocharc.json",
        "_pytest",
        "conftest.py",
        "entry_points.txt",
        "jest.config.js",
        "pytest",
        "pytest.ini",
        "pytest.py",
        "sitecustomize.py",
        "tox.ini",
        "unittest",
        "unittest.py",
        "usercustomize.py",
        "vitest.config.js",
        "vitest.config.ts",
    }
)
"""Names of files that configure a test tool, that it loads by itself, or that replace it.

Files that every build writes (package.json, executables) are not included.
"""

MOST_FILES = 200_000
"""The most files of one folder that are examined; the rest counts as unchanged."""

FICLONE = 0x4004_9409
"""The request of `linux/fs.h` that makes a file share another's content until one is written."""

MOST_HASHED = 1 << 20
"""Larger files in the manifest are distinguished by their stats."""


def holds_packages(folder: Path) -> bool:
    """Whether a folder is one that a package manager fills."""
    return folder.name in PACKAGE_FOLDERS or (folder / "pyvenv.cfg").is_file()


def fingerprint(folder: Path) -> str:
    """Return a digest over paths and stats of the code files and executables in a folder.

    It covers names and sizes, mtime, inode, and ctime if the file has only one name: package
    managers share files by hard links, and another project's install then changes the ctime of
    ours.
    """
    digest = hashlib.sha256()
    for path, facts in _files(folder):
        if _is_code(path, facts):
            ctime = facts.st_ctime_ns if facts.st_nlink == 1 else 0
            key = (facts.st_size, facts.st_mtime_ns, facts.st_ino, facts.st_mode, ctime)
            digest.update(os.fsencode(os.path.relpath(path, folder)) + b"\0%r\n" % (key,))
    return digest.hexdigest()


def copy_file(source: Path, target: Path) -> None:
    """Copy a file or link with mode and times; the disk shares the content if it supports that.

    Raises OSError.
    """
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    with source.open("rb") as old, target.open("xb") as new:
        try:
            fcntl.ioctl(new.fileno(), FICLONE, old.fileno())
        except OSError:
            _copy_content(old.fileno(), new.fileno())
    shutil.copystat(source, target)


def _copy_content(old: int, new: int) -> None:
    """Copy a file's content and keep its holes: a sparse file may be larger than the disk."""
    size, at = os.fstat(old).st_size, 0
    os.truncate(new, size)
    while at < size:
        try:
            start = os.lseek(old, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # a hole up to the end
            raise
        at = os.lseek(old, start, os.SEEK_HOLE)
        os.lseek(old, start, os.SEEK_SET)
        os.lseek(new, start, os.SEEK_SET)
        while start < at and (written := os.sendfile(new, old, None, min(at - start, 1 << 30))):
            start += written


def steering_files(root: Path, folder: Path) -> dict[str, str]:
    """Return test configuration and plugins in a folder: path below `root` → digest."""
    found = {}
    for path, facts in _files(folder):
        if path.suffix == ".pth" or not STEERING.isdisjoint(path.relative_to(folder).parts):
            found[str(path.relative_to(root))] = _digest(path, facts)
    return found


def _is_code(path: Path, facts: os.stat_result) -> bool:
    executable = stat.S_ISREG(facts.st_mode) and facts.st_mode & stat.S_IXUSR
    return path.suffix in CODE or bool(executable) or stat.S_ISLNK(facts.st_mode)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield files and links below a folder in a fixed order, without caches."""
    seen = 0
    for place, folders, names in walk(folder):
        folders[:] = sorted(name for name in folders if not _is_cache(place, name))
        for name in sorted(names):
            path = Path(place, name)
            try:
                facts = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode):
                seen += 1
                if seen > MOST_FILES:
                    return
                yield path, facts


def _is_cache(place: str, name: str) -> bool:
    """Whether it is byte code (checks keep theirs elsewhere) or a tool's cache in node_modules."""
    if name == "__pycache__":
        return True
    in_modules = Path(place).name == "node_modules"
    return in_modules and name.startswith(".") and name not in (".bin", ".pnpm")


def _digest(path: Path, facts: os.stat_result) -> str:
    if stat.S_ISREG(facts.st_mode) and facts.st_size <= MOST_HASHED:
        try:
            return hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            pass
    return f"{facts.st_size} {facts.st_mtime_ns} {facts.st_ctime_ns} {facts.st_ino}"
