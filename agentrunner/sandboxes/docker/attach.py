"""The helper that the supervisor starts for a worker: `own_process` and STATUS_FD.

It makes its own container, runs the command of its order there, and copies the streams. On
STATUS_FD it reports lines of JSON: {"forwards-signals": true} at once; {"exit-code": N} if the
command ran, {"oom": true} if the kernel killed it for using too much memory; {"error": TEXT} if the
engine failed. SIGINT and SIGTERM go to every process of the command; SIGUSR1 kills them all.
However the helper ends, the container ends with it (see `container`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from agentrunner.errors import AgentRunnerError
from agentrunner.sandboxes.base import Door, Stream
from agentrunner.sandboxes.docker.config import User
from agentrunner.sandboxes.docker.container import Container, Exit
from agentrunner.sandboxes.docker.engine import Engine, EngineError, in_thread
from agentrunner.sandboxes.docker.exec import CHUNK, ExecCommand
from agentrunner.sandboxes.docker.layers import Copies
from agentrunner.sandboxes.gitdirs import Mask

PASSED_ON = ("LD_LIBRARY_PATH",)
"""All that the helper gets of our environment: what its Python needs to start."""
PREFIX = "AGENTRUNNER_ATTACH_"
PIECE = 100_000
"""Characters per variable: the kernel takes no string above 128 KiB."""


@dataclass(frozen=True)
class AttachOrder:
    """One command in its own container. It comes in the environment, as it may hold secrets."""

    host: str
    """The engine's address."""
    folder: Path
    """For the lifeline."""
    config: Mapping[str, Any]
    user: User
    command: ExecCommand
    door: Door | None
    masked: Path | None
    """The repository, if its missing `.git` is masked."""
    layers: Copies = field(default_factory=Copies)

    def to_env(self) -> dict[str, str]:
        """Return the order as variables, in pieces."""
        text = json.dumps(asdict(self), default=str)
        pieces = range(0, len(text), PIECE)
        return {f"{PREFIX}{n}": text[at : at + PIECE] for n, at in enumerate(pieces)}

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> AttachOrder:
        """Return the order that `to_env` wrote; raises KeyError or ValidationError for all else."""
        count = sum(name.startswith(PREFIX) for name in environ)
        fields = json.loads("".join(environ[f"{PREFIX}{n}"] for n in range(count)))
        # Not decoded by msgspec, which takes no half characters: a name need not be UTF-8.
        return msgspec.convert(fields, cls, str_keys=True, dec_hook=lambda path, text: path(text))


INFRA = 125
"""Our exit code if the command's own is unknown."""
OUTPUTS: dict[Stream, int] = {"stdout": 1, "stderr": 2}


class Attached:
    """One command, from the order to its end."""

    def __init__(self, order: AttachOrder, status: int) -> None:
        self._order = order
        self._status = status
        self._mask = Mask(order.masked) if order.masked else None
        self._container: Container | None = None
        self._killed = asyncio.Event()
        self._passing: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Run the command, make the reports, and return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._pass_on, number)
        loop.add_signal_handler(signal.SIGUSR1, self._killed.set)
        self._report({"forwards-signals": True})
        working = asyncio.ensure_future(self._work())
        killed = asyncio.ensure_future(self._killed.wait())
        await asyncio.wait({working, killed}, return_when=asyncio.FIRST_COMPLETED)
        killed.cancel()
        if not working.done():
            return await self._kill(working)
        try:
            ended = working.result()
        except AgentRunnerError as error:
            self._report({"error": getattr(error, "cause", error.message)})
            return INFRA
        if ended.oom:
            self._report({"oom": True})
        self._report({"exit-code": ended.code})
        return ended.code

    async def _work(self) -> Exit:
        order = self._order
        if self._mask is not None:
            self._mask.put()
        try:
            engine = await Engine.connect({"DOCKER_HOST": order.host})
            async with order.layers.made():
                return await self._execute(engine)
        finally:
            if self._mask is not None:
                self._mask.lift()

    async def _execute(self, engine: Engine) -> Exit:
        order = self._order
        self._container = await Container.start(engine, order.config, order.user, order.folder)
        try:
            if order.door is not None:
                await self._container.forward(order.door)
            return await self._container.execute(order.command, _stdin(), _copy)
        finally:
            with contextlib.suppress(EngineError):
                await asyncio.shield(self._container.remove())

    async def _kill(self, working: asyncio.Future[Exit]) -> int:
        """Remove the container, even if it is still being made."""
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        code = 128 + signal.SIGKILL
        self._report({"exit-code": code})
        return code

    def _pass_on(self, number: signal.Signals) -> None:
        if self._container is None:
            self._killed.set()  # nothing has started that could react to it
            return
        name = number.name.removeprefix("SIG")
        task = asyncio.ensure_future(self._container.terminate(name))
        self._passing.add(task)
        task.add_done_callback(self._passing.discard)

    def _report(self, fact: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more
            os.write(self._status, json.dumps(fact).encode() + b"\n")


async def _stdin() -> AsyncIterator[bytes]:
    while data := await in_thread(lambda: os.read(0, CHUNK)):
        yield data


def _copy(stream: Stream, data: bytes) -> None:
    view = memoryview(data)
    with contextlib.suppress(OSError):
        while view:
            view = view[os.write(OUTPUTS[stream], view) :]


def main() -> int:
    """Run as the helper of one worker."""
    order = AttachOrder.from_env(os.environ)
    return asyncio.run(Attached(order, int(sys.argv[2])).run())
