"""Passes bytes both ways between a client and a host, unread, until both have ended."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

from msgspec import Struct

CHUNK = 256 << 10
BUFFER = 64 << 10
"""Of a stream's reader; it accepts twice as much before it makes the sender wait."""
FLUSH_SEC = 10.0
"""How long a slow client may take to receive the remaining bytes at the end."""


class TunnelSide(Struct, frozen=True):
    """One side of a tunnel."""

    reader: StreamReader
    writer: StreamWriter

    async def close(self) -> None:
        """Let written bytes go out, for a while; then cut the connection."""
        self.writer.close()
        try:
            async with asyncio.timeout(FLUSH_SEC):
                await self.writer.wait_closed()
        except OSError:  # TimeoutError is one
            pass
        finally:
            self.writer.transport.abort()


class Tunnel:
    """Counts what went through, `up` from the client to the host."""

    def __init__(self, client: TunnelSide, host: TunnelSide, idle_sec: float) -> None:
        self._client = client
        self._host = host
        self._idle_sec = idle_sec
        self.up = 0
        self.down = 0

    async def run(self) -> None:
        """Run until both sides have ended, one breaks, or nothing moves for `idle_sec`.

        The end of one side is passed on, and the other may continue. At most one buffer per
        direction is in memory: a slow reader slows down the writer.
        """
        with suppress(OSError):  # TimeoutError is one
            async with asyncio.timeout(self._idle_sec) as idle:
                await self._both(idle)

    async def _both(self, idle: asyncio.Timeout) -> None:
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._up(idle))
                both.create_task(self._down(idle))
        except* OSError as broken:
            raise broken.exceptions[0] from None
        await asyncio.gather(self._client.close(), self._host.close())

    async def _up(self, idle: asyncio.Timeout) -> None:
        while data := await self._client.reader.read(CHUNK):
            self.up += len(data)
            await self._forward(data, self._host.writer, idle)
        self._host.writer.write_eof()

    async def _down(self, idle: asyncio.Timeout) -> None:
        while data := await self._host.reader.read(CHUNK):
            self.down += len(data)
            await self._forward(data, self._client.writer, idle)
        self._client.writer.write_eof()

    async def _forward(self, data: bytes, writer: StreamWriter, idle: asyncio.Timeout) -> None:
        idle.reschedule(asyncio.get_running_loop().time() + self._idle_sec)
        writer.write(data)
        await writer.drain()
