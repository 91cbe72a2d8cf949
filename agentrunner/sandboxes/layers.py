"""Throw-away copies, which replace layers where the kernel has no overlays.

Each command has its own folder for them, which is locked while the command runs. If its owner was
killed, the lock is gone, and `sweep_layers` removes the folder.

It uses little, and only the standard library: `enter` makes the copies before a command.
"""
# pathlib takes 8 ms to import, shutil 10
# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH115, PTH116, PTH120, PTH208, PTH211

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable

from agentrunner.folders import remove_tree

LAYERS = "layers"
"""The folder of the layers, below a run's folder."""
MOST_COPIED = 2 << 30
"""In bytes; more is not copied for one command."""
FICLONE = 0x40049409
_PIECE = 64 << 20
_LOCK = ".lock"
UPPER, WORK = "upper", "work"
"""Below the folder of an overlay: the command's writes, and what the kernel needs for them."""


class TooLarge(OSError):
    """A copy would take more than MOST_COPIED bytes."""


def make_layers(folder: str, sources: list[str]) -> int:
    """Copy each source to `folder`/0, /1, …; return a descriptor that holds the folder's lock.

    Close it after `remove_layers`. Raises OSError, and TooLarge; then nothing is left behind.
    """

    def copy() -> None:
        remaining = MOST_COPIED
        for number, source in enumerate(sources):
            remaining = copy_tree(source, f"{folder}/{number}", remaining)

    return _make(folder, copy)


def make_uppers(folder: str, sources: list[str]) -> int:
    """Make folders for overlays over each source, `folder`/0, /1, …; like `make_layers`."""

    def make() -> None:
        for number, source in enumerate(sources):
            os.mkdir(f"{folder}/{number}", 0o700)
            os.mkdir(f"{folder}/{number}/{WORK}", 0o700)
            os.mkdir(f"{folder}/{number}/{UPPER}", 0o700)
            _copy_attributes(f"{folder}/{number}/{UPPER}", os.stat(source))

    return _make(folder, make)


def _make(folder: str, fill: Callable[[], None]) -> int:
    """Make a folder under its lock and fill it; return the lock's descriptor."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    keeper = _hold_lock(folder + _LOCK)
    try:
        os.mkdir(folder, 0o700)
        fill()
    except BaseException:
        remove_layers(folder)
        os.close(keeper)
        raise
    return keeper


def remove_layers(folder: str) -> None:
    """Remove a folder of layers and its lock; what cannot be removed stays."""
    remove_tree(folder)
    with contextlib.suppress(OSError):
        os.unlink(folder + _LOCK)


def sweep_layers(parent: str) -> None:
    """Remove the folders whose owner was killed before it could remove them."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        if not name.endswith(_LOCK):
            continue
        try:
            held = os.open(f"{parent}/{name}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_layers(f"{parent}/{name[: -len(_LOCK)]}")
        except OSError:
            pass  # the command of that folder still runs
        finally:
            os.close(held)


def copy_tree(
    source: str, target: str, most: int = MOST_COPIED, without: frozenset[str] = frozenset()
) -> int:
    """Copy a file or folder unchanged; return how much of `most` bytes remains.

    `without` are paths that are left out, each as it is reached from `source`. Links stay links,
    owners and times are kept where permitted, and blocks are shared where the file system supports
    it. Sockets, pipes and devices are skipped. Raises OSError, and TooLarge.
    """
    facts = os.lstat(source)
    kind = stat.S_IFMT(facts.st_mode)
    if kind == stat.S_IFLNK:
        os.symlink(os.readlink(source), target)
    elif kind == stat.S_IFREG:
        most -= facts.st_size
        if most < 0:
            raise TooLarge(27, f"a layer would copy more than {MOST_COPIED >> 30} GB", source)
        _copy_file(source, target, facts)
    elif kind == stat.S_IFDIR:
        os.mkdir(target, 0o700)
        with os.scandir(source) as entries:
            names = [entry.name for entry in entries]
        for path, copy in ((f"{source}/{name}", f"{target}/{name}") for name in names):
            if path in without:
                continue
            with contextlib.suppress(FileNotFoundError):  # deleted in the meantime
                most = copy_tree(path, copy, most, without)
    else:
        return most
    _copy_attributes(target, facts)
    return most


def _hold_lock(name: str) -> int:
    """Return a descriptor of the held lock; a sweep may remove the file before it is held."""
    while True:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.stat(name).st_ino == os.fstat(lock).st_ino:
                return lock
        os.close(lock)


def _copy_file(source: str, target: str, facts: os.stat_result) -> None:
    old = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if facts.st_size and not _clone(old, new):
                while _copy_piece(old, new):
                    pass
        finally:
            os.close(new)
    finally:
        os.close(old)


def _clone(old: int, new: int) -> bool:
    try:
        fcntl.ioctl(new, FICLONE, old)
    except OSError:
        return False
    return True


def _copy_piece(old: int, new: int) -> int:
    try:
        return os.copy_file_range(old, new, _PIECE)
    except OSError:
        data = os.read(old, 1 << 20)
        unwritten = memoryview(data)
        while unwritten:
            unwritten = unwritten[os.write(new, unwritten) :]
        return len(data)


def _copy_attributes(target: str, facts: os.stat_result) -> None:
    """Copy owner, mode and times of the original, as far as this user may set them."""
    link = stat.S_ISLNK(facts.st_mode)
    if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.chown(target, facts.st_uid, facts.st_gid, follow_symlinks=False)
    if not link:
        os.chmod(target, stat.S_IMODE(facts.st_mode))
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns), follow_symlinks=False)
