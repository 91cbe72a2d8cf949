"""Runs a `Launch` to its end: bounded output, a firm deadline, no process left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass
from typing import Any

from agentrunner.sandboxes.base import CommandResult, Launch, OnOutput, Request
from agentrunner.sandboxes.command_record import CommandRecord, Moment
from agentrunner.sandboxes.disk import DiskWatch
from agentrunner.sandboxes.process_tree import (
    children,
    family,
    hold_family,
    kill_family,
    kill_held,
    signal_family,
)

GRACE_SEC = 5.0
"""From SIGTERM to SIGKILL."""
DRAIN_SEC = 1.0
"""How long to read output, and wait for the last process, after the command has ended."""
STATUS_FD = "{status_fd}"


@dataclass(frozen=True)
class LaunchEnd:
    """The end of a launch. `reported` is the exit code from the sandbox's helper, if any."""

    result: CommandResult
    reported: int | None


class _Pipes(asyncio.SubprocessProtocol):
    """Passes the process's events to its `RunningLaunch`.

    asyncio.subprocess.Process is not used because its wait() can be blocked by a grandchild that
    keeps a pipe open.
    """

    def __init__(self, running: RunningLaunch) -> None:
        self._running = running

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self._running.record.take("stdout" if fd == 1 else "stderr", data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._running.pipe_closed(fd)

    def process_exited(self) -> None:
        self._running.exited.set()


class RunningLaunch:
    """One started request, from its first byte of output to the end of its last process."""

    def __init__(self, request: Request, launch: Launch, on_output: OnOutput | None) -> None:
        self.started = asyncio.Event()
        """Set when the process has started or could not be started."""
        self.exited = asyncio.Event()
        self.drained = asyncio.Event()
        self.record = CommandRecord(request, on_output, self.kill)
        self._request = request
        self._launch = launch
        self._open_pipes = {1, 2}
        self._transport: asyncio.SubprocessTransport | None = None
        self._status_read = -1
        self._status_text = b""
        self._inner_pid: int | None = None
        self._inner_pidfd = -1
        self._reported: int | None = None
        self._oom = False

    @property
    def is_started(self) -> bool:
        """Whether there is a process to end."""
        return self._transport is not None

    async def start(self) -> None:
        """Start the process; raises the kernel's OSError."""
        loop = asyncio.get_running_loop()
        argv = list(self._launch.argv)
        status_write = -1
        if STATUS_FD in argv:
            self._status_read, status_write = os.pipe()
            os.set_blocking(self._status_read, False)
            argv = [str(status_write) if word == STATUS_FD else word for word in argv]
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: _Pipes(self),
                *argv,
                stdin=asyncio.subprocess.PIPE
                if self._request.stdin
                else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._launch.cwd,
                env=dict(self._launch.env),
                start_new_session=True,
                pass_fds=(status_write,) if status_write >= 0 else (),
            )
        except BaseException:
            self._close_status()
            raise
        finally:
            self.started.set()
            if status_write >= 0:
                os.close(status_write)
        self._transport = transport
        if self._status_read >= 0:
            loop.add_reader(self._status_read, self._read_status)
        stdin: Any = transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.write(self._request.stdin)
            stdin.close()

    async def watch_disk(self, watch: DiskWatch | None) -> None:
        """Kill it when it has written more than allowed. Cancel this when the process ends."""
        await self.record.watch_disk(watch, lambda: family(self._pid()))

    def pipe_closed(self, fd: int) -> None:
        """Record that no more output will come on this stream."""
        self._open_pipes.discard(fd)
        if not self._open_pipes:
            self.drained.set()

    def signal_all(self, signum: signal.Signals) -> None:
        """Send a signal to the process and all its descendants."""
        if self._transport is not None:
            signal_family(self._pid(), signum)

    def kill(self) -> None:
        """SIGKILL the sandbox, or, without one, every process that can be found. Does not wait."""
        if self._transport is None:
            return
        self._read_status()
        if self._inner_pidfd < 0:
            self._kill_family()
            return
        # Killing the first process of a PID namespace kills all others. The helper then ends by
        # itself and cleans up; it may have been paused.
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._inner_pidfd, signal.SIGKILL)
        if not self.exited.is_set():
            signal_family(self._pid(), signal.SIGCONT)

    def _kill_family(self) -> None:
        if not (self._launch.contains_children and self.exited.is_set()):
            kill_family(self._pid())

    async def stop(self, grace_sec: float) -> None:
        """Send SIGTERM to the command, and SIGKILL to everything after `grace_sec`."""
        self._read_status()
        target = self._pid()
        if self._inner_pid is not None:
            # The first process in the namespace ignores SIGTERM, and the helper would drop the
            # whole sandbox: the command is the first process's child.
            target = next(iter(children(self._inner_pid)), target)
        # Without a namespace, children can no longer be found once their parent has ended.
        known = [] if self._launch.contains_children else hold_family(self._pid())
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(os.getpgid(target), signal.SIGTERM)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.exited.wait(), grace_sec)
        finally:
            kill_held(known)
            self.kill()

    async def finish(self) -> None:
        """Kill what is left, wait a bounded time until all of it is gone, and read its output."""
        self.kill()
        if not self.exited.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.exited.wait(), DRAIN_SEC)
            self.kill()
            self._kill_family()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SEC):
                await self._sandbox_gone()
                await self.drained.wait()
        self.close()

    def close(self) -> None:
        """Release pipes and descriptors."""
        if self._transport is not None:
            self._transport.close()
        self._close_status()

    def ended(self, began: Moment, ended: Moment, *, late: bool) -> LaunchEnd:
        """Return the result; raises SandboxError if it was `late`, or ended through `live`."""
        code = self._transport.get_returncode() if self._transport is not None else None
        exit_code = self._reported if self._reported is not None else code
        if exit_code is None or exit_code < 0:
            exit_code = 128 + abs(exit_code if exit_code is not None else signal.SIGKILL)
        result = self.record.result(exit_code, began, ended, oom=self._oom, late=late)
        return LaunchEnd(result, self._reported)

    def _pid(self) -> int:
        assert self._transport is not None
        pid = self._transport.get_pid()
        assert pid is not None
        return pid

    def _read_status(self) -> None:
        if self._status_read < 0:
            return
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._status_read, 65536):
                self._status_text += piece
            asyncio.get_running_loop().remove_reader(self._status_read)
        *lines, self._status_text = self._status_text.split(b"\n")
        for line in lines:
            fact = json.loads(line)
            if "child-pid" in fact:
                self._inner_pid = int(fact["child-pid"])
                with contextlib.suppress(ProcessLookupError):
                    self._inner_pidfd = os.pidfd_open(self._inner_pid)
            if "exit-code" in fact:
                self._reported = int(fact["exit-code"])
            self._oom |= "oom" in fact

    async def _sandbox_gone(self) -> None:
        """Wait for the end of the PID namespace, which ends after its last process."""
        if self._inner_pidfd < 0:
            return
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        loop.add_reader(self._inner_pidfd, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(self._inner_pidfd)
        # The helper does not reap it; as PID 1 of a container, or as a subreaper, we must.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self._inner_pidfd, os.WEXITED | os.WNOHANG)  # noqa: ASYNC222

    def _close_status(self) -> None:
        if self._status_read >= 0:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._status_read)
            os.close(self._status_read)
            self._status_read = -1
        if self._inner_pidfd >= 0:
            os.close(self._inner_pidfd)
            self._inner_pidfd = -1


