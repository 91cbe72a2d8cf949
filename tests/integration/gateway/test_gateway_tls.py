"""The gateway's own process, on its Unix socket, with a provider behind TLS."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from agentrunner.gateway.gateway_process import running
from agentrunner.gateway.order import GATEWAY_SOCKET
from agentrunner.money.counters import read_usage
from tests.kit.gateway import PLACEHOLDER, REAL_KEY, order_for, provider

CERTIFICATE = Path(__file__).parents[2] / "data" / "tls" / "localhost.pem"
"""Of 127.0.0.1, signed by itself; its key is worth nothing."""


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_provider_is_who_its_certificate_says(tmp_path: Path, trusted: bool) -> None:
    keys = []

    async def answer(request: web.Request) -> web.Response:
        keys.append(request.headers["Authorization"])
        return web.json_response({"usage": {"input_tokens": 3, "output_tokens": 4}})

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(CERTIFICATE)
    environ = {**os.environ, "SSL_CERT_FILE": str(CERTIFICATE) if trusted else os.devnull}
    async with provider(answer, tls) as base:
        order = order_for(tmp_path, f"{base}/v1")
        async with (
            running(order, environ),
            aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(str(order.sockets / GATEWAY_SOCKET))
            ) as client,
            client.post(
                "http://127.0.0.1:8787/responses",
                json={"model": "gpt-5.5"},
                headers={"Authorization": f"Bearer {PLACEHOLDER}"},
            ) as reply,
        ):
            said = await reply.json()
    usage = read_usage(order.usage_log)
    if trusted:
        assert (reply.status, keys) == (200, [f"Bearer {REAL_KEY}"]), said
        assert (usage.total.calls, usage.total.input_tokens) == (1, 3)
    else:
        assert (reply.status, keys) == (502, [])
        assert "CERTIFICATE_VERIFY_FAILED" in said["error"]["message"]
        assert usage.last_error is not None and usage.last_error.error == "network"
