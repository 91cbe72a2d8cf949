"""One command in a running container, as the engine executes it, and its streams."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentrunner.sandboxes.base import OnOutput, Stream
from agentrunner.sandboxes.docker.engine import Engine, EngineError
from agentrunner.sandboxes.process import DRAIN_SEC

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


POLL_SEC = 2.0
"""Between checks whether a silent command still runs and the engine still answers."""
END_SEC = 5.0
"""How long the engine may take to report an end that has already shown."""
NO_SHELL = "the image has no /bin/sh"


class ExecNeverStarted(EngineError):
    """The command surely was not started: it can be tried again in another sandbox."""


@dataclass(frozen=True)
class ExecCommand:
    """A command to execute. `env` is its whole environment, except for what the image sets."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    workdir: str


class Exec:
    """One exec of the engine, from its creation to its exit code."""

    def __init__(self, engine: Engine, container: str, command: ExecCommand, user: str) -> None:
        self._engine = engine
        self._container = container
        self._command = command
        self._user = user
        self._frames = Frames()
        self._early: list[Piece] = []
        self._id = ""
        self._pipe: Pipe | None = None
        self._closed = False

    async def begin(self) -> None:
        """Start it; raises ExecNeverStarted."""

        def make(api: Any) -> Pipe:
            made = api.exec_create(
                self._container,
                list(self._command.argv),
                stdin=True,
                user=self._user,
                environment=dict(self._command.env),
                workdir=self._command.workdir,
            )
            self._id = made["Id"]
            self._pipe = pipe = Pipe(api.exec_start(made["Id"], socket=True))
            if self._closed:  # it was given up in the meantime
                pipe.close()
            return pipe

        try:
            pipe = await self._engine.call("run", make)
        except EngineError as error:
            # Also without an answer: the command waits for a line that never comes.
            raise ExecNeverStarted("run", error.cause, status=error.status) from error
        # Only now: docker-py loses what is printed before it has read the answer's head.
        await pipe.write(b"go\n")

    async def ready(self) -> tuple[str, int]:
        """Return what the wrapper reports before it starts the command; raises ExecNeverStarted."""
        try:
            async for pieces in self._chunks():
                self._early += pieces
                output = b"".join(data for stream, data in self._early if stream == "stdout")
                if b"\n" in output:
                    line, _, rest = output.partition(b"\n")
                    errors = [piece for piece in self._early if piece[0] == "stderr"]
                    self._early = [*errors, ("stdout", rest)] if rest else errors
                    state, killed = line.decode("ascii", "replace").split()
                    return state, int(killed)
        except EngineError as error:
            raise ExecNeverStarted("run", error.cause, status=error.status) from error
        code = await self.exit_code()
        raise ExecNeverStarted("run", NO_SHELL if code in (126, 127) else f"no word of it ({code})")

    async def follow(self, stdin: AsyncIterator[bytes], on_output: OnOutput) -> None:
        """Pass on all input and output; raises EngineError where the end is unknown."""
        giving = asyncio.ensure_future(self._send_input(stdin))
        try:
            for stream, data in self._early:
                on_output(stream, data)
            async for pieces in self._chunks():
                for stream, data in pieces:
                    on_output(stream, data)
        finally:
            giving.cancel()
            await asyncio.gather(giving, return_exceptions=True)

    def close(self) -> None:
        """Release the connection; what still runs keeps running."""
        self._closed = True
        if self._pipe is not None:
            self._pipe.close()

    async def _send_input(self, stdin: AsyncIterator[bytes]) -> None:
        assert self._pipe is not None
        async for data in stdin:
            await self._pipe.write(data)
        self._pipe.end_input()

    async def _chunks(self) -> AsyncIterator[list[Piece]]:
        """Yield its output until it has ended, even if something else holds the stream open.

        Its last output may still be on its way when the engine reports its end.
        """
        assert self._pipe is not None
        clock = asyncio.get_running_loop().time
        last: float | None = None
        while True:
            reading = asyncio.ensure_future(self._pipe.read())
            try:
                while not (await asyncio.wait({reading}, timeout=_wait(last, clock())))[0]:
                    if last is not None:
                        return
                    if not (await self._state())["Running"]:
                        last = clock() + DRAIN_SEC
            finally:
                reading.cancel()
            if not (data := reading.result()):
                return
            yield self._frames.feed(data)

    async def exit_code(self) -> int:
        """Return its exit code, known a moment after the outputs have ended; raises EngineError."""
        try:
            async with asyncio.timeout(END_SEC):
                while (state := await self._state())["Running"]:  # noqa: ASYNC110 - it is elsewhere
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise EngineError("run", "the command's streams were cut off") from None
        if state["ExitCode"] is None:
            raise EngineError("run", "the engine does not know how it ended")
        return int(state["ExitCode"])

    async def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = await self._engine.call(
            "run", lambda api: api.exec_inspect(self._id)
        )
        return state


def _wait(last: float | None, now: float) -> float:
    """How long to wait for output; after the command's end, none comes later than `last`."""
    return POLL_SEC if last is None else max(0.0, last - now)
