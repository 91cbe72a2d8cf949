"""The provider itself: one host, with the real key, no redirects, and time limits."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from agentrunner.gateway.exchange import Incoming, Outgoing, UpstreamUnreachable
from agentrunner.gateway.order import Upstream
from agentrunner.gateway.wires import CREDENTIAL_HEADERS, WIRES, credential_headers

CONNECT_SEC = 30.0
SILENCE_SEC = 600.0
"""Longest wait for the next byte; a model that thinks is silent for minutes."""
_HEADER_BYTES = 65_536

SessionFactory = Callable[[], aiohttp.ClientSession]

HOP_BY_HOP = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    "transfer-encoding upgrade".split()
)
"""Headers that are about one connection, not about the message."""
_OURS = frozenset({"host", "content-length", "accept-encoding", "expect"})


class LiveProvider:
    """Sends requests to `upstream.base_url` and nowhere else."""

    def __init__(self, upstream: Upstream, session: aiohttp.ClientSession) -> None:
        self._base = upstream.base_url.rstrip("/")
        self._session = session
        self._proxy = proxy_for(URL(self._base))
        bearer = upstream.scheme == "bearer"
        self._key = credential_headers(WIRES[upstream.wire], upstream.credential, bearer=bearer)

    @asynccontextmanager
    async def ask(self, request: Outgoing) -> AsyncIterator[Incoming]:
        """Send the request with the real key; raises UpstreamUnreachable."""
        query = f"?{request.query}" if request.query else ""
        try:
            reply = await self._session.request(
                request.method,
                URL(f"{self._base}{request.path}{query}", encoded=True),
                headers=self._headers(request.headers),
                data=request.body or None,
                allow_redirects=False,
                proxy=self._proxy,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UpstreamUnreachable(self._why(error)) from None
        async with reply:
            yield Incoming(
                reply.status,
                [(name, value) for name, value in reply.headers.items()],
                self._chunks(reply),
            )

    async def _chunks(self, reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in reply.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UpstreamUnreachable(self._why(error)) from None

    def _headers(self, given: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
        headers = CIMultiDict(
            (name, value) for name, value in end_to_end(given) if name.lower() not in _OURS
        )
        for name in CREDENTIAL_HEADERS:
            headers.popall(name, None)
        headers.update(self._key)
        # Uncompressed replies can be metered without decompressing them.
        headers["Accept-Encoding"] = "identity"
        return headers

    def _why(self, error: Exception) -> str:
        url, reason = URL(self._base), ""
        host = f"{url.host}:{url.explicit_port}" if url.explicit_port else url.host
        if isinstance(error, aiohttp.SocketTimeoutError | TimeoutError):
            connecting = isinstance(error, aiohttp.ConnectionTimeoutError)
            limit = f"{CONNECT_SEC:g} s to connect" if connecting else f"{SILENCE_SEC:g} s"
            return f"The model provider at {host} gave no answer within {limit}."
        if isinstance(error, aiohttp.ClientHttpProxyError):
            # Its own message contains the proxy's address, and with it the password.
            return f"The proxy of this machine's network refuses {host}: {error.status}"
        if isinstance(error, aiohttp.ClientConnectorError):
            # Its own message has words about TLS for any address, and the same reason twice.
            error = error.os_error
            if isinstance(error, ssl.SSLError | socket.gaierror):  # whose numbers are their own
                reason = error.strerror or ""
            elif error.errno:
                reason = os.strerror(error.errno)
        reason = reason or " ".join(str(error).split()) or type(error).__name__
        return f"The model provider at {host} cannot be reached: {reason}"


def new_session() -> aiohttp.ClientSession:
    """Return a session without side effects: no cookies, no netrc, nothing decompressed."""
    return aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SEC, sock_read=SILENCE_SEC),
        skip_auto_headers=("User-Agent", "Content-Type", "Accept"),
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
    )


def end_to_end(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the headers without those about the connection."""
    given = list(headers)
    named = {
        word.strip().lower()
        for name, value in given
        if name.lower() == "connection"
        for word in value.split(",")
    }
    return [
        (name, value) for name, value in given if name.lower() not in HOP_BY_HOP | named
    ]  # fmt: skip


def proxy_for(url: URL) -> str | None:
    """Return the proxy from this machine's environment; None for the machine's own addresses.

    Also None for plain http to the network that this machine is in: a proxy for the outside world
    must not see it.
    """
    host = url.host or ""
    try:
        address = ipaddress.ip_address(host)
        local = address.is_loopback or (url.scheme == "http" and address.is_private)
    except ValueError:
        local = host == "localhost"
    if local or proxy_bypass(host):
        return None
    return getproxies().get(url.scheme)
