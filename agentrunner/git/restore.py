"""Writes files into a folder that may contain traps.

Every path is walked from the folder's own descriptor without following links, so nothing is ever
read, written or removed outside the folder.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from msgspec import Struct, field

from agentrunner.environment import is_out_of_room
from agentrunner.git.blobs import Content
from agentrunner.git.snapshot_writer import LARGE_MARK, blob_name, file_mode, stand_in
from agentrunner.text.unicode import to_bytes

Entry = tuple[str, str]
"""Mode and blob."""

UNREADABLE: Entry = ("other", "")
"""Something that no snapshot contains."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Restored(Struct, frozen=True):
    """The outcome of an `undo`: files changed, and files refused that should have been."""

    files: list[str]
    refused: list[str]
    unkept: list[str] = field(default_factory=list)
    """Those of the refused whose content before or after is not kept, so that nothing helps."""


class SafeFolder:
    """A folder to write in. All methods raise OSError if the disk fails or a trap is in the way."""

    def __init__(self, root: Path, *, for_all: bool = False) -> None:
        """With `for_all` everybody may read what is written, whatever the umask."""
        self.root = root
        self._for_all = for_all
        self._fd = -1

    def __enter__(self) -> Self:
        self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)

    @contextlib.contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield a descriptor of the folder that `path` is in, and the last name of `path`."""
        *folders, name = to_bytes(path).split(b"/")
        fd = os.dup(self._fd)
        try:
            for folder in folders:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=fd)
                        if self._for_all:
                            os.chmod(folder, 0o755, dir_fd=fd)
                below = os.open(folder, FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd, name
        finally:
            os.close(fd)

    def look(self, path: str, expected: Collection[str] = ()) -> tuple[Entry | None, bool]:
        """Return a snapshot's entry for `path` now, and whether only its size and times are kept.

        `expected` are the possible blobs: one of them may stand for a file of this size and these
        times.
        """
        try:
            with self._parent(path) as (fd, name):
                facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISDIR(facts.st_mode):
                    # What is in it has its own paths.
                    return None, False
                mode = file_mode(facts.st_mode)
                if stat.S_ISLNK(facts.st_mode):
                    return (mode, blob_name(os.readlink(name, dir_fd=fd))), False
                if not stat.S_ISREG(facts.st_mode):
                    return UNREADABLE, False
                line = blob_name(stand_in(facts))
                if line in expected:
                    return (mode, line), True
                return (mode, _streamed_name(name, fd, facts)), False
        except (BlockingIOError, PermissionError):
            return UNREADABLE, False
        except OSError:
            # Nothing is there, or a link has replaced a folder: none of our files is below it.
            return None, False

    def is_unchanged(self, path: str, entry: Entry) -> bool:
        """Whether `path` is a file whose size and times match the line that this entry keeps."""
        try:
            with self._parent(path) as (fd, name):
                facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError:
            return False
        is_file = stat.S_ISREG(facts.st_mode)
        return is_file and entry == (file_mode(facts.st_mode), blob_name(stand_in(facts)))

    def read(self, path: str) -> tuple[str, bytes] | None:
        """Return the mode and whole content of a file or link; None if there is neither."""
        try:
            with self._parent(path) as (fd, name):
                facts = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISLNK(facts.st_mode):
                    return "120000", os.readlink(name, dir_fd=fd)
                if not stat.S_ISREG(facts.st_mode):
                    return None
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                with os.fdopen(os.open(name, flags, dir_fd=fd), "rb") as file:
                    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                        return None
                    return file_mode(facts.st_mode), file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link has replaced a folder
                return None
            raise

    def write(self, path: str, mode: str, data: Content) -> None:
        """Put a file ("100644", "100755") or link ("120000") at `path` in one step."""
        with self._parent(path, make=True) as (fd, name):
            temporary = f".agentrunner.{secrets.token_hex(6)}".encode()
            try:
                if mode == "120000":
                    target = data if isinstance(data, bytes) else data.read()
                    os.symlink(target, temporary, dir_fd=fd)
                else:
                    bits = 0o755 if mode == "100755" else 0o644
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                    with os.fdopen(os.open(temporary, flags, bits, dir_fd=fd), "wb") as file:
                        if self._for_all:
                            os.fchmod(file.fileno(), bits)
                        if isinstance(data, bytes):
                            file.write(data)
                        else:
                            shutil.copyfileobj(data, file, 1 << 20)
                os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=fd)
                raise

    def remove(self, path: str) -> None:
        """Remove a file or link, and the folders that become empty."""
        with self._parent(path) as (fd, name):
            os.unlink(name, dir_fd=fd)
        while "/" in path:
            path = path.rpartition("/")[0]
            try:
                with self._parent(path) as (fd, name):
                    os.rmdir(name, dir_fd=fd)
            except OSError:
                return


def restore(
    folder: SafeFolder,
    paths: Iterable[str],
    left_behind: Mapping[str, Entry],
    wanted: Mapping[str, Entry],
    contents: Callable[[Mapping[str, Entry]], Iterable[tuple[str, str, Content]]],
    *,
    force: bool,
) -> Restored:
    """Change `paths` from what a run left behind to what is `wanted` (absent: no such file).

    Unless `force` is set, nothing is changed if any path matches neither. `contents` reads entries.
    """
    gone: list[str] = []
    stale: dict[str, Entry] = {}
    edited: list[str] = []
    large: list[str] = []
    for path in paths:
        expected = {one[1] for one in (left_behind.get(path), wanted.get(path)) if one}
        present, is_large = folder.look(path, expected)
        if present == wanted.get(path):
            continue
        if is_large:
            large.append(path)
        elif present != left_behind.get(path):
            edited.append(path)
        if path in wanted:
            stale[path] = wanted[path]
        elif present is not None:
            gone.append(path)
    unkept = [path for path, _, data in contents(stale) if starts_with_mark(data)]
    never = {*large, *unkept}
    if (edited or never) and not force:
        return Restored([], sorted({*edited, *never}), sorted(never))
    done: list[str] = []
    refused = list(never)
    # Removals first: a folder may have to make room for a file of its name.
    for path in sorted(gone, reverse=True):
        if path not in never:
            (done if _succeeds(folder.remove, path) else refused).append(path)
    for path, mode, data in contents(stale):
        if path not in never:
            (done if _succeeds(folder.write, path, mode, data) else refused).append(path)
    return Restored(sorted(done), sorted(refused), sorted(never))


def _streamed_name(name: bytes, dir_fd: int, facts: os.stat_result) -> str:
    """Return git's name of a file's present content, of any size; "" if it changes meanwhile."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=dir_fd), "rb", buffering=0) as file:
        now = os.fstat(file.fileno())
        if (now.st_dev, now.st_ino) != (facts.st_dev, facts.st_ino):
            return ""
        digest, size = hashlib.sha1(b"blob %d\0" % now.st_size, usedforsecurity=False), 0
        while piece := file.read(1 << 20):
            digest.update(piece)
            size += len(piece)
        return digest.hexdigest() if size == now.st_size else ""


def starts_with_mark(data: Content) -> bool:
    """Whether it is a line about a large file, instead of its content."""
    return isinstance(data, bytes) and data.startswith(LARGE_MARK)


def _succeeds(action: Callable[..., None], *arguments: object) -> bool:
    """Whether it worked; one file that can't be changed must not prevent changing the others."""
    try:
        action(*arguments)
    except OSError as error:
        if is_out_of_room(error) or error.errno == errno.EIO:
            raise
        return False
    return True
