"""Promises about the one way out: what an allow-list lets through, and that nothing else does.

They need somebody who serves the door, which is not a sandbox's business: whoever runs the checks
brings a way to start it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import shutil
import ssl
import subprocess
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from agentrunner.sandboxes.base import CommandResult, Door, Request, Sandbox, SandboxOrder
from agentrunner.sandboxes.requests import proxy_environment
from agentrunner.testing.sandboxes.workbench import (
    Broken,
    ConformanceCheck,
    NotApplicable,
    Workbench,
    expect,
    wait_for,
)

PORT = 3128
SOCKET = "proxy.sock"
HOST = "model.test"
"""Resolved by nobody: the proxy has its address, a loopback one of this machine."""
METADATA = "169.254.169.254"
GREETING = b"hello from outside"

GET_BY_CURL = 'curl -sS -m "${WAIT:-5}" --cacert "$CA" "$1"'
GET_BY_PYTHON = """python3 -c '
import os, ssl, sys, urllib.request
context = ssl.create_default_context(cafile=os.environ["CA"])
answer = urllib.request.urlopen(sys.argv[1], context=context, timeout=int(sys.argv[2]))
print(answer.read().decode())
' "$1" "${WAIT:-5}" """
FUNCTIONS = f"""
get() {{ if command -v curl >/dev/null; then {GET_BY_CURL}; else {GET_BY_PYTHON}; fi; }}
try() {{ if command -v "$1" >/dev/null; then "$@" >/dev/null 2>&1; echo "$? $*"; fi; }}
"""
"""`get URL` as a program of the sandbox would; `try WORD…` tells the exit code of what is there."""

AROUND = """
unset HTTPS_PROXY HTTP_PROXY ALL_PROXY https_proxy http_proxy all_proxy NODE_USE_ENV_PROXY
try curl -k -m 3 https://127.0.0.1:$SERVER/
try curl -k -m 3 https://model.test:$SERVER/
try curl -m 3 http://192.0.2.1/
try curl -m 3 http://$METADATA/latest/meta-data/
try curl -m 3 --unix-socket /var/run/docker.sock http://localhost/version
try wget -T 3 -t 1 -O - http://$METADATA/
try bash -c "exec 3<>/dev/tcp/127.0.0.1/$SERVER"
try bash -c "exec 3<>/dev/tcp/192.0.2.1/53"
try bash -c "exec 3<>/dev/udp/192.0.2.1/53 && echo x >&3"
try getent hosts model.test
try getent ahosts example.org
try nc -z -w 3 127.0.0.1 $SERVER
try nc -z -w 3 192.0.2.1 443
try ping -c 1 -W 2 192.0.2.1
try ssh -o BatchMode=yes -o ConnectTimeout=3 -p $SERVER 127.0.0.1
try python3 -c "import socket; socket.create_connection(('127.0.0.1', $SERVER), 3)"
try python3 -c "import socket; socket.create_connection(('$METADATA', 80), 3)"
try python3 -c "import socket; socket.getaddrinfo('example.org', 443)"
"""
CONTROL = """
for socket in $(find / -xdev -name control.sock -type s 2>/dev/null; ls /run/*/control.sock); do
    python3 -c '
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.settimeout(5)
client.connect(sys.argv[1])
client.sendall(b"{}\\n")
if client.recv(1):
    print("heard by", sys.argv[1])
' "$socket" 2>/dev/null
done; true
"""


class DoorServer(Protocol):
    """Somebody who serves a door."""

    def kill(self) -> None:
        """End it as a crash would."""


StartProxy = Callable[[Path, Path, tuple[str, ...]], AbstractAsyncContextManager[DoorServer]]
"""Serves a folder of sockets; logs to a file of JSON lines; allows hosts as people write them."""


