"""The supervisor: watches one worker, outlives AgentRunner, and records how the worker ended.

It uses only the standard library (`client` starts it; 15 ms, 11 MiB). The order comes through stdin
and is never written anywhere, because it holds secrets: a line with two lengths, that many bytes of
JSON, that many bytes for the worker's stdin. It holds the inherited flocks until it ends; they are
the only sign that it lives. In its folder it writes

    started.json    before the worker is released: pids, start times, boot id
    stdout, stderr  what the worker printed (see `streams`), and counts, how much that is
    after.json      the output of the command that ran after the worker
    result.json     at the end, by rename, into space reserved before the worker started
    supervisor.log  its stderr: empty unless it fails itself

SIGTERM stops the worker gracefully (outcome `interrupted`).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import time
from math import inf
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.disk import DiskWatch
from agentrunner.sandboxes.process_tree import (
    PR_SET_CHILD_SUBREAPER,
    descendants,
    prctl,
    process_table,
)
from agentrunner.storage.failpoints import reach
from agentrunner.storage.process_time import start_time
from agentrunner.supervisor.child import Child, OwnProgram
from agentrunner.supervisor.companion import Companion
from agentrunner.supervisor.loop import CHUNK, Loop
from agentrunner.supervisor.streams import COUNTS, CappedStream, redactor_of
from agentrunner.supervisor.watching import OutputWatch, Watcher

RESERVED = 1 << 16
ENDING_SEC = 60.0
"""More than stopping, leftovers and pipes can take together; for the host's own deadline."""
AFTER_LIMIT = 1 << 20
INT_GRACE_SEC = 2.0
TERM_GRACE_SEC = 5.0
KILL_GRACE_SEC = 10.0


