"""A model provider in a process of its own, as fast as it can be, for `benchmarks.gateway`.

    with Provider() as provider:
        …  provider.port  …

A request's body says what is answered: `{"size": BYTES}` in one piece, or `{"tokens": N, "gap": S}`
as a stream of N events, each with the time at which it was sent, on the clock of time.monotonic().
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from asyncio import StreamReader, StreamWriter
from typing import Any

from benchmarks.measure import Child

BLOCK = b"x" * 65_536


class Provider(Child):
    """The provider's process, from entering to leaving."""

    def __init__(self) -> None:
        super().__init__("benchmarks.provider")

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.told)


async def _serve(reader: StreamReader, writer: StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            await _answer(json.loads(await reader.readexactly(length)), writer)
    writer.close()


async def _answer(asked: dict[str, Any], writer: StreamWriter) -> None:
    if "tokens" not in asked:
        begin, end = b'{"text": "', b'", "usage": {"input_tokens": 1200, "output_tokens": 34}}'
        size = len(begin) + int(asked["size"]) + len(end)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (size, begin)
        )
        for start in range(0, int(asked["size"]), len(BLOCK)):
            writer.write(BLOCK[: int(asked["size"]) - start])
            await writer.drain()
        writer.write(end)
        return await writer.drain()
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for _ in range(int(asked["tokens"])):
        data = b"data: %.9f\n\n" % time.monotonic()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await writer.drain()
        await asyncio.sleep(float(asked["gap"]))
    writer.write(b"0\r\n\r\n")
    return await writer.drain()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_main())
