"""The ledger of worker runs: each is claimed once, and its end can always be determined.

A claim is a folder and the flock on its `lock` file, which the supervisor inherits, and which says
what was there before the worker. The lock is the only sign of life:

    lock held                                     running
    lock free, result.json whole                  finished
    lock free, no started.json                    never started: may be claimed again
    lock free, started.json, no whole result      lost
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentrunner.storage.locks import FileLock, try_flock
from agentrunner.storage.run_folder import RUN_ID, RunFolder


@dataclass(frozen=True)
class Unclaimed:
    """This worker run was never claimed."""


class StillRunning(Struct, frozen=True):
    """Its supervisor is alive."""


class RecordedEnd(Struct, frozen=True):
    """It ended, and its supervisor recorded how."""

    result: Mapping[str, Any]


class NotExecuted(Struct, frozen=True):
    """It was claimed, but the worker was never executed."""


class Lost(Struct, frozen=True):
    """The worker was started, and no process is alive that could record how it ended."""


Standing = Unclaimed | StillRunning | RecordedEnd | NotExecuted | Lost


class Claim:
    """The right to start one worker run; given up by `close` unless a supervisor has it too."""

    def __init__(self, folder: Path, fd: int) -> None:
        self.dir = folder
        self.fd = fd
        self._open = True

    def write(self, text: str) -> None:
        """Write into the claim what has to be known later; it is on the disk when this returns.

        It costs a tenth of a file of its own.
        """
        data = text.encode()
        os.pwrite(self.fd, data, 0)
        os.ftruncate(self.fd, len(data))
        os.fsync(self.fd)

    def close(self) -> None:
        """Give up our share of the claim."""
        if self._open:
            self._open = False
            os.close(self.fd)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return a JSON object from a file; None if there is none or it is damaged."""
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(path.read_bytes())
        if isinstance(value, dict):
            return value
    return None


class Ledger:
    """The worker runs of one run."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def dir(self, worker_run_id: str) -> Path:
        """Return the folder of one worker run; raise ValueError for an unsafe id."""
        if not RUN_ID.match(worker_run_id) or ".." in worker_run_id:
            raise ValueError(f"{worker_run_id!r} is not a worker run id")
        return self.folder.workers_dir / worker_run_id

    def claim(self, worker_run_id: str) -> Claim:
        """Claim a worker run that was never started; raise FileExistsError for any other.

        Of several claimants the flock picks one, so it does not matter who made the folder.
        """
        folder = self.dir(worker_run_id)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if try_flock(fd, fcntl.LOCK_EX) and not (folder / "started.json").exists():
            return Claim(folder, fd)
        os.close(fd)
        raise FileExistsError(f"worker run {worker_run_id} is claimed or was started")

    def look(self, worker_run_id: str) -> Standing:
        """Return what became of a worker run. Call it only while holding the run lock."""
        folder = self.dir(worker_run_id)
        if not folder.is_dir():
            return Unclaimed()
        # The lock first and the result after it: the other way round a run that ends in between
        # would look lost.
        if FileLock(folder / "lock").taken():
            return StillRunning()
        result = read_json(folder / "result.json")
        if result is not None:
            return RecordedEnd(result)
        return Lost() if (folder / "started.json").exists() else NotExecuted()

    def claimed_with(self, worker_run_id: str) -> dict[str, Any]:
        """Return what was written into the claim of a worker run; {} where nothing was."""
        folder = self.dir(worker_run_id)
        for name in ("lock", "before.json"):  # the second is of earlier versions
            with contextlib.suppress(FileNotFoundError):
                if text := (folder / name).read_bytes():
                    return dict(json.loads(text))
        return {}

    def started(self, worker_run_id: str) -> dict[str, Any]:
        """Return what its supervisor wrote at the start: pids, start times, boot id, started_at."""
        return read_json(self.dir(worker_run_id) / "started.json") or {}
