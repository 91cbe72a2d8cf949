"""The way from the proxy to a host: at a checked address, or through a company's proxy.

A name is looked up once, and only those of its addresses that were checked are dialled.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Protocol
from urllib.parse import unquote, urlsplit

import aiohappyeyeballs
import h11
from msgspec import Struct

from agentrunner.gateway.head import HEAD_LIMIT, HostAndPort

CHUNK = 256 << 10
BUFFER = 64 << 10
"""Of a stream's reader; it accepts twice as much before it makes the sender wait."""
FLUSH_SEC = 10.0
"""How long a slow client may take to receive the remaining bytes at the end."""


class TunnelSide(Struct, frozen=True):
    """One side of a tunnel."""

    reader: StreamReader
    writer: StreamWriter

    async def close(self) -> None:
        """Let written bytes go out, for a while; then cut the connection."""
        self.writer.close()
        try:
            async with asyncio.timeout(FLUSH_SEC):
                await self.writer.wait_closed()
        except OSError:  # TimeoutError is one
            pass
        finally:
            self.writer.transport.abort()


class Tunnel:
    """Counts what went through, `up` from the client to the host."""

    def __init__(self, client: TunnelSide, host: TunnelSide, idle_sec: float) -> None:
        self._client = client
        self._host = host
        self._idle_sec = idle_sec
        self.up = 0
        self.down = 0

    async def run(self) -> None:
        """Run until both sides have ended, one breaks, or nothing moves for `idle_sec`.

        The end of one side is passed on, and the other may continue. At most one buffer per
        direction is in memory: a slow reader slows down the writer.
        """
        with suppress(OSError):  # TimeoutError is one
            async with asyncio.timeout(self._idle_sec) as idle:
                await self._both(idle)

    async def _both(self, idle: asyncio.Timeout) -> None:
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._up(idle))
                both.create_task(self._down(idle))
        except* OSError as broken:
            raise broken.exceptions[0] from None
        await asyncio.gather(self._client.close(), self._host.close())

    async def _up(self, idle: asyncio.Timeout) -> None:
        while data := await self._client.reader.read(CHUNK):
            self.up += len(data)
            await self._forward(data, self._host.writer, idle)
        self._host.writer.write_eof()

    async def _down(self, idle: asyncio.Timeout) -> None:
        while data := await self._host.reader.read(CHUNK):
            self.down += len(data)
            await self._forward(data, self._client.writer, idle)
        self._client.writer.write_eof()

    async def _forward(self, data: bytes, writer: StreamWriter, idle: asyncio.Timeout) -> None:
        idle.reschedule(asyncio.get_running_loop().time() + self._idle_sec)
        writer.write(data)
        await writer.drain()


Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[Address]]]
"""Looks up the addresses of a name, once; raises OSError. The port is for the look-up only."""

PUBLIC_IN_NAME_ONLY = tuple(
    ip_network(text)
    for text in (
        "168.63.129.16/32",  # where Azure tells its machines their secrets
        "192.0.0.0/24",  # Oracle's metadata are in it; not all of it is private to ipaddress
        "192.88.99.0/24",  # relays of 6to4
        "2001:db8::/32",
        "3fff::/20",  # documentation, newer than our ipaddress
    )
)
GLOBAL_UNICAST = IPv6Network("2000::/3")
SIX_TO_FOUR = IPv6Network("2002::/16")
TEREDO = IPv6Network("2001::/32")
NAT64 = IPv6Network("64:ff9b::/96")


async def look_up(name: str, port: int) -> list[Address]:
    """Return the system's answer for a name; raises OSError (socket.gaierror) if there is none."""
    found = await asyncio.get_running_loop().getaddrinfo(
        name, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return list(dict.fromkeys(ip_address(each[4][0]) for each in found))


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet and not to a private network.

    False for loopback, private, link-local, shared (CGNAT), documentation, multicast, reserved and
    metadata addresses, and for IPv6 addresses that stand for an IPv4 one. The exception is NAT64
    (64:ff9b::/96, all that a network without IPv4 has), where the IPv4 address decides.
    """
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address in NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in GLOBAL_UNICAST or address in SIX_TO_FOUR or address in TEREDO:
            return False
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in PUBLIC_IN_NAME_ONLY)
    )


def is_ours(address: Address) -> bool:
    """Whether it is an address of this machine; sends nothing.

    Otherwise a service that listens on all interfaces could be reached through a public address,
    past a firewall.
    """
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return bool(ip_address(probe.getsockname()[0]) == address)
    except OSError:
        return False  # no route there at all


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