async def run_launch(
    launch: Launch,
    request: Request,
    *,
    live: set[RunningLaunch],
    disk: DiskWatch | None = None,
    on_output: OnOutput | None = None,
    grace_sec: float = GRACE_SEC,
) -> LaunchEnd:
    """Run a launch to its end. While it runs it is in `live`, so that it can be ended or frozen.

    `disk` is asked meanwhile whether too much was written. `on_output` is called from the event
    loop; it must be quick and must not raise. Raises SandboxError(TIMEOUT) after the deadline,
    SandboxError(UNKNOWN) when ended through `live`, and OSError when it cannot be started. If this
    is cancelled, everything is killed.
    """
    running = RunningLaunch(request, launch, on_output)
    began = Moment.now()
    live.add(running)
    starting = asyncio.ensure_future(running.start())
    late = False
    watching: asyncio.Task[None] | None = None
    try:
        # Shielded: when a start is cancelled halfway, asyncio loses the child that it forked.
        await asyncio.shield(starting)
        watching = asyncio.create_task(running.watch_disk(disk))
        try:
            async with asyncio.timeout(request.timeout_sec):
                await running.exited.wait()
        except TimeoutError:
            late = True
            await running.stop(grace_sec)
        ended = Moment.now()
    finally:
        with contextlib.suppress(OSError):
            await starting
        live.discard(running)
        if watching is not None:
            watching.cancel()
        if running.is_started:
            await running.finish()
    return running.ended(began, ended, late=late)
