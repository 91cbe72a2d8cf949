"""What is kept of a command while it runs: a bounded part of its output, and its limits."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from agentrunner.sandboxes.base import (
    CommandResult,
    Ending,
    ErrorKind,
    OnOutput,
    Request,
    SandboxError,
    Stream,
)
from agentrunner.sandboxes.disk import DiskWatch

KILLED = 128 + signal.SIGKILL

HEAD_BYTES = 64 * 1024


class Spool:
    """The first 64 KiB and the last `keep` bytes of a stream, so that none can fill our memory."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._keep = keep
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0

    def feed(self, data: bytes) -> None:
        """Add the next piece of the stream."""
        self.total += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_bytes += len(data)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._keep:
            self._tail_bytes -= len(self._tail.popleft())

    def value(self) -> bytes:
        """Return what was kept; a line in between says how many bytes were left out."""
        tail = b"".join(self._tail)[-self._keep :] if self._keep else b""
        lost = self.total - len(self._head) - len(tail)
        gap = f"\n[... {lost} bytes left out ...]\n".encode() if lost else b""
        return bytes(self._head) + gap + tail


@dataclass(frozen=True)
class Moment:
    """A moment by both clocks."""

    at: datetime
    monotonic: float

    @classmethod
    def now(cls) -> Moment:
        """Return the present moment."""
        return cls(datetime.now(UTC), time.monotonic())


class CommandRecord:
    """The output of one command, and why it was ended, in whichever sandbox it runs."""

    def __init__(
        self, request: Request, on_output: OnOutput | None, end: Callable[[], None]
    ) -> None:
        """`end` ends the command, and does not wait; it is called when it exceeds a limit."""
        self.limit: Ending | None = None
        """The limit of ours that it was ended for."""
        self.stopped = False
        """Whether `kill_all` ended it."""
        self._request = request
        self._on_output = on_output
        self._end = end
        self._spools: dict[Stream, Spool] = {
            "stdout": Spool(request.keep_bytes),
            "stderr": Spool(request.keep_bytes),
        }

    def take(self, stream: Stream, data: bytes) -> None:
        """Store a piece of output, and end a command that prints too much."""
        if self.limit is Ending.OUTPUT_LIMIT:
            return
        self._spools[stream].feed(data)
        if self._on_output is not None:
            self._on_output(stream, data)
        if sum(spool.total for spool in self._spools.values()) > self._request.stop_bytes:
            self._end_for(Ending.OUTPUT_LIMIT)

    async def watch_disk(
        self, watch: DiskWatch | None, processes: Callable[[], Iterable[int]] = tuple
    ) -> None:
        """End it when it has written more than allowed. Cancel this when it ends by itself."""
        if watch is None:
            return
        over = False
        while not over:
            await asyncio.sleep(watch.wait_sec)
            over = await asyncio.to_thread(watch.over, processes)
        self._end_for(Ending.DISK_LIMIT)

    def result(
        self, exit_code: int, began: Moment, ended: Moment, *, oom: bool, late: bool
    ) -> CommandResult:
        """Return the result; raises SandboxError if it was `late`, or was stopped."""
        out, err = self._spools["stdout"], self._spools["stderr"]
        result = CommandResult(
            exit_code=exit_code if self.limit is None else KILLED,
            stdout=out.value(),
            stderr=err.value(),
            started_at=began.at,
            ended_at=ended.at,
            duration_sec=ended.monotonic - began.monotonic,
            ending=self.limit or (Ending.OOM if oom else Ending.EXITED),
            stdout_bytes=out.total,
            stderr_bytes=err.total,
        )
        if late and self.limit is None:
            cause = f"no end after {self._request.timeout_sec:g} s"
            raise SandboxError(ErrorKind.TIMEOUT, "run", cause, result=result)
        if self.stopped:
            cause = "the sandbox was told to end it"
            raise SandboxError(ErrorKind.UNKNOWN, "run", cause, result=result)
        return result

    def _end_for(self, limit: Ending) -> None:
        """End it because it exceeded a limit; the first limit counts."""
        if self.limit is None:
            self.limit = limit
            self._end()
