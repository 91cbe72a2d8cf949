"""Our side of the gateway process: how it is started, and one for a command of our own."""

from __future__ import annotations

import asyncio
import contextlib
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentrunner.environment import own_process
from agentrunner.errors import InfraError
from agentrunner.errors.sandboxes import GatewayFailed
from agentrunner.gateway.order import GatewayOrder

PASSED_ON = (
    "AGENTRUNNER_FAILPOINT", "AGENTRUNNER_TEST", "HTTPS_PROXY", "HTTP_PROXY", "LD_LIBRARY_PATH",
    "LOCALDOMAIN", "NO_PROXY", "RES_OPTIONS", "SSL_CERT_DIR", "SSL_CERT_FILE", "https_proxy",
    "http_proxy", "no_proxy",
)  # fmt: skip
"""All that it gets of our environment: what its Python needs to start, and how to dial out."""

READY_SEC = 15.0
END_SEC = 3.0
LAST_WORDS_SEC = 1.0
COMPLAINT_LIMIT = 4096
"""Bytes of its complaints that are kept for an error message."""


@dataclass(frozen=True)
class GatewayCommand:
    """How to start the gateway process of an order."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The complete environment, built from nothing."""
    stdin: bytes = field(repr=False)
    """The order, with secrets; a line with its length precedes it."""


def companion(order: GatewayOrder, environ: Mapping[str, str]) -> GatewayCommand:
    """Return how to start the process that serves `order`."""
    return GatewayCommand(
        argv=own_process("agentrunner.gateway.main", packages=True),
        env={name: environ[name] for name in PASSED_ON if name in environ},
        stdin=order.to_json(),
    )


class GatewayProcess:
    """A gateway process that listens."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._ready = asyncio.Event()
        self._complaints = bytearray()
        self._readers = [
            asyncio.create_task(self._read_events()),
            asyncio.create_task(self._collect()),
        ]
        self._killed = False
        self.stops: list[str] = []
        """Entries for an allow-list that it asked for after `GatewayOrder.ask_after` refusals."""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def complaints(self) -> str:
        return self._complaints.decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """End it as a crash would, to test what happens then."""
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def start(self, order: bytes) -> None:
        """Send it its order, and wait until it listens; raises InfraError."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % len(order) + order)
        waits = {
            asyncio.create_task(self._ready.wait()),
            asyncio.create_task(self._process.wait()),
        }
        try:
            await asyncio.wait(waits, timeout=READY_SEC, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not self._ready.is_set():
            died = self._process.returncode is not None
            raise await self._failed("did not start" if died else f"hangs ({READY_SEC:.0f} s)")

    async def finish(self) -> None:
        """Let it end; raises InfraError if it had ended before."""
        await self._close()
        if self._process.returncode != 0 and not self._killed:
            raise await self._failed("ended while it was needed")

    async def end(self) -> None:
        """Let it end, and stop reading its output."""
        try:
            await self._close()
        finally:
            for task in self._readers:
                task.cancel()
            await asyncio.gather(*self._readers, return_exceptions=True)

    async def _close(self) -> None:
        """Close its stdin, which ends it gracefully; kill it if it hangs."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SEC):
                await self._process.wait()
        except (TimeoutError, asyncio.CancelledError) as reason:
            self.kill()
            await self._process.wait()
            if not isinstance(reason, TimeoutError):
                raise

    async def _read_events(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            event = json.loads(line)
            if event["event"] == "ready":
                self._ready.set()
            elif event["event"] == "stop":
                self.stops.append(event["reason"])

    async def _collect(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(COMPLAINT_LIMIT):
            self._complaints += data
            del self._complaints[:-COMPLAINT_LIMIT]

    async def _failed(self, what: str) -> InfraError:
        await asyncio.wait(self._readers, timeout=LAST_WORDS_SEC)
        output = f": {self.complaints}" if self.complaints else ""
        return GatewayFailed(
            f"the process that lets a sandbox reach its hosts {what}{output}",
            remedy="agentrunner resume; agentrunner doctor tries it on this machine",
        )


@asynccontextmanager
async def running(order: GatewayOrder, environ: Mapping[str, str]) -> AsyncIterator[GatewayProcess]:
    """Run the gateway process of an order for as long as the block lasts.

    Raises InfraError (`gateway`) if it does not listen within 15 s. The same at the end of a block
    without an error of its own if the process died meanwhile: what was run then proves nothing.
    """
    how = companion(order, environ)
    process = await asyncio.create_subprocess_exec(
        *how.argv,
        env=dict(how.env),
        cwd="/",
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        # Ctrl-C in a terminal is for us; we end this process ourselves.
        start_new_session=True,
    )
    gateway = GatewayProcess(process)
    try:
        await gateway.start(how.stdin)
        yield gateway
        await gateway.finish()
    finally:
        await gateway.end()


def proxy_starter(
    environ: Mapping[str, str],
) -> Callable[[Path, Path, tuple[str, ...]], AbstractAsyncContextManager[GatewayProcess]]:
    """Return `running` for a socket folder, a log and an allow-list: for the conformance suite."""

    def start(
        sockets: Path, log: Path, allow: tuple[str, ...]
    ) -> AbstractAsyncContextManager[GatewayProcess]:
        usage = log.with_name("usage.jsonl")
        return running(GatewayOrder(sockets, log, usage, label="check", allow=allow), environ)

    return start
