"""Locks that end with their last holder, and name who holds them.

Only `flock`: it belongs to the open file description, so a child inherits it and it ends when the
last process that has the file open ends. POSIX locks do neither. For the same reason nothing here
ever unlocks (LOCK_UN frees the child's lock too): a lock is released by closing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from agentrunner.errors import LockHeld
from agentrunner.storage.process_time import start_time
from agentrunner.storage.run_folder import RunFolder, make_private, runs_root

OUTSIDE = "work outside of it: agentrunner run … --worktree"
PATIENCE_SEC = 0.25
"""A probe holds the shared lock for microseconds; `acquire` waits that out instead of failing."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, for people and for signals.

    Only the lock itself shows that they are alive.
    """

    run_id: str
    pid: int
    start_time: int
    """Of the process, in clock ticks since boot (/proc/PID/stat)."""
    boot_id: str
    host: str
    at: str
    """UTC, ISO 8601."""


def _has_ended(holder: Holder) -> bool:
    """Whether the process that wrote its name was killed on this machine, and a child has the lock.

    In doubt it is alive.
    """
    known = holder.pid > 0 and holder.boot_id == boot_id() and holder.host == platform.node()
    return known and start_time(holder.pid) != holder.start_time


UNKNOWN = Holder(run_id="", pid=0, start_time=0, boot_id="", host="", at="")
"""A holder that has not written its name yet."""


def boot_id() -> str:
    """Return the id of this boot of the machine; "" where the kernel does not give it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def me(run_id: str, at: str) -> Holder:
    """Return this process as a holder; `at` is now, UTC, ISO 8601."""
    pid = os.getpid()
    return Holder(run_id, pid, start_time(pid) or 0, boot_id(), platform.node(), at)


def try_flock(fd: int, operation: int) -> bool:
    """Take a flock if it is free now; return whether it was."""
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class FileLock:
    """An exclusive lock on a file that is never deleted."""

    def __init__(
        self, path: Path, what: str = "this run", *, run_id: str = "", remedy: str = ""
    ) -> None:
        self.path = path
        self.what = what
        self.run_id = run_id
        """The run that it is the lock of; "" for the lock of something else."""
        self.remedy = remedy
        """What an error message advises beside looking at the run that holds it, or ending that."""
        self._fd: int | None = None

    @property
    def fd(self) -> int:
        """Return the locked descriptor, close-on-exec; pass it to a child with `pass_fds`."""
        if self._fd is None:
            raise ValueError(f"{self.path} is not locked by this process")
        return self._fd

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def acquire(self, holder: Holder) -> None:
        """Take the lock and write `holder` into it; raise Busy naming who has it.

        The folder must exist: locking an unknown run must not create it.
        """
        deadline = time.monotonic() + PATIENCE_SEC
        while not self._take():
            if time.monotonic() >= deadline:
                raise self._busy()
            time.sleep(0.005)
        text = json.dumps(asdict(holder)).encode()
        os.pwrite(self.fd, text, 0)
        os.ftruncate(self.fd, len(text))

    def acquire_or_leave(self, holder: Holder) -> None:
        """Like `acquire`, but a lock that the run's supervisor holds stays with it."""
        try:
            self.acquire(holder)
        except LockHeld:
            other = self.probe()
            if other is None or other.run_id != holder.run_id:
                raise

    def _take(self) -> bool:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        # A file that was removed meanwhile (`gc` removes whole folders) is no longer a lock.
        if try_flock(fd, fcntl.LOCK_EX) and os.fstat(fd).st_nlink:
            self._fd = fd
            return True
        os.close(fd)
        return False

    def _busy(self) -> LockHeld:
        holder = self._read()
        who = f"run {holder.run_id}" if holder.run_id else "another process"
        details = (("process", f"{holder.pid} on {holder.host}"), ("since", holder.at))
        doing = "is at work in another process" if who == self.what else f"is held by {who}"
        return LockHeld(
            f"{self.what} {doing}",
            details=details if holder.pid else (),
            remedy=self._remedy(holder.run_id or self.run_id, left=_has_ended(holder)),
            nothing_spent=True,
        )

    def _remedy(self, run_id: str, *, left: bool) -> str:
        """Return commands that look at the run that holds it or end it, and our own advice.

        Where it was `left` to its worker, that is taken over, as nothing else drives the run.
        """
        look = f"agentrunner {'resume' if left else 'watch'} {run_id}"
        ways = f"{look}, or agentrunner cancel {run_id}" if run_id else ""
        return "; or ".join(filter(None, (ways, self.remedy))) or "wait until it ends"

    def probe(self) -> Holder | None:
        """Return who holds the lock (UNKNOWN if unnamed); None if it is free."""
        return self._read() if self.taken() else None

    def taken(self) -> bool:
        """Whether any process holds the lock. Takes it for a moment."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            return not try_flock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)

    def _read(self) -> Holder:
        with contextlib.suppress(OSError, ValueError, TypeError):
            return Holder(**json.loads(self.path.read_bytes()))
        return UNKNOWN

    def close(self) -> None:
        """Release our share. The lock stays with a child that has it too."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def repository_lock(state_dir: Path, repo: Path, remedy: str = OUTSIDE) -> FileLock:
    """Return the lock of a repository, whatever path it is reached by.

    Named by device and inode, so that symbolic links and bind mounts of it collide. `remedy` is
    what a person can do where another holds it.
    """
    facts = repo.resolve(strict=True).stat()
    folder = state_dir / "locks"
    make_private(folder)
    name = f"{facts.st_dev:x}-{facts.st_ino:x}.lock"
    return FileLock(folder / name, f"the repository {repo}", remedy=remedy)


def run_lock(folder: RunFolder) -> FileLock:
    """Return the lock of the process that drives a run."""
    return FileLock(folder.run_lock, f"run {folder.run_id}", run_id=folder.run_id)


def is_driven(state_dir: Path, run_id: str) -> bool:
    """Whether a process works on this run, or asks about it, right now."""
    return run_lock(RunFolder(runs_root(state_dir) / run_id)).taken()
