"""The streams of a command in a sandbox: its input, and its outputs as the engine mixes them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from typing import Any, Literal

Stream = Literal["stdout", "stderr"]
Piece = tuple[Stream, bytes]

_HEADER = struct.Struct(">BxxxL")
_NAMES: dict[int, Stream] = {1: "stdout", 2: "stderr"}
CHUNK = 1 << 18


class Frames:
    """Splits the engine's byte stream; holds no more than the piece that has arrived."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._stream: Stream = "stdout"
        self._left = 0

    def feed(self, data: bytes) -> list[Piece]:
        """Return the pieces of output in the data; a frame may arrive in several pieces."""
        pieces: list[Piece] = []
        self._buffer += data
        while self._buffer:
            if not self._left:
                if len(self._buffer) < _HEADER.size:
                    break
                number, self._left = _HEADER.unpack_from(self._buffer)
                self._stream = _NAMES.get(number, "stderr")
                del self._buffer[: _HEADER.size]
                continue
            piece = bytes(self._buffer[: self._left])
            del self._buffer[: len(piece)]
            self._left -= len(piece)
            pieces.append((self._stream, piece))
        return pieces


class Pipe:
    """The connection that carries a command's input and outputs."""

    def __init__(self, engines: Any) -> None:
        """Take over the result of docker-py's `exec_start(socket=True)`."""
        self._socket = socket.socket(fileno=os.dup(engines.fileno()))
        # docker-py ties answer and connection into a cycle that only the garbage collector frees.
        answer = getattr(engines, "_response", None)
        if answer is not None:
            answer.close()
        engines.close()
        self._socket.setblocking(False)

    async def read(self) -> bytes:
        """Return some bytes; empty at the end, also if the engine cut the connection."""
        try:
            return await asyncio.get_running_loop().sock_recv(self._socket, CHUNK)
        except OSError:
            return b""

    async def write(self, data: bytes) -> None:
        """Write everything, unless nobody reads it any more."""
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def end_input(self) -> None:
        """Signal the end of the input."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close both directions at once: nobody else holds the connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
