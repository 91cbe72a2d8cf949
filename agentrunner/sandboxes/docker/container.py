"""One container: made, kept as long as we live, used for one command after another, removed.

Nothing that a command says or leaves is believed. After it the engine is asked which processes
are left, and before the next one, while none can interfere, its scratch space is emptied; a
container in which that fails is not used again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.base import Door
from agentrunner.sandboxes.docker.census import member_list, users_in
from agentrunner.sandboxes.docker.config import SCRATCH, SOCKETS, User, bind, preamble
from agentrunner.sandboxes.docker.engine import CONFLICT, NOT_FOUND, Engine, EngineError
from agentrunner.sandboxes.docker.labels import owner_labels
from agentrunner.sandboxes.docker.lifeline import Lifeline
from agentrunner.sandboxes.docker.stream import Frames, Piece, Pipe, Stream

Hear = Callable[[Stream, bytes], None]

POLL_SEC = 2.0
"""Between looks whether a command that prints nothing still runs, and the engine still answers."""
END_SEC = 5.0
"""How long the engine may take to tell of an end whose signs are there."""
BURIAL_LOOKS, BURIAL_SEC = 20, 0.005
"""How often, and how long apart, it is looked whether the dead of a command are gone."""
NO_FORWARDER = "the image has none of python3, node and socat, one of which its way out needs"
NO_SHELL = "the image has no /bin/sh"


class NeverStarted(EngineError):
    """The command was not started, surely: it can be tried again in another box."""


@dataclass(frozen=True)
class Command:
    """What is executed. `env` is all of its environment, but for what the image sets."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    workdir: str


@dataclass(frozen=True)
class Exit:
    """The end of a command."""

    code: int
    oom: bool
    """The kernel has ended it, or a process of it, for its memory."""


class Container:
    """A running container that is ours alone."""

    def __init__(
        self,
        engine: Engine,
        ident: str,
        lifeline: Lifeline,
        user: User,
        preamble: str,
        members: Path | None,
    ) -> None:
        self.id = ident
        self.fresh = True
        """No command has been tried in it yet."""
        self.clean = True
        """False once something may be left of a command: then only `remove` makes sense."""
        self._engine = engine
        self._lifeline = lifeline
        self._user = user
        self._members = members
        self._script = preamble + read_inside("run.sh")[0]
        self._removed = False
        self._keepers = 0
        """How many processes stand beside the commands; 0 until first counted."""

    @classmethod
    async def start(
        cls, engine: Engine, config: Mapping[str, Any], user: User, folder: Path
    ) -> Container:
        """Make one, for `folder` see Lifeline.

        Raises EngineError, and leaves none behind then or when cancelled.
        """
        making = asyncio.ensure_future(cls._start(engine, config, user, folder))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            with contextlib.suppress(EngineError):
                await (await making).remove()
            raise

    @classmethod
    async def _start(
        cls, engine: Engine, config: Mapping[str, Any], user: User, folder: Path
    ) -> Container:
        try:
            lifeline = Lifeline(folder)
        except OSError as error:
            raise EngineError("create", str(error)) from error
        host = config["HostConfig"]
        mounts = [*host["Mounts"], bind(lifeline.mount, apart=False)]
        body = {
            **config,
            "Labels": {**config["Labels"], **owner_labels()},
            "HostConfig": {**host, "Mounts": mounts},
        }
        ident = ""
        try:
            made = await engine.call("create", lambda api: api.create_container_from_config(body))
            ident = made["Id"]
            await engine.call("start", lambda api: api.start(ident))
            facts = await engine.call("start", lambda api: api.inspect_container(ident))
        except BaseException:
            lifeline.cut()
            if ident:
                with contextlib.suppress(EngineError):
                    await remove_container(engine, ident)
            raise
        lifeline.hide()
        members = member_list(ident, int(facts["State"]["Pid"]))
        return cls(engine, ident, lifeline, user, preamble(config), members)

    async def execute(
        self,
        command: Command,
        stdin: AsyncIterator[bytes],
        hear: Hear,
        *,
        started: Callable[[], None] = lambda: None,
    ) -> Exit:
        """Run a command to its end; afterwards nothing of it is left, or `clean` is False.

        `hear` gets its output, `started` is called just before it can do anything. Raises
        NeverStarted, or EngineError where its end is unknown.
        """
        self.clean = False
        wrapped = ("/bin/sh", "-c", self._script, "box", *command.argv)
        command = replace(command, argv=wrapped)
        run = Run(self._engine, self.id, command, str(self._user))
        try:
            await run.begin()
            state, killed = await run.ready()
            if state == "unwritable":
                # The engine gave the scratch space the mode of a folder of the image.
                await self._open_scratch()
                run.close()
                run = Run(self._engine, self.id, command, str(self._user))
                await run.begin()
                state, killed = await run.ready()
            if state != "clean":
                raise NeverStarted("run", f"the box is {state} after an earlier command")
            self.fresh = False
            started()
            await run.follow(stdin, hear)
            # At once, for speed; the first look may be too early.
            code, empty = await asyncio.gather(run.exit_code(), self._is_empty())
        finally:
            run.close()
        self.clean = empty or await self._soon_empty()
        oom = code != 0 and await self._killed_for_memory() > killed
        return Exit(code, oom)

    async def terminate(self, signal: str = "TERM") -> None:
        """Signal every process of the command; it may go on."""
        script = f'trap "" {signal}; kill -{signal} -1'
        with contextlib.suppress(EngineError):
            await self._quick(script, str(self._user))

    async def forward(self, door: Door) -> None:
        """Let the ports of its loopback lead to the door's sockets; raises EngineError."""
        words = [f"{port}:{SOCKETS / name}" for port, name in door.ports.items()]
        script, python, node = read_inside("door.sh", "forward.py", "forward.js")
        argv = ("/bin/sh", "-c", script, "door", python, node, *words)
        code, said = await self._quick_words(argv, self._user.keeper)
        if code != 0:
            raise EngineError("door", NO_FORWARDER if code == 3 else said or f"exit code {code}")

    async def pause(self) -> None:
        """Freeze everything in it."""
        await self._engine.call("pause", lambda api: api.pause(self.id))

    async def unpause(self) -> None:
        """Let it go on."""
        await self._engine.call("unpause", lambda api: api.unpause(self.id))

    async def remove(self) -> None:
        """End everything in it and remove it; raises EngineError if the engine cannot.

        It ends in any case. May be repeated.
        """
        self.clean = False
        removed, self._removed = self._removed, True
        try:
            if not removed and not self._engine.silent:
                await remove_container(self._engine, self.id)
        finally:
            self._lifeline.cut()

    async def _soon_empty(self) -> bool:
        """Whether it is empty once the kernel has buried the dead, which takes a moment."""
        for _ in range(BURIAL_LOOKS):
            if await self._is_empty():
                return True
            await asyncio.sleep(BURIAL_SEC)
        return False

    async def _is_empty(self) -> bool:
        """Whether only what stands beside the commands is left. Told by kernel or engine."""
        users = users_in(self._members) if self._members else None
        if users is None or self._user.keeper_uid not in users:  # other uids here than in the box
            users = await self._asked_users()
        keepers = sum(user != self._user.uid for user in users)
        whole = keepers >= max(1, self._keepers)
        self._keepers = self._keepers or keepers
        return whole and keepers == len(users)

    async def _asked_users(self) -> list[int]:
        """The uids of its processes by the engine's word; [] where it has none."""
        try:
            told = await self._engine.call("top", lambda api: api.top(self.id, "-eo pid,uid"))
            column = told["Titles"].index("UID")
            return [int(process[column]) for process in told["Processes"]]
        except (EngineError, KeyError, ValueError, TypeError):
            return []

    async def _killed_for_memory(self) -> int:
        with contextlib.suppress(EngineError, ValueError):
            _, said = await self._quick(read_inside("oom.sh")[0], self._user.keeper)
            return int(said)
        return 0

    async def _open_scratch(self) -> None:
        places = " ".join(map(str, SCRATCH))
        await self._quick(f"chmod 1777 {places}", "0:0")

    async def _quick(self, script: str, user: str) -> tuple[int, str]:
        return await self._quick_words(("/bin/sh", "-c", f"read -r _; {script}"), user)

    async def _quick_words(self, argv: Sequence[str], user: str) -> tuple[int, str]:
        """Something short of our own: exit code and output."""
        said: list[bytes] = []
        run = Run(self._engine, self.id, Command(tuple(argv), {}, "/"), user)
        try:
            await run.begin()
            await run.follow(_nothing(), lambda _, data: said.append(data))
            code = await run.exit_code()
        finally:
            run.close()
        return code, b"".join(said).decode(errors="replace").strip()


