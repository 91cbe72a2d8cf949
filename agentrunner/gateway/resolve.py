"""From a name to addresses that may be dialled."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

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
