"""What the sandboxes whose commands are processes of this host have in common."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from signal import SIGCONT, SIGSTOP, Signals

from agentrunner.sandboxes.base import (
    CommandResult,
    Launch,
    OnOutput,
    Request,
    ResourceLimit,
    SandboxOrder,
)
from agentrunner.sandboxes.limits import HeldLimits, watch_disk
from agentrunner.sandboxes.process import DRAIN_SEC, GRACE_SEC, LaunchEnd, RunningLaunch, run_launch


class HostSandbox:
    """Runs launches on this host. `environ` and `host_home` are only used to find toolchains."""

    image = ""

    def __init__(
        self,
        spec: SandboxOrder,
        *,
        environ: Mapping[str, str],
        host_home: Path,
        grace_sec: float = GRACE_SEC,
    ) -> None:
        self._spec = spec
        self._environ = environ
        self._host_home = host_home
        self._grace_sec = grace_sec
        self._held = self.hold(spec.limits)
        self._live: set[RunningLaunch] = set()

    @staticmethod
    def hold(limits: ResourceLimit) -> HeldLimits:
        """Return what enforces the limits; raises UsageError for one that nothing here enforces."""
        raise NotImplementedError

    async def _run_launch(
        self, launch: Launch, request: Request, on_output: OnOutput | None
    ) -> LaunchEnd:
        """Run a launch to its end within the limits; raises SandboxError and OSError."""
        tree = request.repo_copy or self._spec.repo
        disk = await asyncio.to_thread(watch_disk, self._spec.limits, tree, self._spec.home)
        return await run_launch(
            launch,
            request,
            live=self._live,
            disk=disk,
            on_output=on_output,
            grace_sec=self._grace_sec,
        )

    async def pause(self) -> None:
        """Stop every process that `run` has started. Deadlines keep running."""
        await self._signal(SIGSTOP)

    async def unpause(self) -> None:
        """Resume the stopped processes."""
        await self._signal(SIGCONT)

    async def kill_all(self) -> None:
        """Kill what `run` has started; a worker is ended by its supervisor."""
        ending = list(self._live)
        for running in ending:
            await running.started.wait()
            running.record.stopped = True
            running.kill()
        for running in ending:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(running.exited.wait(), DRAIN_SEC)

    async def _signal(self, signum: Signals) -> None:
        for running in list(self._live):
            await running.started.wait()
            running.signal_all(signum)


def not_executed(
    message: bytes, began: datetime, ended: datetime, *, missing: bool, duration_sec: float = 0
) -> CommandResult:
    """Return the result of a program that is missing (exit code 127) or can't be executed (126)."""
    return CommandResult(
        exit_code=127 if missing else 126,
        stdout=b"",
        stderr=message,
        started_at=began,
        ended_at=ended,
        duration_sec=duration_sec,
        stderr_bytes=len(message),
    )
