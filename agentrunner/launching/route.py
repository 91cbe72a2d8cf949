"""The way out of a sandbox: which gateway serves it, and how programs reach that gateway."""

from __future__ import annotations

import socket
from pathlib import Path

from msgspec import Struct

from agentrunner.gateway.order import (
    GATEWAY_PORT,
    GATEWAY_SOCKET,
    PROXY_PORT,
    PROXY_SOCKET,
    GatewayOrder,
)
from agentrunner.sandboxes.base import Door
from agentrunner.sandboxes.requests import proxy_environment

EGRESS_LOG = "egress.jsonl"
"""In a run's folder."""


class Cassette(Struct, frozen=True):
    """The file that records, or replays, every exchange with a model."""

    record: Path | None = None
    replay: Path | None = None
    channel: str = ""
    """The part of it that is a planner's, unless that is the first one."""

    @property
    def used(self) -> bool:
        """Whether anything is recorded or replayed."""
        return bool(self.record or self.replay)


NO_CASSETTE = Cassette()


class EgressRoute(Struct, frozen=True):
    """The way out of one process: the gateway, the door to it, and the model's address."""

    order: GatewayOrder | None = None
    door: Door | None = None
    base_url: str | None = None
    """Where a CLI finds its model; None if it uses its own address."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead programs to the proxy."""
        if self.door is None or PROXY_SOCKET not in self.door.ports.values():
            return {}
        return proxy_environment(PROXY_PORT)


def route_of(order: GatewayOrder, *, own_loopback: bool = True) -> EgressRoute:
    """Return the way out that a gateway's order describes; an empty one if it serves nothing.

    `own_loopback` is False in a sandbox that shares the host's network: other programs listen there
    too, so a free port is used.
    """
    ports: dict[int, str] = {}
    base_url = None
    if order.allow is not None:
        ports[PROXY_PORT] = PROXY_SOCKET
    if order.upstream is not None:
        port = GATEWAY_PORT if own_loopback else _free_port()
        ports[port] = GATEWAY_SOCKET
        base_url = f"http://127.0.0.1:{port}"
    if not ports:
        return EgressRoute()
    return EgressRoute(order, Door(order.sockets, ports), base_url)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
