"""Parses what a client of the proxy asks for, and formats its refusal. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

import h11
from msgspec import Struct

from agentrunner.config.hosts import canonical_name, port_number

HEAD_LIMIT = 16 << 10
SHOWN = 200
"""Characters of an invalid target in texts and logs."""

Reason = Literal[
    "not_listed", "not_public", "address", "not_a_name", "plain_http", "malformed", "too_large",
    "too_slow", "too_many", "unresolved", "unreachable", "no_log",
]  # fmt: skip


class HostAndPort(Struct, frozen=True):
    """A requested host, its name written as in an allow-list."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


NOWHERE = HostAndPort("", 0)
"""The target of a request that names none."""


class RequestRefused(Exception):
    """A request that leads to no connection; its text is one sentence for the client."""

    def __init__(
        self,
        status: int,
        reason: Reason,
        text: str,
        target: HostAndPort = NOWHERE,
        *,
        entry: str = "",
        address: str = "",
    ) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.text = text
        self.host, self.port = target.host, target.port
        self.entry = entry
        """The allow-list entry that would permit it; "" if none would."""
        self.address = address

    def response(self) -> bytes:
        """Return the refusal as HTTP; the connection ends with it.

        Most programs show the status line and not the body, so the sentence is in both.
        """
        message = f"AgentRunner: {self.text}".encode("ascii", "backslashreplace")
        message = bytes(byte if 32 <= byte < 127 else ord("?") for byte in message)
        allow = "Allow: CONNECT\r\n" if self.status == 405 else ""
        fields = (
            f"Content-Type: text/plain; charset=utf-8\r\nContent-Length: {len(message) + 1}\r\n"
            f"{allow}x-agentrunner-error: {self.reason}\r\nConnection: close\r\n\r\n"
        )
        return b"HTTP/1.1 %d %s\r\n%s%s\n" % (self.status, message, fields.encode(), message)


def read_head(head: bytes) -> HostAndPort:
    """Return the target of a CONNECT request, from its first byte to its empty line.

    Raises RequestRefused for anything that two readers might interpret differently.
    """
    request = _parse(head)
    target = request.target.decode("ascii", "backslashreplace")
    if request.method != b"CONNECT":
        raise _not_connect(target)
    wanted = read_target(target)
    for name, value in request.headers:
        if name == b"host" and not _same_host(value.decode("ascii", "replace"), wanted):
            raise malformed("the header Host names another host", wanted)
        if name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            raise malformed("it has a body", wanted)
    return wanted


def _parse(head: bytes) -> h11.Request:
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if any(b"\r" in line or b"\n" in line or b"\0" in line for line in lines):
        raise malformed("it has a stray line end")
    if any(line[:1] in (b" ", b"\t") for line in lines):
        raise malformed("a header goes over two lines")
    reader = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
    try:
        reader.receive_data(head)
        event = reader.next_event()
    except h11.RemoteProtocolError as error:
        raise malformed(f"{error}"[:SHOWN]) from None
    if not isinstance(event, h11.Request) or event.http_version not in (b"1.0", b"1.1"):
        raise malformed("it is no HTTP/1.1")
    return event


def read_target(text: str) -> HostAndPort:
    """Parse `host:port` of a CONNECT; raises RequestRefused unless it is a name and a port."""
    host, _, digits = text.rpartition(":")
    port = port_number(digits)
    if not host or port is None:
        raise RequestRefused(
            403,
            "not_a_name",
            f'"{text[:SHOWN]}" is not host:port, and only that can be allowed',
            HostAndPort(text[:SHOWN], 0),
        )
    name = canonical_name(host)
    if name is not None:
        return HostAndPort(name, port)
    raise _address(host, port) or RequestRefused(
        403,
        "not_a_name",
        f'"{host[:SHOWN]}" at port {port} is not the name of a host, and only names can be allowed',
        HostAndPort(host[:SHOWN], port),
    )


def _address(host: str, port: int) -> RequestRefused | None:
    """Return the refusal of an address in place of a name; None if it is not an address."""
    last = host.rstrip(".").rpartition(".")[2].lower()
    try:
        address = str(ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        if not (last.isdigit() or last.startswith("0x")):
            return None
        address = host[:SHOWN]
    target = HostAndPort(host[:SHOWN], port)
    return RequestRefused(
        403,
        "address",
        f"{target} is an address, and only names can be allowed; one can be pinned "
        f'to it by an entry like "some.name:{port}@{address}"',
        target,
    )


def _same_host(value: str, wanted: HostAndPort) -> bool:
    value = value.strip()
    if not value:
        return True
    host, colon, digits = value.rpartition(":")
    if not colon:
        return canonical_name(value) == wanted.host
    return canonical_name(host) == wanted.host and port_number(digits) == wanted.port


def _not_connect(target: str) -> RequestRefused:
    try:
        url = urlsplit(target)
        host = canonical_name(url.hostname or "")
        wanted = HostAndPort(host, url.port or 80) if host else NOWHERE
    except ValueError:
        wanted = NOWHERE
    what = "this" if wanted == NOWHERE else str(wanted)
    text = f"{what} was asked for in plain http, and only https (by CONNECT) is let through"
    return RequestRefused(405, "plain_http", text, wanted)


def malformed(why: str, target: HostAndPort = NOWHERE) -> RequestRefused:
    """Return the refusal of an invalid CONNECT request."""
    text = f"this is not a well-formed request CONNECT host:port: {why}"
    return RequestRefused(400, "malformed", text, target)
