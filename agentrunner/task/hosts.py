"""Names of hosts that a box may reach, as people write them."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


@dataclass(frozen=True)
class AllowedHost:
    """One entry of an allow-list."""

    name: str
    """Lower case, without a trailing dot; of a wildcard, what follows `*.`."""
    port: int
    wildcard: bool = False
    """Any name below `name`, and not `name` itself."""
    address: str | None = None
    """The one address it is dialled at, whatever DNS says; may be private."""

    def covers(self, name: str, port: int) -> bool:
        """Whether `name` (lower case, without a trailing dot) at `port` is meant."""
        if port != self.port:
            return False
        return name.endswith("." + self.name) if self.wildcard else name == self.name


def parse_host(text: str) -> AllowedHost:
    """ "host:port", "*.domain:port" or "host:port@address"; raises ValueError with the reason."""
    left, at, address = text.strip().partition("@")
    host, colon, digits = left.rpartition(":")
    if not colon or not digits.isascii() or not digits.isdigit() or not 0 < int(digits) < 65536:
        raise ValueError(f'"{text}" names no port: write host:port, as in example.org:443')
    wildcard = host.startswith("*.")
    name = host.removeprefix("*.").lower().rstrip(".")
    if len(name) > 253 or not _NAME.fullmatch(name) or name.rpartition(".")[2].isdigit():
        raise ValueError(
            f'"{text}" names no host: write its name, as in example.org:443; an address goes '
            "behind it, as in db.local:5432@10.0.0.5"
        )
    if wildcard and ("." not in name or at):
        raise ValueError(f'"{text}" is too wide: a wildcard needs a domain of two parts, unpinned')
    if at:
        try:
            address = str(ipaddress.ip_address(address))
        except ValueError:
            raise ValueError(f'"{text}": what follows @ is no IP address') from None
    return AllowedHost(name, int(digits), wildcard, address or None)


def checked_host(text: str) -> str:
    """`text` if it can be read; raises ValueError as `parse_host` does."""
    parse_host(text)
    return text.strip()