class TlsServer(Struct):
    """A TLS server on this machine's loopback."""

    port: int
    certificate: Path
    connections: int = 0

    async def greet(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer any request."""
        self.connections += 1
        with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError):
            await reader.readuntil(b"\r\n\r\n")
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Length: {len(GREETING)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + GREETING)
            await writer.drain()
        writer.close()


class Outside(Struct):
    """A sandbox with a door, who serves it, and a server to reach."""

    workbench: Workbench
    sandbox: Sandbox
    server: TlsServer
    log: Path
    start: Callable[[], AbstractAsyncContextManager[DoorServer]]
    seen: int = field(default=0)
    """Lines of the log that were looked at."""

    @property
    def url(self) -> str:
        """Of what may be reached."""
        return f"https://{HOST}:{self.server.port}/"

    def request(self, script: str) -> Request:
        """A script in the sandbox, with its door and the variables that lead there."""
        env = {
            **proxy_environment(PORT),
            "CA": str(self.server.certificate),
            "SERVER": str(self.server.port),
            "METADATA": METADATA,
        }
        door = Door(self.log.parent / "sock", {PORT: SOCKET})
        return replace(self.workbench.request(FUNCTIONS + script, env=env), door=door)

    async def sh(self, script: str) -> CommandResult:
        """Run a script in the sandbox."""
        return await self.sandbox.run(self.request(script))

    def lines(self) -> list[dict[str, object]]:
        """What was decided since the last time."""
        found = [json.loads(line) for line in self.log.read_text().splitlines()]
        new, self.seen = found[self.seen :], len(found)
        return new


class Egress:
    """The checks; each takes a bench."""

    def __init__(self, start_proxy: StartProxy) -> None:
        self._start_proxy = start_proxy

    async def allowed_host_is_reached(self, workbench: Workbench) -> None:
        """A listed host is reached with TLS from end to end, and the decision is a line."""
        async with self._outside(workbench) as outside, outside.start():
            result = await outside.sh(f"get {outside.url}")
            expect(result.stdout.strip() == GREETING, f"{result.stdout!r} {result.stderr!r}")
            line = outside.lines()[0]
            expect(
                (line["decision"], line["host"], line["port"])
                == ("allowed", HOST, outside.server.port),
                f"the line is {line}",
            )

    async def other_hosts_are_refused(self, workbench: Workbench) -> None:
        """Another host, another port, an address, the metadata: refused by name, each a line."""
        async with self._outside(workbench) as outside, outside.start():
            port = outside.server.port
            targets = (
                (f"evil.test:{port}", "evil.test"),
                (f"{HOST}:{port % 65535 + 1}", HOST),
                (f"{HOST}.evil.test:{port}", f"{HOST}.evil.test"),
                (f"{METADATA}:443", METADATA),
                ("192.0.2.1:443", "192.0.2.1"),
            )
            for target, name in targets:
                result = await outside.sh(f"get https://{target}/")
                expect(result.exit_code != 0, f"{target} was reached")
                expect(b"403" in result.stderr, f"{target}: {result.stderr!r} tells nothing")
                lines = [(line["decision"], line["host"]) for line in outside.lines()]
                expect(lines == [("refused", name)], f"{target}: the lines are {lines}")
            expect(outside.server.connections == 0, "the server was reached")

    async def plain_http_is_refused(self, workbench: Workbench) -> None:
        """Without TLS not even a listed host is reached, and the program is told."""
        async with self._outside(workbench) as outside, outside.start():
            result = await outside.sh(f"get {outside.url.replace('https', 'http')}")
            output = result.stdout + result.stderr
            expect(b"https" in output or b"405" in output, f"it was told {output!r}")
            lines = [(line["decision"], line["host"]) for line in outside.lines()]
            expect(lines == [("refused", HOST)], f"the lines are {lines}")
            expect(outside.server.connections == 0, "the server was reached")

    async def nothing_goes_around_the_proxy(self, workbench: Workbench) -> None:
        """Without the proxy there is nothing: no host, no address, no name, no metadata."""
        async with self._outside(workbench) as outside, outside.start():
            result = await outside.sh(AROUND)
            tried = result.stdout.decode().splitlines()
            expect(tried, f"nothing could be tried: {result.stderr!r}")
            reached = [line for line in tried if line.startswith("0 ")]
            expect(not reached, f"reached: {reached}")
            expect(outside.server.connections == 0, "the server was reached")
            expect(outside.lines() == [], "the proxy was asked")

    async def proxy_may_crash_and_come_back(self, workbench: Workbench) -> None:
        """Without it a request fails and does not hang; its successor serves the same command."""
        async with self._outside(workbench) as outside:
            script = f"""
                get {outside.url} || exit 9
                touch one
                while [ ! -e killed ]; do sleep 0.02; done
                WAIT=1
                get {outside.url} || touch two
                WAIT=5
                while [ ! -e again ]; do sleep 0.02; done
                get {outside.url}"""
            running = asyncio.create_task(outside.sh(script))
            try:
                async with outside.start() as proxy:
                    await _until(workbench.repo / "one", running)
                    proxy.kill()
                (workbench.repo / "killed").touch()
                await _until(workbench.repo / "two", running)
                async with outside.start():
                    (workbench.repo / "again").touch()
                    result = await running
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            expect(result.exit_code == 0, f"it did not come back: {result.stderr!r}")
            expect(outside.server.connections == 2, f"{outside.server.connections} connections")

    async def sandbox_cannot_extend_its_door(self, workbench: Workbench) -> None:
        """The socket on which sandboxes hand over listeners hears nobody inside of a sandbox."""
        async with self._outside(workbench) as outside, outside.start():
            result = await outside.sh(CONTROL)
            expect(result.stdout == b"", result.stdout.decode())

    @asynccontextmanager
    async def _outside(self, workbench: Workbench) -> AsyncIterator[Outside]:
        if not workbench.sandbox.isolates:
            raise NotApplicable('"none" isolates nothing')
        run = workbench.home.parent
        (run / "sock").mkdir()
        key, certificate = _make_certificate(workbench)
        server = TlsServer(0, certificate)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        listening = await asyncio.start_server(server.greet, "127.0.0.1", 0, ssl=context)
        server.port = listening.sockets[0].getsockname()[1]
        spec = SandboxOrder(workbench.repo, workbench.home, programs=("sh",), sockets=run / "sock")
        sandbox = workbench.make(spec)
        allow = (f"{HOST}:{server.port}@127.0.0.1",)
        log = run / "egress.jsonl"
        async with listening:
            await sandbox.open()
            try:
                yield Outside(
                    workbench,
                    sandbox,
                    server,
                    log,
                    lambda: self._start_proxy(run / "sock", log, allow),
                )
            finally:
                await sandbox.close()


async def _until(file: Path, running: asyncio.Task[CommandResult]) -> None:
    """Wait for a file that the command makes, or for its end."""
    waiting = asyncio.create_task(wait_for(file))
    await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if running.done():
        result = running.result()
        raise Broken(f"it ended before: {result.stdout!r} {result.stderr!r}")


def _make_certificate(workbench: Workbench) -> tuple[Path, Path]:
    """A key, and a certificate in the repository, where the sandbox can read it."""
    if shutil.which("openssl") is None:
        raise NotApplicable("there is no openssl to make a certificate with")
    key, certificate = workbench.root / "key.pem", workbench.repo / "certificate.pem"
    words = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        f"-subj /CN={HOST} -addext subjectAltName=DNS:{HOST}"
    )
    command = [*shlex.split(words), "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate


def egress_checks(start_proxy: StartProxy) -> tuple[ConformanceCheck, ...]:
    """The checks, for `run_conformance`."""
    egress = Egress(start_proxy)
    return (
        egress.allowed_host_is_reached,
        egress.other_hosts_are_refused,
        egress.plain_http_is_refused,
        egress.nothing_goes_around_the_proxy,
        egress.proxy_may_crash_and_come_back,
        egress.sandbox_cannot_extend_its_door,
    )
