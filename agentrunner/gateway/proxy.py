"""The allow-listing proxy: CONNECT to hosts on a list, and to nothing else.

A name is checked against the list before its address is looked up; the addresses found are checked,
and only checked ones are dialled. TLS passes through unopened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from agentrunner.config.hosts import AllowedHost, find_host, parse_host
from agentrunner.gateway.dial import BUFFER, Dialer, Direct, NotPublic, Tunnel, TunnelSide, way_out
from agentrunner.gateway.egress_log import Decision, EgressLog, Entry
from agentrunner.gateway.head import HEAD_LIMIT, HostAndPort, Reason, RequestRefused, read_head
from agentrunner.gateway.listeners import Close
from agentrunner.gateway.order import GatewayOrder
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp_now

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
LINGER_SEC = 1.0
MOST_COUNTED = 256
"""Hosts whose refusals are counted. A worker may ask for any number, and each may become a
question, which stays in a pipe until it is read."""


class ProxyLimits(Struct, frozen=True):
    """How much a sandbox may demand of the proxy."""

    head_sec: float = 10
    dial_sec: float = 20
    """For look-up and connection together."""
    idle_sec: float = 3600
    """Without a byte either way; a model may think for long."""
    connections: int = 128


Ask = Callable[[str], None]
"""Called once per host that is requested again and again, with the entry that would allow it."""


class Proxy:
    """Serves the clients of one command."""

    def __init__(
        self,
        hosts: Sequence[AllowedHost],
        log: EgressLog,
        *,
        setting: str,
        ask_after: int = 0,
        ask: Ask = lambda entry: None,
        redact: Callable[[str], str] = lambda text: text,
        way_out: Dialer | None = None,
        limits: ProxyLimits | None = None,
    ) -> None:
        """`setting` names the setting with `hosts`; `redact` removes secrets from the log."""
        self._hosts = hosts
        self._log = log
        self._setting = setting
        self._ask_after = ask_after
        self._ask = ask
        self._redact = redact
        self._way_out = way_out or Direct()
        self._limits = limits or ProxyLimits()
        self._refusals: Counter[str] = Counter()
        self._complained = False
        self._clients: set[asyncio.Task[None]] = set()
        self._servers: set[asyncio.Server] = set()

    async def serve(self, listener: socket.socket) -> Close:
        """Accept clients on a listening socket, of any family."""
        server = await asyncio.start_server(self._accept, sock=listener, limit=BUFFER)
        self._servers.add(server)

        async def close() -> None:
            server.close()
            self._servers.discard(server)

        return close

    async def close(self) -> None:
        """Cut all connections, and log what went through them."""
        for server in self._servers:
            server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        self._log.close()

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        if len(self._clients) >= 2 * self._limits.connections:
            writer.transport.abort()  # even a refusal would cost too much
            return
        client = asyncio.create_task(self._serve_client(TunnelSide(reader, writer)))
        self._clients.add(client)
        client.add_done_callback(self._clients.discard)

    async def _serve_client(self, client: TunnelSide) -> None:
        try:
            await self._handle(client)
        except (OSError, asyncio.IncompleteReadError):
            pass  # it is gone
        finally:
            client.writer.transport.abort()

    async def _handle(self, client: TunnelSide) -> None:
        try:
            if len(self._clients) > self._limits.connections:
                raise RequestRefused(503, "too_many", "there are too many connections at a time")
            target = await self._read(client.reader)
            host, address = await self._connect(target)
        except RequestRefused as refused:
            self._note_refusal(refused)
            await _answer(client, refused)
            return
        await self._tunnel(client, host, Entry("closed", *self._redacted(target), address=address))

    async def _read(self, reader: StreamReader) -> HostAndPort:
        """Return a request's target; raises RequestRefused, or IncompleteReadError if cut off."""
        try:
            async with asyncio.timeout(self._limits.head_sec):
                head = await reader.readuntil(b"\r\n\r\n")
        except TimeoutError:
            raise RequestRefused(408, "too_slow", "the head of the request took too long") from None
        except asyncio.LimitOverrunError:
            head = b" " * BUFFER
        if len(head) > HEAD_LIMIT:
            raise RequestRefused(431, "too_large", "the head of the request is too large")
        return read_head(head)

    async def _connect(self, target: HostAndPort) -> tuple[TunnelSide, str]:
        """Check the target, log the decision, and open a connection; raises RequestRefused."""
        entry = find_host(self._hosts, target.host, target.port)
        if entry is None:
            raise self._refused(target, "is not on the list of hosts that may be reached")
        try:
            async with asyncio.timeout(self._limits.dial_sec):
                host, address = await self._way_out.open(target, entry.address)
        except NotPublic as error:
            why = f"leads to {error.address or 'no address'}, which is not public"
            raise self._refused(target, why, error.address) from None
        except (socket.gaierror, UnicodeError) as error:
            raise _failed("unresolved", target, f"its name is not known: {error}") from None
        except OSError as error:  # TimeoutError is one
            reason = str(error) or "it took too long"
            raise _failed("unreachable", target, f"did not answer: {reason}") from None
        try:
            self._log.add(Entry("allowed", *self._redacted(target), address=address))
        except OSError as error:
            host.writer.transport.abort()
            raise RequestRefused(
                503, "no_log", f"decisions cannot be written down: {error}"
            ) from None
        return host, address

    def _refused(self, target: HostAndPort, why: str, address: str = "") -> RequestRefused:
        entry = f"{target}@{address}" if address else str(target)
        return RequestRefused(
            403,
            "not_public" if address else "not_listed",
            f'{target} {why}; to allow it: {self._setting}: ["{entry}"]',
            target,
            entry=entry,
            address=address,
        )

    def _note_refusal(self, refused: RequestRefused) -> None:
        """Log a refusal, and ask for the host's entry when it reaches the limit."""
        decision: Decision = (
            "failed" if refused.reason in ("unresolved", "unreachable") else "refused"
        )
        shown = self._redact(refused.host), refused.port
        try:
            self._log.add(Entry(decision, *shown, refused.reason, refused.address))
        except OSError as error:
            if not self._complained:
                print(f"gateway: {error}", file=sys.stderr, flush=True)  # noqa: T201 - its log
            self._complained = True
        entry = self._redact(refused.entry)
        if entry and (entry in self._refusals or len(self._refusals) < MOST_COUNTED):
            self._refusals[entry] += 1
            if self._refusals[entry] == self._ask_after:
                self._ask(entry)

    async def _tunnel(self, client: TunnelSide, host: TunnelSide, closed: Entry) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        tunnel = Tunnel(client, host, self._limits.idle_sec)
        try:
            client.writer.write(ESTABLISHED)
            await tunnel.run()
        finally:
            host.writer.transport.abort()
            with contextlib.suppress(OSError):
                seconds = loop.time() - began
                self._log.add(closed, up=tunnel.up, down=tunnel.down, seconds=seconds)

    def _redacted(self, target: HostAndPort) -> tuple[str, int]:
        return self._redact(target.host), target.port


def _failed(reason: Reason, target: HostAndPort, why: str) -> RequestRefused:
    text = f"{target} may be reached, but {why}"
    return RequestRefused(502, reason, text, target)


async def _answer(client: TunnelSide, refused: RequestRefused) -> None:
    """Send the refusal, and read the rest: closing with unread data would destroy our answer."""
    client.writer.write(refused.response())
    client.writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SEC):
            while await client.reader.read(BUFFER):
                pass


def make_proxy(order: GatewayOrder, ask: Ask) -> Proxy:
    """Return the proxy of an order; raises ValueError for an invalid host, and OSError."""
    return Proxy(
        [parse_host(text) for text in order.allow or ()],
        EgressLog(order.egress_log, order.label, stamp_now),
        setting=order.setting,
        ask_after=order.ask_after,
        ask=ask,
        # The case of a host's name may have been lost.
        redact=Redactor(order.secrets, any_case=True).redact,
        way_out=way_out(os.environ),
    )
