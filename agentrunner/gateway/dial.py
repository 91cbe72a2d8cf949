"""The way from the proxy to a host: at a checked address, or through a company's proxy."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import unquote, urlsplit

import aiohappyeyeballs
import h11

from agentrunner.gateway.head import HEAD_LIMIT, HostAndPort
from agentrunner.gateway.resolve import Address, Resolver, is_ours, is_public, look_up
from agentrunner.gateway.tunnel import BUFFER, TunnelSide

HAPPY_EYEBALLS_SEC = 0.25
KEEPALIVE_SEC = 60
PROXY_VARIABLES = ("https_proxy", "HTTPS_PROXY")


class NotPublic(Exception):
    """A name leads to no public address."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


class Dialer(Protocol):
    """How connections to hosts are made."""

    async def open(self, target: HostAndPort, pin: str | None) -> tuple[TunnelSide, str]:
        """Return a connection, and where it leads, for the log.

        `pin` is an address that is dialled whatever DNS says. Raises NotPublic, socket.gaierror for
        an unknown name, another OSError if nobody answers.
        """


Connect = Callable[[Sequence[Address], int], Awaitable[TunnelSide]]


async def connect(addresses: Sequence[Address], port: int) -> TunnelSide:
    """Return a connection to the first address that answers; raises OSError."""
    ways = [
        (
            socket.AF_INET if address.version == 4 else socket.AF_INET6,
            socket.SOCK_STREAM,
            socket.IPPROTO_TCP,
            "",
            (str(address), port),
        )
        for address in addresses
    ]
    dialled = await aiohappyeyeballs.start_connection(ways, happy_eyeballs_delay=HAPPY_EYEBALLS_SEC)
    # A host that vanished silently is noticed, however long the tunnel may be idle.
    dialled.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_SEC)
    return TunnelSide(*await asyncio.open_connection(sock=dialled, limit=BUFFER))


class Direct:
    """Looks a name up once, and dials what it has checked."""

    def __init__(self, resolve: Resolver = look_up, connect: Connect = connect) -> None:
        self._resolve = resolve
        self._connect = connect

    async def open(self, target: HostAndPort, pin: str | None) -> tuple[TunnelSide, str]:
        addresses = [ip_address(pin)] if pin else await self.public(target)
        host = await self._connect(addresses, target.port)
        return host, str(host.writer.get_extra_info("peername")[0])

    async def public(self, target: HostAndPort) -> list[Address]:
        """Return a name's addresses that may be dialled; raises NotPublic and socket.gaierror."""
        found = await self._resolve(target.host, target.port)
        public = [address for address in found if is_public(address) and not is_ours(address)]
        if not public:
            raise NotPublic(str(found[0]) if found else "")
        return public


class ThroughProxy:
    """Uses CONNECT through another proxy, which then resolves names better than we can.

    Pinned names and those in NO_PROXY are dialled directly. A name that we resolve ourselves, to no
    public address, stays refused.
    """

    def __init__(self, url: str, bypass: Callable[[str], bool], direct: Direct) -> None:
        """Raises ValueError for a proxy that does not use plain http."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("only a proxy at http://… can be gone through")
        self._host, self._port = parts.hostname, parts.port or 80
        self._bypass = bypass
        self._direct = direct
        self._headers = []
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            word = base64.b64encode(login.encode()).decode()
            self._headers.append(("Proxy-Authorization", f"Basic {word}"))

    async def open(self, target: HostAndPort, pin: str | None) -> tuple[TunnelSide, str]:
        if pin or self._bypass(target.host):
            return await self._direct.open(target, pin)
        with contextlib.suppress(socket.gaierror):  # then only the proxy knows it
            await self._direct.public(target)
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=BUFFER)
        try:
            await self._ask(reader, writer, target)
        except BaseException:
            writer.transport.abort()
            raise
        return TunnelSide(reader, writer), f"by {self._host}:{self._port}"

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: HostAndPort
    ) -> None:
        """Send the CONNECT; raises OSError also if the proxy refuses."""
        talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        headers = [("Host", str(target)), *self._headers]
        request = h11.Request(method="CONNECT", target=str(target), headers=headers)
        writer.write(talk.send(request) or b"")
        try:
            talk.receive_data(await reader.readuntil(b"\r\n\r\n"))
            answer = talk.next_event()
        except (h11.RemoteProtocolError, EOFError, asyncio.LimitOverrunError):
            answer = None
        if not isinstance(answer, h11.Response):
            raise ConnectionError("the proxy of this machine's network is none")
        if answer.status_code // 100 != 2:
            reason = answer.reason.decode("ascii", "replace")
            raise ConnectionError(
                f"the proxy of this machine's network refused it: {answer.status_code} {reason}"
            )


def way_out(environ: Mapping[str, str]) -> Dialer:
    """Return the dialer for our own environment; raises ValueError for an unusable proxy."""
    url = next((environ[name] for name in PROXY_VARIABLES if environ.get(name)), "")
    if not url:
        return Direct()
    from urllib.request import proxy_bypass

    return ThroughProxy(url, lambda name: bool(proxy_bypass(name)), Direct())
