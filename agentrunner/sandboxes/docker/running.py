"""Runs one request in a container: bounded output, a firm deadline."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from agentrunner.sandboxes.base import CommandResult, OnOutput, Request
from agentrunner.sandboxes.command_record import KILLED, CommandRecord, Moment
from agentrunner.sandboxes.disk import DiskWatch
from agentrunner.sandboxes.docker.container import Container, Exit
from agentrunner.sandboxes.docker.engine import EngineError
from agentrunner.sandboxes.docker.exec import ExecCommand
from agentrunner.sandboxes.process import DRAIN_SEC


class ContainerRun:
    """A request, from its first container to its end."""

    def __init__(self, request: Request, on_output: OnOutput | None, grace_sec: float) -> None:
        self.over = asyncio.Event()
        """Nothing of it is left; set by the caller that provides the containers."""
        self._request = request
        self._grace_sec = grace_sec
        self._enough = asyncio.Event()
        self._record = CommandRecord(request, on_output, self._enough.set)
        self._began = Moment.now()

    def stop(self) -> None:
        """End it at once; its waiter gets an error that says it was stopped."""
        self._record.stopped = True
        self._enough.set()

    async def to_its_end(
        self, container: Container, command: ExecCommand, disk: DiskWatch | None = None
    ) -> CommandResult:
        """Run the command; until it ends, `disk` is asked whether too much was written.

        Raises SandboxError: TIMEOUT, UNKNOWN if it was stopped, INFRA (an EngineError). The
        container is removed if anything of the command might be left in it.
        """
        self._begin()
        executing = asyncio.ensure_future(
            container.execute(command, self._stdin(), self._record.take, started=self._begin)
        )
        enough = asyncio.ensure_future(self._enough.wait())
        watching = asyncio.ensure_future(self._record.watch_disk(disk))
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
            ended = Moment.now()
            if not executing.done():
                await _remove_under(container, executing)
        except asyncio.CancelledError:
            await asyncio.shield(_remove_under(container, executing))
            raise
        finally:
            for task in (enough, executing, watching):
                task.cancel()
            await asyncio.gather(enough, executing, watching, return_exceptions=True)
        by_itself = not (late or self._record.limit or self._record.stopped)
        exited = executing.result() if by_itself else Exit(KILLED, oom=False)
        return self._record.result(exited.code, self._began, ended, oom=exited.oom, late=late)

    def _begin(self) -> None:
        self._began = Moment.now()

    async def _stdin(self) -> AsyncIterator[bytes]:
        if self._request.stdin:
            yield self._request.stdin


async def _remove_under(container: Container, executing: asyncio.Future[Exit]) -> None:
    """Remove the container while the command runs in it."""
    with contextlib.suppress(EngineError):
        await container.remove()
    await asyncio.wait({executing}, timeout=DRAIN_SEC)
