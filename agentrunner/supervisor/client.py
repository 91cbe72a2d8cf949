"""Our side of the supervisor: start it, follow it, stop it, and read its records.

A worker run is started once, under a claim of the ledger. Whichever process drives the run
afterwards, this one or a later one, waits for it in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from agentrunner.environment import own_process
from agentrunner.gateway.gateway_process import GatewayCommand
from agentrunner.sandboxes.base import Launch, OnOutput
from agentrunner.sandboxes.process_tree import process_table, send
from agentrunner.storage.failpoints import reach
from agentrunner.storage.locks import FileLock, boot_id
from agentrunner.storage.process_time import start_time
from agentrunner.storage.worker_ledger import (
    Claim,
    Ledger,
    Lost,
    NotExecuted,
    RecordedEnd,
    Standing,
    StillRunning,
    Unclaimed,
)
from agentrunner.supervisor.streams import Tail
from agentrunner.supervisor.watching import OutputWatch, ProcessOutcome

POLL_SEC = 0.1
QUIET_SEC = 2.0
QUIET_POLL_SEC = 0.2
"""Between looks at a worker that has been silent for QUIET_SEC: it works for minutes."""
START_SEC = 60.0
"""A supervisor that has not started its worker by then hangs. It takes 20 ms."""

PASSED_ON = ("LD_LIBRARY_PATH", "AGENTRUNNER_TEST", "AGENTRUNNER_FAILPOINT")
"""All that the supervisor gets of our environment: what its Python needs to start, and tests."""


@dataclass(frozen=True)
class SupervisorOrder:
    """What a supervisor must do. Secrets may be in `launch.env`, `stdin` and `secrets`."""

    launch: Launch
    wall_sec: float
    idle_sec: float | None = None
    """Longest silence on both outputs."""
    stdin: bytes = field(default=b"", repr=False)
    output_limit: int = 1 << 30
    """Bytes of both outputs, after which the worker is stopped."""
    stop_signal: Literal["INT", "TERM"] = "TERM"
    watch: OutputWatch = field(default_factory=OutputWatch)
    """What to look for in its output: outcomes `lingered`, `retry_storm`, `login_prompt`."""
    after: tuple[str, ...] = ()
    """Command for when the worker has ended, e.g. `Snapshots.take_command()`; prints JSON."""
    after_timeout_sec: float = 600
    companion: GatewayCommand | None = None
    """A gateway: started before the worker, restarted when it dies, and ended after the worker.

    It prints JSON lines: `{"event": "ready"}` before the worker is released, and `{"event": "stop",
    "reason": TEXT}` if the worker must be stopped (outcome `egress`).
    """
    disk: tuple[tuple[Path, ...], int] | None = None
    """Folders, and by how many bytes they may grow together."""
    secrets: Mapping[bytes, str] = field(default_factory=dict, repr=False)
    """What must not get into the output files: each spelling of a secret, and its mark."""


@dataclass(frozen=True)
class SupervisedResult:
    """How a worker run ended, by the supervisor's own record."""

    worker_run_id: str
    outcome: ProcessOutcome
    """Why it ended. `infra`: the worker itself never ran. `lost`: nobody saw its end."""
    stdout: Path
    stderr: Path
    exit_code: int | None = None
    """The worker's; 128 + n after signal n."""
    error: str = ""
    """For outcome `egress`: the host that was refused again and again, as host:port."""
    started_at: str = ""
    """UTC, ISO 8601, like `ended_at`, which is empty for a lost run."""
    ended_at: str = ""
    duration_sec: float = 0
    stdout_bytes: int = 0
    """How many were printed; the files keep the first MiB and the last 63."""
    stderr_bytes: int = 0
    output_lost: bool = False
    """The disk was full, so that not even that much was kept."""
    leftovers: int = 0
    """Processes that the worker left behind and that were killed."""
    after: Mapping[str, Any] = field(default_factory=dict)
    """The output of the command that ran after it, or its `error`."""

    @property
    def tree_after(self) -> str:
        """The snapshot taken right after the worker; "" if that failed or none was ordered."""
        return str(self.after.get("tree", ""))


