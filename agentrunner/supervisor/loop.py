"""The supervisor's event loop. Standard library only, for the supervisor."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Callable
from types import FrameType

CHUNK = 1 << 16
DRAIN_SEC = 1.0
"""How long pipes are read after the worker's end, if something still holds them open."""


class Loop:
    """Waits for pipes and signals, all with one poll."""

    def __init__(self) -> None:
        self.stop_asked = False
        """Whether SIGTERM was received."""
        self._poller = select.poll()
        self._actions: dict[int, Callable[[], None]] = {}
        """What to do when a pipe is ready."""
        self._signals = self._hear_signals()
        self._poller.register(self._signals, select.POLLIN)

    def _hear_signals(self) -> int:
        """Turn signals into bytes on a pipe, so that one poll waits for everything."""
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        return reading

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_asked = True

    def hear(self, fd: int, action: Callable[[], None]) -> None:
        """Run `action` whenever a pipe has something to read, or is at its end."""
        self._listen(fd, select.POLLIN, action)

    def feed(self, fd: int, action: Callable[[], None]) -> None:
        """Run `action` whenever a pipe accepts more."""
        self._listen(fd, select.POLLOUT, action)

    def _listen(self, fd: int, events: int, action: Callable[[], None]) -> None:
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
        self._actions[fd] = action
        self._poller.register(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching a pipe that is at its end, and close it."""
        self._poller.unregister(fd)
        del self._actions[fd]
        os.close(fd)

    def poll(self, deadline: float) -> None:
        """Wait for any event, but not past `deadline`, of the monotonic clock."""
        remaining = max(0.0, deadline - time.monotonic())
        for fd, _ in self._poller.poll(int(remaining * 1000) + 1):
            if fd == self._signals:
                os.read(self._signals, CHUNK)
            elif fd in self._actions:
                # An earlier event may have closed it, and a new pipe may have got its number.
                with contextlib.suppress(BlockingIOError):
                    self._actions[fd]()

    def drain(self) -> None:
        """Read the rest of the pipes, for a moment: something unseen may hold them open."""
        deadline = time.monotonic() + DRAIN_SEC
        while self._actions and time.monotonic() < deadline:
            self.poll(deadline)
