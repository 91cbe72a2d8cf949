"""Runs one request in a container: bounded output, a firm deadline."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

from agentrunner.sandboxes.base import (
    CommandResult,
    Ending,
    ErrorKind,
    OnOutput,
    Request,
    SandboxError,
)
from agentrunner.sandboxes.disk import DiskWatch
from agentrunner.sandboxes.docker.container import Container, Exit
from agentrunner.sandboxes.docker.engine import EngineError
from agentrunner.sandboxes.docker.exec import ExecCommand
from agentrunner.sandboxes.docker.stream import Stream
from agentrunner.sandboxes.process import DRAIN_SEC
from agentrunner.sandboxes.spool import Spool

KILLED = 128 + signal.SIGKILL


@dataclass
class _Clock:
    at: datetime
    monotonic: float

    @classmethod
    def now(cls) -> _Clock:
        return cls(datetime.now(UTC), time.monotonic())


class ContainerRun:
    """A request, from its first container to its end."""

    def __init__(self, request: Request, on_output: OnOutput | None, grace_sec: float) -> None:
        self.over = asyncio.Event()
        """Nothing of it is left; set by the caller that provides the containers."""
        self._request = request
        self._on_output = on_output
        self._grace_sec = grace_sec
        self._spools: dict[Stream, Spool] = {
            "stdout": Spool(request.keep_bytes),
            "stderr": Spool(request.keep_bytes),
        }
        self._enough = asyncio.Event()
        self._stopped = False
        self._limit: Ending | None = None
        self._start = _Clock.now()

    def stop(self) -> None:
        """End it at once; its waiter gets an error that says it was stopped."""
        self._stopped = True
        self._enough.set()

    async def to_its_end(
        self, container: Container, command: ExecCommand, disk: DiskWatch | None = None
    ) -> CommandResult:
        """Run the command; until it ends, `disk` is asked whether too much was written.

        Raises SandboxError: TIMEOUT, UNKNOWN if it was stopped, INFRA (an EngineError). The
        container is removed if anything of the command might be left in it.
        """
        self._start = _Clock.now()
        executing = asyncio.ensure_future(
            container.execute(command, self._stdin(), self._on_data, started=self._started)
        )
        enough = asyncio.ensure_future(self._enough.wait())
        watching = asyncio.ensure_future(self._watch(disk))
        both = {executing, enough}
        late = False
        try:
            left = self._request.timeout_sec
            done, _ = await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                late = True
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._grace_sec):
                        await container.terminate()
                        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            end = _Clock.now()
            if not executing.done():
                await _remove_under(container, executing)
        except asyncio.CancelledError:
            await asyncio.shield(_remove_under(container, executing))
            raise
        finally:
            for task in (enough, executing, watching):
                task.cancel()
            await asyncio.gather(enough, executing, watching, return_exceptions=True)
        return self._result(executing, end, late=late)

    def _started(self) -> None:
        self._start = _Clock.now()

    def _on_data(self, stream: Stream, data: bytes) -> None:
        if self._limit is not None:
            return
        self._spools[stream].feed(data)
        if self._on_output is not None:
            self._on_output(stream, data)
        total = sum(spool.total for spool in self._spools.values())
        if total > self._request.stop_bytes:
            self._end_for(Ending.OUTPUT_LIMIT)

    def _end_for(self, limit: Ending) -> None:
        """End the command for a limit; the first limit counts."""
        self._limit = self._limit or limit
        self._enough.set()

    async def _watch(self, disk: DiskWatch | None) -> None:
        """End the command when it has written more than allowed. Cancelled when it ends."""
        if disk is None:
            return
        over = False
        while not over:
            await asyncio.sleep(disk.wait_sec)
            over = await asyncio.to_thread(disk.over)
        self._end_for(Ending.DISK_LIMIT)

    async def _stdin(self) -> AsyncIterator[bytes]:
        if self._request.stdin:
            yield self._request.stdin

    def _result(self, executing: asyncio.Future[Exit], end: _Clock, *, late: bool) -> CommandResult:
        ended = self._limit is None and not late and not self._stopped
        exited = executing.result() if ended else Exit(KILLED, oom=False)
        ending = self._limit or (Ending.OOM if exited.oom else Ending.EXITED)
        out, err = self._spools["stdout"], self._spools["stderr"]
        result = CommandResult(
            exit_code=exited.code,
            stdout=out.value(),
            stderr=err.value(),
            started_at=self._start.at,
            ended_at=end.at,
            duration_sec=end.monotonic - self._start.monotonic,
            ending=ending,
            stdout_bytes=out.total,
            stderr_bytes=err.total,
        )
        if self._stopped:
            cause = "the sandbox was told to end it"
            raise SandboxError(ErrorKind.UNKNOWN, "run", cause, result=result)
        if late and self._limit is None:
            cause = f"no end after {self._request.timeout_sec:g} s"
            raise SandboxError(ErrorKind.TIMEOUT, "run", cause, result=result)
        return result


async def _remove_under(container: Container, executing: asyncio.Future[Exit]) -> None:
    """Remove the container while the command runs in it."""
    with contextlib.suppress(EngineError):
        await container.remove()
    await asyncio.wait({executing}, timeout=DRAIN_SEC)
