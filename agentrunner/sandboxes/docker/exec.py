"""One command in a running container, as the engine executes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentrunner.sandboxes.docker.engine import Engine, EngineError
from agentrunner.sandboxes.docker.stream import Frames, Piece, Pipe, Stream
from agentrunner.sandboxes.process import DRAIN_SEC

Hear = Callable[[Stream, bytes], None]

POLL_SEC = 2.0
"""Between looks whether a command that prints nothing still runs, and the engine still answers."""
END_SEC = 5.0
"""How long the engine may take to tell of an end whose signs are there."""
NO_SHELL = "the image has no /bin/sh"


class ExecNeverStarted(EngineError):
    """The command was not started, surely: it can be tried again in another sandbox."""


@dataclass(frozen=True)
class ExecCommand:
    """What is executed. `env` is all of its environment, but for what the image sets."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    workdir: str


class Exec:
    """One exec of the engine's, from its making to its exit code."""

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
        """Start it; raises NeverStarted."""

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
            if self._closed:  # meanwhile it was given up
                pipe.close()
            return pipe

        try:
            pipe = await self._engine.call("run", make)
        except EngineError as error:
            # Also with no answer: it waits for a line that never came.
            raise ExecNeverStarted("run", error.cause, status=error.status) from error
        # Only now: docker-py loses what is printed before it has read the answer's head.
        await pipe.write(b"go\n")

    async def ready(self) -> tuple[str, int]:
        """What the wrapper says before it starts the command; raises NeverStarted."""
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

    async def follow(self, stdin: AsyncIterator[bytes], hear: Hear) -> None:
        """Until its outputs end; raises EngineError where that cannot be known."""
        giving = asyncio.ensure_future(self._give(stdin))
        try:
            for stream, data in self._early:
                hear(stream, data)
            async for pieces in self._chunks():
                for stream, data in pieces:
                    hear(stream, data)
        finally:
            giving.cancel()
            await asyncio.gather(giving, return_exceptions=True)

    def close(self) -> None:
        """Let go of it; what still runs goes on."""
        self._closed = True
        if self._pipe is not None:
            self._pipe.close()

    async def _give(self, stdin: AsyncIterator[bytes]) -> None:
        assert self._pipe is not None
        async for data in stdin:
            await self._pipe.write(data)
        self._pipe.end_input()

    async def _chunks(self) -> AsyncIterator[list[Piece]]:
        """Its output until it has ended, even if something else holds the stream open.

        What it printed last may still be on its way when the engine says that it has ended.
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
        """Told by the engine a moment after the outputs have ended; raises EngineError."""
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
    """For how long to wait for output; none comes after `last`, once the command has ended."""
    return POLL_SEC if last is None else max(0.0, last - now)