def order_bytes(order: SupervisorOrder, folder: Path) -> bytes:
    """Return the order as the supervisor reads it from its stdin."""
    launch = order.launch
    text = json.dumps(
        {
            "dir": str(folder),
            "argv": list(launch.argv),
            "env": dict(launch.env),
            "cwd": str(launch.cwd),
            "wall_sec": order.wall_sec,
            "idle_sec": order.idle_sec,
            "output_limit": order.output_limit,
            "stop_signal": order.stop_signal,
            "watch": order.watch._asdict(),
            "after": list(order.after),
            "after_timeout_sec": order.after_timeout_sec,
            "companion": _companion(order.companion),
            "disk": order.disk and [[str(folder) for folder in order.disk[0]], order.disk[1]],
            "secrets": [[spelling.hex(), name] for spelling, name in order.secrets.items()],
        }
    ).encode()
    return b"%d %d\n" % (len(text), len(order.stdin)) + text + order.stdin


def _companion(companion: GatewayCommand | None) -> dict[str, object] | None:
    if companion is None:
        return None
    argv, stdin = list(companion.argv), companion.stdin.hex()
    return {"argv": argv, "env": dict(companion.env), "stdin": stdin}


def start(order: SupervisorOrder, claim: Claim, repo_lock: FileLock) -> subprocess.Popen[bytes]:
    """Start the supervisor of a claimed worker run, which takes over the claim.

    Blocks for about 20 ms; may run in a thread, because the supervisor does not die with its parent
    (asyncio's own subprocesses die with the loop). If it dies at once, `wait` reports that.
    """
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(claim.dir / "supervisor.log", flags, 0o600), "wb") as log:
            process = subprocess.Popen(
                own_process("agentrunner.supervisor.main", packages=False),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
                pass_fds=(claim.fd, repo_lock.fd),
                start_new_session=True,
            )
        reach("after_spawn_before_spec")
        data = order_bytes(order, claim.dir)
        # It may be dead already: then its lock is free, and `wait` finds that out.
        with contextlib.suppress(BrokenPipeError):
            pipe = process.stdin
            assert pipe is not None
            with pipe:
                pipe.write(data[: len(data) // 2])
                pipe.flush()
                reach("mid_spec")
                pipe.write(data[len(data) // 2 :])
    finally:
        # While we have it open, the lock would look held after the supervisor's end.
        claim.close()
    return process


async def wait(
    ledger: Ledger,
    worker_run_id: str,
    *,
    on_output: OnOutput | None = None,
    on_look: Callable[[], None] | None = None,
    deadline: float | None = None,
    stop: asyncio.Event | None = None,
    process: subprocess.Popen[bytes] | None = None,
    replay: bool = True,
) -> SupervisedResult:
    """Follow a worker run to its end, whichever process started it.

    `deadline` (seconds from now; by default beyond all limits of its order) is for a supervisor
    that hangs itself: it is killed, and the run is lost. `stop` requests a graceful stop. `process`
    is what `start` returned, to be reaped. Without `replay`, `on_output` gets only output from now
    on. `on_look` is called a few times a second. Cancelling leaves the worker running.
    """
    folder = ledger.dir(worker_run_id)
    tails = {
        "stdout": Tail(folder, "stdout", from_end=not replay),
        "stderr": Tail(folder, "stderr", from_end=not replay),
    }
    began = last_output = time.monotonic()
    asked = False
    try:
        with _end_of(process) as ended:
            while True:
                # A living supervisor holds its lock: only ask when ours has ended.
                if ended.reached:
                    standing = ledger.look(worker_run_id)
                    if not isinstance(standing, StillRunning):
                        break
                if stop is not None and stop.is_set() and not asked:
                    asked = request_stop(folder)
                now = time.monotonic()
                if deadline is None and (process is None or now - began >= START_SEC):
                    deadline = _longest_sec(ledger, worker_run_id)
                if now - began >= (START_SEC if deadline is None else deadline):
                    signal_supervisor(folder, signal.SIGKILL, process)
                if on_look is not None:
                    on_look()
                if _pass_on_output(tails, on_output):
                    last_output = now
                    await asyncio.sleep(0)
                else:
                    await ended.pause(POLL_SEC if now - last_output < QUIET_SEC else QUIET_POLL_SEC)
        while _pass_on_output(tails, on_output):  # noqa: ASYNC110 - lets others run in between
            await asyncio.sleep(0)
    finally:
        for tail in tails.values():
            tail.close()
    if process is not None and process.poll() is None:
        await asyncio.to_thread(process.wait)
    if isinstance(standing, Lost):
        end_session(folder)
    return read_result(ledger, worker_run_id, standing)


class _End:
    """The end of a child process, and pauses that it cuts short."""

    def __init__(self) -> None:
        self.reached = False
        self._pause: asyncio.Future[None] | None = None

    def reach(self) -> None:
        """Record that it has ended."""
        self.reached = True
        self._wake()

    def _wake(self) -> None:
        if self._pause is not None and not self._pause.done():
            self._pause.set_result(None)

    async def pause(self, seconds: float) -> None:
        """Pause, at most until it ends if it had not; costs a third of what a timeout costs."""
        if self.reached:
            await asyncio.sleep(seconds)
            return
        loop = asyncio.get_running_loop()
        self._pause = loop.create_future()
        timer = loop.call_later(seconds, self._wake)
        try:
            await self._pause
        finally:
            timer.cancel()


@contextlib.contextmanager
def _end_of(process: subprocess.Popen[bytes] | None) -> Iterator[_End]:
    """Yield the end of `process`; reached at once if it is None or cannot be watched."""
    ended = _End()
    try:
        if process is None:
            raise ProcessLookupError
        fd = os.pidfd_open(process.pid)
    except OSError:
        ended.reach()
        yield ended
        return
    loop = asyncio.get_running_loop()

    def over() -> None:
        loop.remove_reader(fd)  # it stays readable
        ended.reach()

    loop.add_reader(fd, over)
    try:
        yield ended
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _longest_sec(ledger: Ledger, worker_run_id: str) -> float | None:
    """Return after how many seconds a working supervisor has ended; None until it has said so."""
    longest = ledger.started(worker_run_id).get("longest_sec")
    return None if longest is None else float(longest)


def _pass_on_output(tails: Mapping[str, Tail], on_output: OnOutput | None) -> bool:
    """Pass on new output; return whether there was any."""
    fresh = False
    for name, tail in tails.items():
        data = tail.read() if on_output is not None else b""
        if data and on_output is not None:
            on_output(cast("Literal['stdout', 'stderr']", name), data)
            fresh = True
    return fresh


def read_result(ledger: Ledger, worker_run_id: str, standing: Standing) -> SupervisedResult:
    """Return what a standing that is not `StillRunning` means for the worker run."""
    folder = ledger.dir(worker_run_id)
    files = (folder / "stdout", folder / "stderr")
    match standing:
        case RecordedEnd(result):
            with contextlib.suppress(TypeError):
                return SupervisedResult(
                    worker_run_id=worker_run_id, stdout=files[0], stderr=files[1], **result
                )
        case NotExecuted():
            log = folder / "supervisor.log"
            output = log.read_text("utf-8", "replace")[-2000:].strip() if log.exists() else ""
            error = f"the supervisor ended before the worker started. {output}".strip()
            return SupervisedResult(worker_run_id, "infra", *files, error=error)
        case Unclaimed():
            raise ValueError(f"worker run {worker_run_id} was never claimed")
    return SupervisedResult(
        worker_run_id,
        "lost",
        *files,
        error="its supervisor ended without a result",
        started_at=str(ledger.started(worker_run_id).get("started_at", "")),
    )


def request_stop(folder: Path) -> bool:
    """Ask a supervisor to stop its worker gracefully; False if it has not started one yet."""
    return signal_supervisor(folder, signal.SIGTERM)


def signal_supervisor(
    folder: Path, number: signal.Signals, process: subprocess.Popen[bytes] | None = None
) -> bool:
    """Signal the supervisor of a worker run's folder, but no other process that got its pid."""
    if process is not None:
        process.send_signal(number)
        return True
    with contextlib.suppress(OSError, ValueError, KeyError):
        pid, started = _started(folder, "supervisor")
        fd = os.pidfd_open(pid)
        try:
            if start_time(pid) == started:
                signal.pidfd_send_signal(fd, number)
                return True
        finally:
            os.close(fd)
    return False


def end_session(folder: Path) -> None:
    """Kill what is left of a lost worker in the session that its supervisor made for it.

    The end of a sandbox ends everything in it. Without a sandbox, a process that made its own
    session escapes: that is why a lost worker is not started again there.
    """
    with contextlib.suppress(OSError, ValueError, KeyError):
        session, started = _started(folder, "worker")
        # The number is not reused while the session has members. If it was, they are gone.
        if start_time(session) in (None, started):
            for pid, process in process_table().items():
                if process.session == session:
                    send(pid, signal.SIGKILL)


def _started(folder: Path, who: Literal["supervisor", "worker"]) -> tuple[int, object]:
    """Return pid and start time of one of the two processes of a worker run's folder.

    Raises OSError, ValueError or KeyError if none was started since this machine booted.
    """
    facts = json.loads((folder / "started.json").read_bytes())
    if facts["boot_id"] != boot_id():
        raise ValueError("another boot")
    return int(facts[who]["pid"]), facts[who]["start_time"]