def utc_now() -> str:
    """Return the present time: UTC, ISO 8601, milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


class Supervisor:
    """One worker from start to end."""

    def __init__(self, order: dict[str, Any], stdin: bytes) -> None:
        self.order = order
        self.dir = Path(order["dir"])
        self.stdin = memoryview(stdin)
        redactor = redactor_of((bytes.fromhex(text), name) for text, name in order["secrets"])
        self.out = CappedStream(self.dir / "stdout", redactor)
        self.err = CappedStream(self.dir / "stderr", redactor)
        self.watcher = Watcher(OutputWatch(**order["watch"]))
        self.counts = self.open_new("counts")
        os.write(self.counts, COUNTS.pack(0, 0))  # reserve its space, like that of the result
        self.result = self.reserve()
        self.loop = Loop()
        self.reason = ""
        """Why we stop the worker; "" while we don't."""
        self.steps: list[tuple[int, float]] = []
        """Signals still to be sent, each with the seconds to wait after it."""
        self.next_step = 0.0
        self.error = ""
        folders, cap = order["disk"] or ((), 0)
        self.disk = DiskWatch(map(Path, folders), cap) if folders else None
        self.next_look = 0.0
        gateway = order["companion"]
        self.companion = Companion(gateway, self.loop) if gateway else None

    def open_new(self, name: str) -> int:
        """Create an empty file in our folder, for its owner only."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        return os.open(self.dir / name, flags, 0o600)

    def publish(self, fd: int, name: str) -> None:
        """Make NAME.new appear as NAME, complete and on the disk."""
        os.fsync(fd)
        os.close(fd)
        (self.dir / f"{name}.new").rename(self.dir / name)
        folder = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)

    def reserve(self) -> int:
        """Reserve space for the result, so that a worker that fills the disk can't prevent it."""
        fd = self.open_new("result.json.new")
        try:
            os.posix_fallocate(fd, 0, RESERVED)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            os.write(fd, bytes(RESERVED))
        return fd

    def run(self) -> None:
        """Start the worker, wait for its end, write the result."""
        reach("supervisor_before_started")
        self.child = Child(self.order["argv"], self.order["env"], self.order["cwd"])
        leftovers = 0
        try:
            if self.companion is not None:
                self.companion.start()
            self.start()
            reach("supervisor_after_start")
            self.watch()
        finally:
            if self.companion is not None:
                self.companion.end()
            leftovers = self.child.kill_leftovers()
        self.loop.drain()
        ended_at, duration = utc_now(), time.monotonic() - self.began
        reach("supervisor_after_worker")
        self.out.finish()
        self.err.finish()
        after = self.run_after()
        reach("supervisor_before_result")
        self.write_result(ended_at, duration, leftovers, after)

    def start(self) -> None:
        """Record that the worker is started, and only then release it.

        Until the gate opens the child waits, and if we die it never becomes the worker: so no
        worker ever runs that started.json does not mention.
        """
        self.started_at = utc_now()
        facts = {
            "supervisor": {"pid": os.getpid(), "start_time": start_time(os.getpid())},
            "worker": {"pid": self.child.pid, "start_time": start_time(self.child.pid)},
            "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip(),
            "started_at": self.started_at,
            "longest_sec": self.order["wall_sec"] + self.order["after_timeout_sec"] + ENDING_SEC,
        }
        fd = self.open_new("started.json.new")
        os.write(fd, json.dumps(facts).encode())
        self.publish(fd, "started.json")
        reach("supervisor_before_release")
        self.began = self.last_output = time.monotonic()
        self.error = self.child.release()
        child = self.child
        self.loop.hear(child.stdout, lambda: self.read(child.stdout, self.out))
        self.loop.hear(child.stderr, lambda: self.read(child.stderr, self.err))
        self.loop.feed(child.stdin, self.write_stdin)
        self.loop.hear(child.status_pipe, self.read_status)

    # Pipes

    def read(self, fd: int, stream: CappedStream) -> None:
        """Store what the worker printed."""
        data = os.read(fd, CHUNK)
        if not data:
            self.loop.forget(fd)
            return
        self.last_output = time.monotonic()
        stream.feed(data)
        self.watcher.feed(data, self.last_output, stdout=stream is self.out)
        os.pwrite(self.counts, COUNTS.pack(self.out.size, self.err.size), 0)

    def write_stdin(self) -> None:
        """Write some of the worker's stdin; it need not read it."""
        fd = self.child.stdin
        try:
            self.stdin = self.stdin[os.write(fd, self.stdin[:CHUNK]) :]
        except BrokenPipeError:
            self.stdin = memoryview(b"")
        if not self.stdin:
            self.loop.forget(fd)

    def read_status(self) -> None:
        """Read what the sandbox helper reports about its child."""
        data = os.read(self.child.status_pipe, CHUNK)
        self.child.inner_status += data
        if not data:
            self.loop.forget(self.child.status_pipe)

    # Limits

    def watch(self) -> None:
        """Watch until the worker has ended, or has survived even SIGKILL."""
        while True:
            self.child.reap()
            if self.child.status is not None:
                return
            now = time.monotonic()
            if not self.reason:
                self.reason = self.reason_to_stop(now)
                self.steps = [(signal.SIGTERM, TERM_GRACE_SEC), (signal.SIGKILL, KILL_GRACE_SEC)]
                if self.order["stop_signal"] == "INT":
                    self.steps.insert(0, (signal.SIGINT, INT_GRACE_SEC))
                if self.reason == "disk_limit":  # it would use the grace period to write more
                    del self.steps[:-1]
                self.next_step = now
            if self.reason and now >= self.next_step:
                if not self.steps:
                    self.error = "the worker did not end after SIGKILL"
                    return
                number, grace = self.steps.pop(0)
                self.child.signal(number)
                self.next_step = now + grace
            self.loop.poll(self.next_step if self.reason else self.next_limit())

    def next_limit(self) -> float:
        """Return when the next time limit is reached if nothing happens."""
        wall: float = self.began + self.order["wall_sec"]
        limit = min(wall, self.watcher.limit, self.idle_limit())
        return limit if self.disk is None else min(limit, self.next_look)

    def idle_limit(self) -> float:
        """Return when it has been silent for too long; never, if it has printed its last event."""
        idle = self.order["idle_sec"]
        return inf if idle is None or self.watcher.finished else self.last_output + idle

    def disk_is_full(self, now: float) -> bool:
        """Whether the worker has written more than allowed; checked from time to time."""
        if self.disk is None or now < self.next_look:
            return False
        full = self.disk.over(lambda: descendants(os.getpid(), process_table()))
        self.next_look = now + self.disk.wait_sec
        return full

    def reason_to_stop(self, now: float) -> str:
        """Return the exceeded limit, "interrupted" if we are asked to stop, or else ""."""
        if self.loop.stop_asked:
            return "interrupted"
        if self.companion is not None and self.companion.stop_reason:
            self.error = self.companion.stop_reason
            return "egress"
        if self.out.printed + self.err.printed > self.order["output_limit"]:
            return "output_limit"
        if now >= self.began + self.order["wall_sec"]:
            return "timeout"
        if self.disk_is_full(now):
            return "disk_limit"
        if now >= self.idle_limit():
            return "idle_timeout"
        return self.watcher.reason(now)

    # The end

    def run_after(self) -> dict[str, object]:
        """Run the command that examines what the worker left; it prints one JSON object."""
        argv = self.order["after"]
        if not argv:
            return {}
        after = OwnProgram(argv, {}, "/")
        output = self.open_new("after.json")
        error = after.release()
        os.close(after.stdin)
        self.loop.hear(after.stdout, lambda: self.keep(after.stdout, output))
        self.loop.hear(after.stderr, lambda: self.keep(after.stderr, 2))
        deadline = time.monotonic() + self.order["after_timeout_sec"]
        while after.status is None and time.monotonic() < deadline:
            self.loop.poll(deadline)
            after.reap()
        after.kill_leftovers()
        self.loop.drain()
        if error or after.status != 0:
            return {"error": error or f"it ended with {after.status}"}
        try:
            value = json.loads(os.pread(output, AFTER_LIMIT, 0))
        except ValueError:
            value = None
        return value if isinstance(value, dict) else {"error": "it printed no JSON object"}

    def keep(self, fd: int, target: int) -> None:
        """Copy what a pipe holds; on a full disk it is dropped, but the result is still written."""
        data = os.read(fd, CHUNK)
        if not data:
            self.loop.forget(fd)
            return
        with contextlib.suppress(OSError):
            os.write(target, data)

    def outcome(self) -> str:
        """Return why the worker ended."""
        if self.reason:
            return self.reason
        if self.child.oom:
            return "oom"
        if not self.error and not self.child.ran:
            self.error = self.child.complaint or "the sandbox ended before the worker did"
        return "infra" if self.error else "exited"

    def write_result(
        self, ended_at: str, duration: float, leftovers: int, after: dict[str, Any]
    ) -> None:
        """Write how the worker ended, in one step."""
        outcome = self.outcome()
        result = {
            "outcome": outcome,
            "exit_code": None if outcome == "infra" else self.child.exit_code,
            "error": self.error,
            "started_at": self.started_at,
            "ended_at": ended_at,
            "duration_sec": round(duration, 3),
            "stdout_bytes": self.out.printed,
            "stderr_bytes": self.err.printed,
            "output_lost": self.out.lost or self.err.lost,
            "leftovers": leftovers,
            "after": after,
        }
        data = json.dumps(result).encode()
        os.pwrite(self.result, data, 0)
        os.ftruncate(self.result, len(data))
        self.publish(self.result, "result.json")


def read_order() -> tuple[dict[str, Any], bytes]:
    """Return the order from stdin; raises ValueError if it is incomplete."""
    with os.fdopen(0, "rb", closefd=False) as file:
        lengths = [int(number) for number in file.readline().split()]
        order, stdin = (file.read(length) for length in lengths)
        if [len(order), len(stdin)] != lengths:
            raise ValueError("the order is cut off")
    return json.loads(order), stdin


def main() -> None:
    """Run as the supervisor of one worker."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        # Only we may hold the locks: a worker that inherited them could hold them forever.
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)
    os.umask(0o077)
    os.chdir("/")
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        order, stdin = read_order()
        Supervisor(order, stdin).run()
    except (OSError, ValueError) as error:
        sys.exit(f"supervisor: {error}")
    # All is written. To take apart what it has loaded takes Python a sixth of a supervisor's CPU.
    os._exit(0)
