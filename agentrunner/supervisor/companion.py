"""The process beside a worker: its gateway. Standard library only, for the supervisor."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from typing import Any

from agentrunner.sandboxes.process_tree import send
from agentrunner.supervisor.child import Child
from agentrunner.supervisor.loop import Loop

READY_SEC = 20.0
"""A gateway that does not listen by then hangs. It takes a third of a second."""
END_SEC = 3.0
MOST_STARTS = 10
"""One that dies this often in one worker run will not survive the next time either."""
LINE_LIMIT = 1 << 16


class Companion:
    """A gateway: started before the worker, restarted when it dies, ended after the worker."""

    def __init__(self, order: dict[str, Any], loop: Loop) -> None:
        self.order = order
        self.loop = loop
        self.ready = False
        self.stop_reason = ""
        """Why it wants the worker stopped; "" if it does not."""
        self.starts = 0
        self.alive = False
        self.ending = False
        self.line = b""

    def start(self) -> None:
        """Start it, and wait until it listens; raises ValueError if it does not."""
        self._spawn()
        deadline = time.monotonic() + READY_SEC
        while not self.ready and self.alive and time.monotonic() < deadline:
            self.loop.poll(deadline)
        if not self.ready:
            raise ValueError("the gateway of the sandbox did not start")

    def end(self) -> None:
        """Let it end gracefully, or else kill it."""
        self.ending = True
        if not self.alive:
            return
        os.close(self.child.stdin)
        deadline = time.monotonic() + END_SEC
        while not self._reaped(os.WNOHANG):
            if time.monotonic() >= deadline:
                send(self.child.pid, signal.SIGKILL)
            self.loop.poll(deadline)

    def _reaped(self, options: int) -> bool:
        """Whether it is gone for good; other code that reaps children may have been first."""
        try:
            return os.waitpid(self.child.pid, options)[0] != 0
        except ChildProcessError:
            return True

    def _spawn(self) -> None:
        self.starts += 1
        self.alive = True
        self.line = b""
        self.child = child = Child(self.order["argv"], self.order["env"], "/")
        error = child.release()
        os.close(child.status_pipe)
        # Bound to this very child: when one of its pipes is at its end there may be another child.
        self.loop.hear(child.stdout, lambda: self._read(child))
        self.loop.hear(child.stderr, lambda: self._pass_on(child))
        if error:
            raise ValueError(error)
        text = bytes.fromhex(self.order["stdin"])
        with contextlib.suppress(OSError):  # a larger pipe than usual may not be permitted
            fcntl.fcntl(child.stdin, fcntl.F_SETPIPE_SZ, 1 << 20)
        with contextlib.suppress(BrokenPipeError):
            os.write(child.stdin, b"%d\n" % len(text) + text)

    def _read(self, child: Child) -> None:
        """Read its messages; the end of the pipe means that it is dead."""
        data = os.read(child.stdout, LINE_LIMIT)
        if not data:
            self.loop.forget(child.stdout)
            self.alive = False
            if not self.ending:
                os.close(child.stdin)
                if self.ready and self.starts < MOST_STARTS:
                    self._spawn()
            return
        *lines, self.line = (self.line + data).split(b"\n")
        self.line = self.line[-LINE_LIMIT:]
        for line in lines:
            with contextlib.suppress(ValueError, AttributeError):
                self._obey(json.loads(line))

    def _obey(self, message: dict[str, Any]) -> None:
        if message.get("event") == "ready":
            self.ready = True
        elif message.get("event") == "stop" and not self.stop_reason:
            self.stop_reason = str(message.get("reason"))[:300]

    def _pass_on(self, child: Child) -> None:
        """Copy its complaints to the supervisor's own log."""
        data = os.read(child.stderr, LINE_LIMIT)
        if not data:
            self.loop.forget(child.stderr)
            return
        with contextlib.suppress(OSError):
            os.write(2, data[:4096])
