"""What a worker, or a proxy on the way, may try with the gateway: real connections on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from agentrunner.gateway.usage import read_calls
from tests.kit.gateway import BEARER, gateway, order_for, provider

PASSWORD = "hunter2-of-the-proxy"


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


async def test_the_password_of_a_proxy_is_told_to_nobody(
    tmp_path: Path, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with await asyncio.start_server(_refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://me:{PASSWORD}@127.0.0.1:{port}")
        async with (
            gateway(order_for(tmp_path, "https://api.example.org/v1")) as box,
            client.post(f"{box}/responses", json={}, headers=BEARER) as reply,
        ):
            said = await reply.text()
    assert reply.status == 502
    assert "refuses api.example.org: 407" in said
    assert PASSWORD not in said
    assert PASSWORD not in (tmp_path / "usage.jsonl").read_text()


async def test_a_key_that_is_no_text_is_refused_like_any_other(tmp_path: Path) -> None:
    async with gateway(order_for(tmp_path, "http://127.0.0.1:1")) as box:
        url = URL(box)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"GET /models HTTP/1.1\r\nHost: box\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
        writer.close()
        await writer.wait_closed()


async def test_requests_that_are_held_have_a_limit_together(
    tmp_path: Path, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentrunner.gateway.gateway.MAX_HELD", 1000)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        begun.set()
        await go_on.wait()
        return web.json_response({})

    async with provider(answer) as base, gateway(order_for(tmp_path, base)) as box:

        async def send(size: int) -> int:
            async with client.post(f"{box}/responses", data=b"x" * size, headers=BEARER) as reply:
                await reply.read()
                return reply.status

        first = asyncio.create_task(send(600))
        await begun.wait()
        assert await send(600) == 503
        async with client.get(f"{box}/files", headers=BEARER) as reply:
            assert reply.status == 404  # what is small goes on
        go_on.set()
        assert await first == 200
        assert await send(600) == 200
    assert [call.status for call in read_calls(tmp_path / "usage.jsonl")] == [200, 200]
