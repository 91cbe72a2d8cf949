"""What passes through the gateway, and what does not: real connections on loopback."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from agentrunner.gateway.order import Wire
from agentrunner.gateway.usage import ModelCall, read_calls
from agentrunner.money.counters import read_usage
from tests.kit.gateway import BEARER, PLACEHOLDER, REAL_KEY, Handler, gateway, order_for, provider

WHOLE = {"id": "r", "usage": {"input_tokens": 12, "output_tokens": 3}}
CALLS: dict[Wire, tuple[str, str]] = {
    "openai": ("/responses", "Authorization"),
    "anthropic": ("/v1/messages", "X-Api-Key"),
    "gemini": ("/v1beta/models/gemini-2.5-pro:generateContent", "X-Goog-Api-Key"),
}

Reply = aiohttp.ClientResponse
Ask = Callable[..., AbstractAsyncContextManager[Reply]]


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


@pytest.fixture
def ask(tmp_path: Path, client: aiohttp.ClientSession) -> Ask:
    """Ask a provider through a gateway; what it answers is read until the context ends."""

    @asynccontextmanager
    async def asking(answer: Handler, wire: Wire = "openai") -> AsyncIterator[Reply]:
        async with (
            provider(answer) as base,
            gateway(order_for(tmp_path, base, wire)) as box,
            client.post(box + CALLS[wire][0], json={}, headers=BEARER) as reply,
        ):
            yield reply

    return asking


class Seen(list[web.Request]):
    """A provider that keeps what it is asked."""

    async def answer(self, request: web.Request) -> web.Response:
        self.append(request)
        return web.json_response({})


async def test_a_request_arrives_as_it_was_sent_but_for_the_key(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    seen: list[tuple[web.Request, bytes]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request, await request.read()))
        return web.json_response(WHOLE, headers={"X-Request-Id": "req-1", "Server": "theirs"})

    body = b'{ "model":"gpt-5.5",\n  "input" : "\xc3\xa4" }'
    sent = {
        **BEARER,
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "cli/1",
        "OpenAI-Beta": "x",
        "Connection": "X-Only-Here",
        "X-Only-Here": "1",
    }
    async with provider(answer) as base, gateway(order_for(tmp_path, base + "/v1")) as box:
        url = URL(f"{box}/responses?a=%2F&b", encoded=True)
        async with client.post(url, data=body, headers=sent) as reply:
            got = await reply.read()
    ((request, arrived),) = seen
    assert (request.method, request.raw_path) == ("POST", "/v1/responses?a=%2F&b")
    assert arrived == body
    assert request.headers["Authorization"] == f"Bearer {REAL_KEY}"
    assert PLACEHOLDER not in str(request.headers)
    assert request.headers["User-Agent"] == "cli/1" and request.headers["OpenAI-Beta"] == "x"
    assert request.headers["Content-Type"] == "application/json; charset=utf-8"
    assert request.headers["Host"] == base.removeprefix("http://")
    assert "X-Only-Here" not in request.headers
    assert json.loads(got) == WHOLE and reply.headers["X-Request-Id"] == "req-1"
    assert reply.headers.getall("Server") == ["theirs"]


@pytest.mark.parametrize("wire", CALLS)
async def test_the_key_goes_where_the_provider_looks_for_it(
    tmp_path: Path, client: aiohttp.ClientSession, wire: Wire
) -> None:
    seen = Seen()
    path, header = CALLS[wire]
    async with provider(seen.answer) as base, gateway(order_for(tmp_path, base, wire)) as box:
        for shown in (BEARER, {"x-api-key": PLACEHOLDER}, {"x-goog-api-key": PLACEHOLDER}):
            async with client.post(box + path, json={}, headers=shown) as reply:
                assert reply.status == 200
        async with client.post(f"{box}{path}?key={PLACEHOLDER}&alt=sse", json={}) as reply:
            assert reply.status == 200
    for request in seen:
        found = {name: request.headers.get(name) for _, name in CALLS.values()}
        value = f"Bearer {REAL_KEY}" if header == "Authorization" else REAL_KEY
        assert {name for name, said in found.items() if said} == {header}
        assert found[header] == value
    assert seen[-1].query_string == "alt=sse"


async def test_the_token_of_a_login_is_a_bearer_and_its_beta_header_passes(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    seen = Seen()
    async with provider(seen.answer) as base:
        order = order_for(tmp_path, base, "anthropic", scheme="bearer")
        sent = {**BEARER, "anthropic-beta": "oauth-2025-04-20"}
        async with (
            gateway(order) as box,
            client.post(f"{box}/v1/messages?beta=true", json={}, headers=sent),
        ):
            pass
    (request,) = seen
    assert request.headers["Authorization"] == f"Bearer {REAL_KEY}"
    assert request.headers["anthropic-beta"] == "oauth-2025-04-20"
    assert "X-Api-Key" not in request.headers


@pytest.mark.parametrize("wire", CALLS)
async def test_without_the_placeholder_nothing_passes(
    tmp_path: Path, client: aiohttp.ClientSession, wire: Wire
) -> None:
    seen = Seen()
    shown: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {PLACEHOLDER[:-1]}"},
        {"x-api-key": REAL_KEY},
        {"x-goog-api-key": "ä"},
    ]
    async with provider(seen.answer) as base, gateway(order_for(tmp_path, base, wire)) as box:
        for headers in shown:
            async with client.post(box + CALLS[wire][0], json={}, headers=headers) as reply:
                assert reply.status == 401
                assert "not the one of this run" in str((await reply.json())["error"]["message"])
    assert seen == []
    assert read_calls(tmp_path / "usage.jsonl") == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/files"),
        ("GET", "/responses"),
        ("DELETE", "/responses/r1"),
        ("POST", "/responses/../files"),
        ("POST", "/responses%2f..%2ffiles"),
        ("POST", "//evil.example/responses"),
        ("POST", "/batches"),
        ("CONNECT", "/responses"),
    ],
)
async def test_only_the_calls_of_a_worker_are_let_through(
    tmp_path: Path, method: str, path: str
) -> None:
    seen = Seen()
    async with provider(seen.answer) as base, gateway(order_for(tmp_path, base)) as box:
        reader, writer = await asyncio.open_connection(*box.removeprefix("http://").split(":"))
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {PLACEHOLDER}\r\n"
        writer.write(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        reply = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert reply.split()[1] in (b"404", b"400")
    assert seen == []


async def test_a_stream_passes_piece_by_piece(ask: Ask) -> None:
    """Each piece is read before the next one is made, so that nothing can be held back."""
    heard = asyncio.Queue[None]()
    pieces = [b'data: {"n": %d}\n' % n for n in range(5)] + [b"\n", b"data: [DO", b"NE]\n\n"]

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await heard.get()
        return response

    got = []
    async with ask(answer) as reply:
        async with asyncio.timeout(10):
            async for chunk in reply.content.iter_any():
                got.append(chunk)
                heard.put_nowait(None)
    assert got == pieces


async def test_a_slow_reader_slows_the_provider(ask: Ask) -> None:
    """Nothing is collected on the way: far less than the reply leaves while nobody reads."""
    sent, stuck = 0, asyncio.Event()
    block, blocks = b"x" * 65_536, 2000

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(blocks):
            writing = asyncio.ensure_future(response.write(block))
            done, _ = await asyncio.wait({writing}, timeout=None if stuck.is_set() else 0.5)
            if not done:
                stuck.set()
            await writing
            sent += 1
        return response

    async with ask(answer) as reply:
        async with asyncio.timeout(30):
            await stuck.wait()
        assert sent < blocks / 4
        got = 0
        async for chunk in reply.content.iter_any():
            got += len(chunk)
    assert got == blocks * len(block)


async def test_a_compressed_reply_passes_unchanged_and_is_counted(ask: Ask, tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(WHOLE).encode())
    asked = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers["Accept-Encoding"])
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with ask(answer) as reply:
        got = await reply.read()
    assert asked == ["identity"]
    assert got == packed and reply.headers["Content-Encoding"] == "gzip"
    assert read_usage(tmp_path / "usage.jsonl").total.input_tokens == 12


async def test_a_compressed_request_passes_unchanged_and_its_model_is_known(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    packed = gzip.compress(b'{"model": "gpt-5.5"}')
    seen = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(await request.read())
        return web.json_response(WHOLE)

    async with provider(answer) as base, gateway(order_for(tmp_path, base)) as box:
        headers = {**BEARER, "Content-Encoding": "gzip"}
        async with client.post(f"{box}/responses", data=packed, headers=headers) as reply:
            assert reply.status == 200
    assert seen == [packed]
    assert list(read_usage(tmp_path / "usage.jsonl").by_model) == ["gpt-5.5"]


async def test_a_redirect_is_an_error_and_the_key_stays_here(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    elsewhere = Seen()
    async with provider(elsewhere.answer) as target:

        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": f"{target}/responses"})

        async with (
            provider(answer) as base,
            gateway(order_for(tmp_path, base)) as box,
            client.post(
                f"{box}/responses", json={}, headers=BEARER, allow_redirects=False
            ) as reply,
        ):
            said = await reply.json()
    assert elsewhere == []
    assert reply.status == 502 and "Location" not in reply.headers
    assert "redirects to 127.0.0.1" in said["error"]["message"]
    assert _only(tmp_path).error == "server"


async def test_a_refused_key_is_not_repeated_into_the_box(ask: Ask, tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        text = json.dumps({"error": {"message": f"Incorrect API key provided: {REAL_KEY}"}})
        body = gzip.compress(text.encode())
        return web.Response(
            status=401, body=body, content_type="application/json",
            headers={"Content-Encoding": "gzip", "X-Request-Id": "r1"},
        )  # fmt: skip

    async with ask(answer) as reply:
        said = await reply.json()
    assert (reply.status, reply.headers["X-Request-Id"]) == (401, "r1")
    assert said["error"]["message"] == "Incorrect API key provided: [worker key redacted]"
    call = _only(tmp_path)
    assert (call.error, call.usd) == ("auth", 0)
    assert REAL_KEY not in (tmp_path / "usage.jsonl").read_text()


async def test_when_a_quota_is_back_is_booked_and_kept_from_the_box(
    ask: Ask, tmp_path: Path
) -> None:
    async def answer(request: web.Request) -> web.Response:
        told = {"Retry-After": "3600", "Retry-After-Ms": "3600000", "X-Request-Id": "req-1"}
        return web.json_response({"error": {"message": "slow down"}}, status=429, headers=told)

    async with ask(answer) as reply:
        await reply.read()
    assert reply.status == 429 and reply.headers["X-Request-Id"] == "req-1"
    assert not [name for name in reply.headers if name.lower().startswith("retry-after")]
    call = _only(tmp_path)
    assert call.error == "quota" and call.reset_at is not None


async def test_an_error_that_cannot_be_looked_through_does_not_pass(ask: Ask) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=400, body=REAL_KEY.encode(), headers={"Content-Encoding": "x"})

    async with ask(answer) as reply:
        assert (reply.status, await reply.read()) == (400, b"an error that cannot be decompressed")


@pytest.mark.parametrize(
    ("host", "why"),
    [("127.0.0.1", "Connection refused"), ("nowhere.invalid", r"(?!Unknown)[A-Za-z ]+")],
)
async def test_a_provider_that_is_not_there_is_a_bad_gateway(
    tmp_path: Path, client: aiohttp.ClientSession, unused_tcp_port: int, host: str, why: str
) -> None:
    base = f"http://{host}:{unused_tcp_port}"
    async with (
        gateway(order_for(tmp_path, base, "anthropic")) as box,
        client.post(f"{box}/v1/messages", json={}, headers=BEARER) as reply,
    ):
        said = await reply.json()
    assert reply.status == 502
    assert said["type"] == "error" and "cannot be reached" in said["error"]["message"]
    call = _only(tmp_path)
    assert (call.error, call.status) == ("network", 502)
    said, _, reason = call.detail.partition(" cannot be reached: ")
    assert said == f"The model provider at {host}:{unused_tcp_port}"
    assert re.fullmatch(why, reason), reason


async def test_a_reply_that_breaks_off_breaks_off_in_the_box_too(ask: Ask, tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: {}\n\n")
        assert request.transport is not None
        request.transport.close()
        return response

    async with ask(answer) as reply:
        with pytest.raises(aiohttp.ClientPayloadError):
            await reply.read()
    call = _only(tmp_path)
    assert (call.error, call.input_tokens, call.usd) == ("network", None, None)


async def test_a_client_that_goes_away_ends_the_providers_work(ask: Ask, tmp_path: Path) -> None:
    ended = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return response

    async with ask(answer) as reply:
        await reply.content.readany()
        reply.close()
        async with asyncio.timeout(10):
            await ended.wait()
    call = _only(tmp_path)
    assert (call.error, call.unknown, call.usd) == (None, True, None)


async def test_sizes_have_limits(
    tmp_path: Path, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentrunner.gateway.gateway.MAX_REQUEST", 100_000)
    monkeypatch.setattr("agentrunner.gateway.gateway.MAX_REPLY", 100_000)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 200_000)

    async with provider(answer) as base, gateway(order_for(tmp_path, base)) as box:
        big = b"x" * 200_000
        async with client.post(f"{box}/responses", data=big, headers=BEARER) as reply:
            assert reply.status == 413
            assert "a request may have" in (await reply.json())["error"]["message"]
        async with client.post(f"{box}/responses", json={}, headers=BEARER) as reply:
            with pytest.raises(aiohttp.ClientPayloadError):
                await reply.read()
    assert _only(tmp_path).error == "network"


async def test_a_stream_that_fails_half_way_is_classified(ask: Ask, tmp_path: Path) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    async def answer(request: web.Request) -> web.Response:
        text = f"event: error\ndata: {json.dumps(error)}\n\n"
        return web.Response(text=text, content_type="text/event-stream")

    async with ask(answer, "anthropic") as reply:
        assert reply.status == 200
        await reply.read()
    call = _only(tmp_path)
    assert (call.error, call.detail) == ("overload", "Overloaded")


async def test_many_calls_at_once_are_each_booked_once(
    tmp_path: Path, client: aiohttp.ClientSession
) -> None:
    together = asyncio.Barrier(20)

    async def answer(request: web.Request) -> web.Response:
        await together.wait()
        return web.json_response(WHOLE)

    async with provider(answer) as base, gateway(order_for(tmp_path, base)) as box:

        async def call() -> Any:
            async with client.post(f"{box}/responses", json={}, headers=BEARER) as reply:
                return await reply.json()

        replies = await asyncio.gather(*(call() for _ in range(20)))
    assert replies == [WHOLE] * 20
    calls = read_calls(tmp_path / "usage.jsonl")
    assert sorted(call.n for call in calls) == list(range(1, 21))


def _only(place: Path) -> ModelCall:
    (call,) = read_calls(place / "usage.jsonl")
    return call
