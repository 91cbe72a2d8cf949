"""Names of hosts that a sandbox may reach, as people write them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex

_LABEL = r"(?!-)[a-z0-9_-]{1,63}(?<!-)"
_NAME = lazy_regex(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER = lazy_regex(r"[0-9]+|0x[0-9a-f]*")
_PORT = lazy_regex(r"[0-9]{1,5}")


class AllowedHost(Struct, frozen=True):
    """One entry of an allow-list. Its text is the entry as people write it."""

    name: str
    """Lower case, without a trailing dot; for a wildcard, what follows `*.`."""
    port: int
    wildcard: bool = False
    """Any name below `name`, but not `name` itself."""
    address: str | None = None
    """The one address to connect to, whatever DNS says; may be private."""

    def covers(self, name: str, port: int) -> bool:
        """Whether the entry matches `name` (lower case, without a trailing dot) at `port`."""
        if port != self.port:
            return False
        return name.endswith("." + self.name) if self.wildcard else name == self.name

    def __str__(self) -> str:
        pin = f"@{self.address}" if self.address else ""
        return f"{'*.' * self.wildcard}{self.name}:{self.port}{pin}"


def find_host(hosts: Iterable[AllowedHost], name: str, port: int) -> AllowedHost | None:
    """Return the entry that allows `name` at `port`: pinned entries first, wildcards last."""
    found = [host for host in hosts if host.covers(name, port)]
    return min(found, key=lambda host: (host.wildcard, host.address is None), default=None)


def canonical_name(text: str) -> str | None:
    """Return a host name in lower case without a trailing dot; None if it is not a name.

    An address is not a name in any spelling, including those of old C libraries ("127.1",
    "0x7f000001", "2130706433"): a name cannot end in a number. Neither is a name beyond ASCII: it
    must be written as it is looked up, "xn--bcher-kva.example".
    """
    if not text.isascii():
        return None
    name = text.lower().removesuffix(".")
    last = name.rpartition(".")[2]
    if len(name) > 253 or not _NAME.fullmatch(name) or _NUMBER.fullmatch(last):
        return None
    return name


def port_number(text: str) -> int | None:
    """Return a TCP port written in plain digits, or None."""
    port = int(text) if _PORT.fullmatch(text) else 0
    return port if 0 < port < 65536 else None


def parse_host(text: str) -> AllowedHost:
    """Parse "host:port", "*.domain:port" or "host:port@address"; raises ValueError."""
    host_and_port, at, pin = text.strip().partition("@")
    host, _, digits = host_and_port.rpartition(":")
    port = port_number(digits)
    if not host or port is None:
        raise ValueError(f'"{text}" names no port: write host:port, as in example.org:443')
    wildcard = host.startswith("*.")
    name = canonical_name(host.removeprefix("*."))
    if name is None:
        raise ValueError(_name_problem(text, host))
    if wildcard and ("." not in name or at):
        raise ValueError(f'"{text}" is too wide: a wildcard needs a domain of two parts, unpinned')
    return AllowedHost(name, port, wildcard, _pinned_address(text, pin) if at else None)


def _name_problem(text: str, host: str) -> str:
    if not host.isascii():
        return f'"{text}": write the name in ASCII, as DNS has it (xn--…)'
    return (
        f'"{text}" names no host: write its name, as in example.org:443; an address goes '
        "behind it, as in db.local:5432@10.0.0.5"
    )


def _pinned_address(text: str, pin: str) -> str:
    try:
        address = ipaddress.ip_address(pin)
    except ValueError:
        raise ValueError(f'"{text}": what follows @ is no IP address') from None
    if address.is_unspecified or address.is_multicast or pin == "255.255.255.255":
        raise ValueError(f'"{text}": {address} is no address of one host')
    return str(address)


def checked_host(text: str) -> str:
    """Return `text` if it can be parsed; raises ValueError as `parse_host` does."""
    parse_host(text)
    return text.strip()


def is_loopback(host: str) -> bool:
    """Whether a host of a URL is this very machine, so that nothing crosses a network."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
