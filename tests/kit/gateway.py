"""A gateway on loopback, and a provider behind it that does what a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import SSLContext
from typing import Any

from aiohttp import web

from agentrunner.gateway.gateway import make_app
from agentrunner.gateway.order import GatewayOrder, Upstream, Wire

REAL_KEY = "sk-real-" + "7c1e" * 12
PLACEHOLDER = "sk-agentrunner-placeholder-" + "3f" * 32
BEARER = {"Authorization": f"Bearer {PLACEHOLDER}"}
LABEL = "1-001"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def order_for(place: Path, base_url: str, wire: Wire = "openai", **more: Any) -> GatewayOrder:
    """An order whose files are in `place`."""
    upstream = Upstream(wire, base_url, REAL_KEY, PLACEHOLDER, more.pop("scheme", "key"))
    fields = {
        "sockets": place / "sock",
        "egress_log": place / "egress.jsonl",
        "usage_log": place / "usage.jsonl",
        "label": LABEL,
        "upstream": upstream,
    }
    return GatewayOrder(**{**fields, **more})


@asynccontextmanager
async def gateway(order: GatewayOrder, **options: Any) -> AsyncIterator[str]:
    """A gateway; gives the base URL that a CLI is told."""
    async with _served(make_app(order, **options)) as address:
        yield address


@asynccontextmanager
async def provider(handler: Handler, tls: SSLContext | None = None) -> AsyncIterator[str]:
    """A provider that answers every request with `handler`; gives its base URL."""
    app = web.Application(
        client_max_size=1 << 30,
        handler_args={"access_log": None, "auto_decompress": False, "handler_cancellation": True},
    )
    app.router.add_route("*", "/{path:.*}", handler)
    async with _served(app, tls) as address:
        yield address


@asynccontextmanager
async def _served(app: web.Application, tls: SSLContext | None = None) -> AsyncIterator[str]:
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
