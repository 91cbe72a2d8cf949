"""What the gateway and the proxy cost on the way from a box to its model.

    python -m benchmarks.gateway [--rounds 5] [--requests 400] [--tokens 100] [--megabytes 64]

Client, provider and the gateway's process stand on this machine, each in a process of its own; the
client connects to the provider directly, to the gateway's Unix socket, or through the proxy's. The
way from inside a box to these sockets is not in it. Connections, round trips and bytes through the
proxy are those of a server in this process: on few processors the proxy takes time from it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Self

from agentrunner.gateway.gateway_process import running
from agentrunner.gateway.order import GATEWAY_SOCKET, PROXY_SOCKET, GatewayOrder, Upstream
from benchmarks.measure import Figure, ms, program
from benchmarks.provider import Provider

PLACEHOLDER = "sk-placeholder-" + "ab" * 32
GAP_SEC = 0.005
"""Between two tokens: a fast model."""
PROMPT = "x" * 40_000
"""About what Codex sends with its first request."""
CHUNK = 256 << 10
TURNS = 5
"""Of each way through the proxy alone; they share what there is to measure."""


@dataclass
class Line:
    """A connection on which requests are made one after the other."""

    reader: StreamReader
    writer: StreamWriter

    async def ask(self, **what: float | str) -> AsyncIterator[bytes]:
        """The body of the reply, as it comes."""
        body = json.dumps({"model": "gpt-5.5", **what}).encode()
        self.writer.write(
            b"POST /responses HTTP/1.1\r\nHost: model\r\nAuthorization: Bearer %s\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (PLACEHOLDER.encode(), len(body), body)
        )
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head
        if b"chunked" in head:
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                yield await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
            return
        left = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        while left:
            piece = await self.reader.read(min(left, 1 << 20))
            left -= len(piece)
            yield piece

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        await self.writer.wait_closed()


Connect = Callable[[], Awaitable[Line]]


@dataclass(frozen=True)
class Ways:
    """The three ways to the provider."""

    port: int
    sockets: Path

    async def direct(self) -> Line:
        return Line(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20))

    async def gateway(self) -> Line:
        place = self.sockets / GATEWAY_SOCKET
        return Line(*await asyncio.open_unix_connection(place, limit=1 << 20))

    async def proxy(self) -> Line:
        place = self.sockets / PROXY_SOCKET
        line = Line(*await asyncio.open_unix_connection(place, limit=1 << 20))
        target = b"model.test:%d" % self.port
        line.writer.write(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target))
        head = await line.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head, head
        return line


async def figures(
    place: Path, rounds: int, requests: int, tokens: int, megabytes: int
) -> list[Figure]:
    """Measure everything, with sockets and logs in `place`."""
    echo = await asyncio.start_server(_echo, "127.0.0.1", 0, limit=CHUNK)
    echo_port = echo.sockets[0].getsockname()[1]
    with Provider() as provider:
        order = GatewayOrder(
            sockets=place / "sock",
            egress_log=place / "egress.jsonl",
            usage_log=place / "usage.jsonl",
            allow=tuple(f"model.test:{port}@127.0.0.1" for port in (provider.port, echo_port)),
            upstream=Upstream("openai", f"http://127.0.0.1:{provider.port}", "k" * 40, PLACEHOLDER),
        )
        async with echo, running(order, os.environ):
            ways = Ways(provider.port, order.sockets)
            return [
                *await latency(ways, rounds, requests),
                *await streaming(ways, rounds, tokens),
                await throughput(ways, rounds, megabytes),
                *await of_proxy(replace(ways, port=echo_port), requests, megabytes),
            ]


async def _by_turns(
    rounds: int, ways: Sequence[Connect], measure: Callable[[Connect], Awaitable[float]]
) -> list[float]:
    """The least of each way: whatever else runs can only add to it. They take turns."""
    found = [[await measure(way) for way in ways] for _ in range(rounds)]
    return [min(column) for column in zip(*found, strict=True)]


def _added(name: str, subject: float, base: float, goal: float) -> Figure:
    """What is added in ms stands in the column of the ratio."""
    return Figure(
        f"{name}, ms added", ms(subject), f"direct, {ms(base)}", 1000 * (subject - base), goal
    )  # fmt: skip


# -- a request and its reply ----------------------------------------------------------------------


async def latency(ways: Ways, rounds: int, requests: int) -> list[Figure]:
    """Medians over many requests of 40 KB with short replies."""

    async def kept(connect: Connect) -> float:
        async with await connect() as line:
            return median([await _once(line) for _ in range(requests)])

    async def fresh(connect: Connect) -> float:
        times = []
        for _ in range(max(1, requests // 4)):
            began = time.perf_counter()
            async with await connect() as line:
                await _once(line)
                times.append(time.perf_counter() - began)
        return median(times)

    every = (ways.direct, ways.gateway)
    base, gateway = await _by_turns(rounds, every, kept)
    new_base, new_gateway = await _by_turns(rounds, every, fresh)
    return [
        _added("gateway, request, p50", gateway, base, 3),
        _added("gateway, connection and request, p50", new_gateway, new_base, 3),
    ]


async def _once(line: Line) -> float:
    began = time.perf_counter()
    async for _ in line.ask(size=100, input=PROMPT):
        pass
    return time.perf_counter() - began


# -- a stream -------------------------------------------------------------------------------------


async def streaming(ways: Ways, rounds: int, tokens: int) -> list[Figure]:
    """Each token tells when it was sent: how old is it when it is read?"""
    pieces: dict[str, list[int]] = {}

    async def first(connect: Connect) -> float:
        async with await connect() as line:
            began = time.perf_counter()
            times = [time.perf_counter() - began async for _ in line.ask(tokens=1, gap=0)]
            return times[0]

    async def between(connect: Connect) -> float:
        async with await connect() as line:
            ages, count = [], 0
            async for piece in line.ask(tokens=tokens, gap=GAP_SEC):
                ages.append(time.monotonic() - float(piece.split(b"data: ")[-1]))
                count += 1
            pieces.setdefault(connect.__name__, []).append(count)
            return median(ages)

    every = (ways.direct, ways.gateway, ways.proxy)
    base, gateway, proxy = await _by_turns(rounds * 5, every, first)
    age, gateway_age, proxy_age = await _by_turns(rounds, every, between)
    most = max(pieces["gateway"])
    return [
        _added("gateway, first token", gateway, base, 3),
        _added("gateway, each token, p50", gateway_age, age, 3),
        Figure(
            "gateway, tokens per piece", f"{most} pieces", f"{tokens} tokens sent",
            tokens / most, 1.05,
        ),
        _added("proxy, first token", proxy, base, 3),
        _added("proxy, each token, p50", proxy_age, age, 3),
    ]  # fmt: skip


# -- much of it -----------------------------------------------------------------------------------


async def throughput(ways: Ways, rounds: int, megabytes: int) -> Figure:
    """One long reply. 20 ms per MB are 50 MB/s: thousands of models at once write no more."""

    async def rate(connect: Connect) -> float:
        async with await connect() as line:
            began = time.perf_counter()
            count = 0
            async for piece in line.ask(size=megabytes * 10**6):
                count += len(piece)
            return (time.perf_counter() - began) / (count / 1e6)

    base, each = await _by_turns(rounds, (ways.direct, ways.gateway), rate)
    return Figure(
        "gateway, ms per MB of a long reply", f"{1 / each:.0f} MB/s",
        f"direct, {1 / base:.0f} MB/s", each * 1000, 20,
    )  # fmt: skip


# -- the proxy alone ------------------------------------------------------------------------------


async def of_proxy(ways: Ways, opens: int, megabytes: int) -> list[Figure]:
    """Milliseconds that a connection and a round trip take longer; how much slower bytes flow."""
    size = megabytes // TURNS or 1

    async def opening(connect: Connect) -> float:
        times = []
        for _ in range(opens // TURNS or 1):
            began = time.perf_counter()
            async with await connect():
                times.append(time.perf_counter() - began)
        return median(times)

    async def round_trip(connect: Connect) -> float:
        async with await connect() as line:
            line.writer.write(b"\n")
            times = []
            for _ in range(opens):
                began = time.perf_counter()
                line.writer.write(b"x" * 200)
                await line.reader.readexactly(200)
                times.append(time.perf_counter() - began)
        return median(times)

    async def download(connect: Connect) -> float:
        async with await connect() as line:
            began = time.perf_counter()
            line.writer.write(b"%d\n" % size)
            while await line.reader.read(CHUNK):
                pass
            return time.perf_counter() - began

    every = (ways.direct, ways.proxy)
    opened, opened_through = await _by_turns(TURNS, every, opening)
    answered, answered_through = await _by_turns(TURNS, every, round_trip)
    base, through = await _by_turns(TURNS, every, download)
    return [
        _added("proxy, a connection", opened_through, opened, 3),
        _added("proxy, a round trip", answered_through, answered, 3),
        Figure(
            "proxy, a download", f"{size / through:.0f} MiB/s",
            f"direct, {size / base:.0f} MiB/s", through / base, 5,
        ),
    ]  # fmt: skip


async def _echo(reader: StreamReader, writer: StreamWriter) -> None:
    """Echo; or, asked for it, as many MiB as the first line says."""
    line = await reader.readline()
    if line.strip():
        for _ in range(int(line) * (1 << 20) // CHUNK):
            writer.write(bytes(CHUNK))
            await writer.drain()
    else:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    sys.exit(program(figures, rounds=5, requests=400, tokens=100, megabytes=64))
