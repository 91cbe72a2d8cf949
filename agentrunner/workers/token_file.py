"""A file of tokens, replaced in one step, under a lock, and never lost for lack of space."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from agentrunner.errors import InfraError, LockHeld
from agentrunner.errors.workers import LoginUnwritable
from agentrunner.storage.locks import try_flock

PATIENCE_SEC = 60.0
"""Another program's refresh takes a second; a hung one must not block us forever."""
_ROOM = 64 * 1024


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the flock of a file, which stays; raises LockHeld after PATIENCE_SEC. Blocks."""
    deadline = time.monotonic() + PATIENCE_SEC
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        while not try_flock(fd, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise LockHeld(
                    f"Another program holds {path}, and so the login.",
                    remedy=f"fuser {path}",
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(fd)


class FileReplacement:
    """A file's next content: entering it reserves the space, `commit` swaps the files.

    Mode and owner stay; a link leads to the file that is replaced. Without `commit` nothing
    changes. Raises InfraError (`login-unwritable`) on entering, not later.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.realpath(path))
        self._temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}")

    def __enter__(self) -> Self:
        try:
            facts = self._path.stat()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._temporary, flags, 0o600)
        except OSError as error:
            raise _unwritable(self._path, error) from error
        try:
            if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(self._fd, facts.st_uid, facts.st_gid)
            os.fchmod(self._fd, stat.S_IMODE(facts.st_mode))
            os.posix_fallocate(self._fd, 0, facts.st_size + _ROOM)
        except OSError as error:
            self._drop()
            raise _unwritable(self._path, error) from error
        return self

    def commit(self, data: bytes) -> None:
        """Put `data` in the file's place; it is on the disk before this returns."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        os.ftruncate(self._fd, len(data))
        os.fsync(self._fd)
        self._temporary.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._drop()

    def _drop(self) -> None:
        os.close(self._fd)
        self._temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> InfraError:
    return LoginUnwritable(
        f"The login has to be refreshed, and {path} cannot be written: {error.strerror}.",
        remedy="run it as the user whose login it is",
    )