class Run:
    """One exec of the engine's, from its making to its exit code."""

    def __init__(self, engine: Engine, container: str, command: Command, user: str) -> None:
        self._engine = engine
        self._container = container
        self._command = command
        self._user = user
        self._frames = Frames()
        self._early: list[Piece] = []
        self._exec = ""
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
            self._exec = made["Id"]
            self._pipe = pipe = Pipe(api.exec_start(made["Id"], socket=True))
            if self._closed:  # meanwhile it was given up
                pipe.close()
            return pipe

        try:
            pipe = await self._engine.call("run", make)
        except EngineError as error:
            # Also with no answer: it waits for a line that never came.
            raise NeverStarted("run", error.cause, status=error.status) from error
        # Only now: docker-py loses what is printed before it has read the answer's head.
        await pipe.write(b"go\n")

    async def ready(self) -> tuple[str, int]:
        """What the wrapper says before it starts the command; raises NeverStarted."""
        try:
            async for pieces in self._chunks():
                self._early += pieces
                said = b"".join(data for stream, data in self._early if stream == "stdout")
                if b"\n" in said:
                    line, _, rest = said.partition(b"\n")
                    errors = [piece for piece in self._early if piece[0] == "stderr"]
                    self._early = [*errors, ("stdout", rest)] if rest else errors
                    state, killed = line.decode("ascii", "replace").split()
                    return state, int(killed)
        except EngineError as error:
            raise NeverStarted("run", error.cause, status=error.status) from error
        code = await self.exit_code()
        raise NeverStarted("run", NO_SHELL if code in (126, 127) else f"no word of it ({code})")

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
        """Its output until it has ended, even if something else holds the stream open."""
        assert self._pipe is not None
        while True:
            reading = asyncio.ensure_future(self._pipe.read())
            try:
                while not (await asyncio.wait({reading}, timeout=POLL_SEC))[0]:
                    if not (await self._state())["Running"]:
                        return
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
            "run", lambda api: api.exec_inspect(self._exec)
        )
        return state


@cache
def read_inside(*names: str) -> tuple[str, ...]:
    """The texts of programs that run in boxes."""
    folder = Path(__file__).with_name("inside")
    return tuple((folder / name).read_text() for name in names)


async def _nothing() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece


async def remove_container(engine: Engine, ident: str) -> bool:
    """Whether it was us who removed it, running or not; raises EngineError if nobody can."""
    try:
        await engine.call(
            "remove a box", lambda api: api.remove_container(ident, force=True, v=True)
        )
    except EngineError as error:
        # Gone already, or the engine or another of us is at it.
        if error.status in (NOT_FOUND, CONFLICT):
            return False
        raise
    return True
