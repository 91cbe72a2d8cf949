"""Throw-away copies: what stands for a layer where the kernel can lay none.

Each command has a folder of its own for them, which is locked while the command runs; one whose
owner was killed is not locked any more, and is removed by `sweep_layers`.

Standard library only, and little of that: `enter` makes them before a command.
"""
# pathlib takes 8 ms to import, shutil 10
# ruff: noqa: PTH101, PTH102, PTH103, PTH106, PTH108, PTH115, PTH116, PTH120, PTH208, PTH211

from __future__ import annotations

import contextlib
import fcntl
import os
import stat

LAYERS = "layers"
"""Below a run's folder: where they are."""
MOST_COPIED = 2 << 30
"""Bytes; more is not copied for one command."""
FICLONE = 0x40049409
_PIECE = 64 << 20
_LOCK = ".lock"
UPPER, WORK = "upper", "work"
"""Below the folder of an overlay: what is written, and what the kernel needs for it."""


class TooLarge(OSError):
    """A copy would take more than MOST_COPIED."""


def make_layers(folder: str, sources: list[str]) -> int:
    """Copy each source to `folder`/0, /1, …; returns a descriptor that keeps the folder.

    Close it after `remove_layers`. Raises OSError, and TooLarge; then nothing is left.
    """
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    keeper = _locked(folder + _LOCK)
    try:
        os.mkdir(folder, 0o700)
        left = MOST_COPIED
        for number, source in enumerate(sources):
            left = copy_tree(source, f"{folder}/{number}", left)
    except BaseException:
        remove_layers(folder)
        os.close(keeper)
        raise
    return keeper


def make_uppers(folder: str, sources: list[str]) -> int:
    """Make folders for overlays over each source, `folder`/0, /1, …; as `make_layers` does."""
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    keeper = _locked(folder + _LOCK)
    try:
        os.mkdir(folder, 0o700)
        for number, source in enumerate(sources):
            os.mkdir(f"{folder}/{number}", 0o700)
            os.mkdir(f"{folder}/{number}/{WORK}", 0o700)
            os.mkdir(f"{folder}/{number}/{UPPER}", 0o700)
            _like(f"{folder}/{number}/{UPPER}", os.stat(source))
    except BaseException:
        remove_layers(folder)
        os.close(keeper)
        raise
    return keeper


def remove_layers(folder: str) -> None:
    """Remove a folder of layers and its lock; whatever cannot be removed stays."""
    remove_tree(folder)
    with contextlib.suppress(OSError):
        os.unlink(folder + _LOCK)


def sweep_layers(parent: str) -> None:
    """Remove the folders whose owner was killed before it could do so."""
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
            pass  # somebody's command runs
        finally:
            os.close(held)


def copy_tree(source: str, target: str, most: int = MOST_COPIED) -> int:
    """Copy a file or folder as it is; returns how much of `most` bytes is left.

    Links stay links, owners and times stay where they may, and blocks are shared where the file
    system can. Sockets, pipes and devices are left out. Raises OSError, and TooLarge.
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
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile
                most = copy_tree(f"{source}/{name}", f"{target}/{name}", most)
    else:
        return most
    _like(target, facts)
    return most


def _locked(name: str) -> int:
    """A descriptor of the lock of this name, which a sweep may remove before it is held."""
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
            if facts.st_size and not _cloned(old, new):
                while _copied(old, new):
                    pass
        finally:
            os.close(new)
    finally:
        os.close(old)


def _cloned(old: int, new: int) -> bool:
    try:
        fcntl.ioctl(new, FICLONE, old)
    except OSError:
        return False
    return True


def _copied(old: int, new: int) -> int:
    try:
        return os.copy_file_range(old, new, _PIECE)
    except OSError:
        data = os.read(old, 1 << 20)
        left = memoryview(data)
        while left:
            left = left[os.write(new, left) :]
        return len(data)


def _like(target: str, facts: os.stat_result) -> None:
    """Owner, mode and times of the original, as far as this user may set them."""
    link = stat.S_ISLNK(facts.st_mode)
    if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):
            os.chown(target, facts.st_uid, facts.st_gid, follow_symlinks=False)
    if not link:
        os.chmod(target, stat.S_IMODE(facts.st_mode))
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns), follow_symlinks=False)


def remove_tree(path: str) -> None:
    """A folder that its owner may not write to is opened first, as Go's modules are."""
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
        with contextlib.suppress(OSError):  # empty, and perhaps of another user, as WORK holds
            os.rmdir(path)
            return
        os.chmod(path, 0o700)
        names = os.listdir(path)
    except OSError:
        return
    for name in names:
        remove_tree(f"{path}/{name}")
    with contextlib.suppress(OSError):
        os.rmdir(path)
