"""One container: created, kept for one command after another while we live, removed.

Nothing that a command prints or leaves behind is trusted. After each command the engine is asked
which processes are left; before the next one, while no process can interfere, its scratch space is
emptied. A container in which that fails is not used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentrunner.sandboxes.base import Door, Mount, OnOutput
from agentrunner.sandboxes.docker.config import (
    LIFELINE,
    SCRATCH,
    SOCKETS,
    User,
    bind,
    places_between,
    preamble,
)
from agentrunner.sandboxes.docker.engine import Engine, EngineError, remove_container
from agentrunner.sandboxes.docker.exec import Exec, ExecCommand, ExecNeverStarted
from agentrunner.sandboxes.docker.layers import Copies
from agentrunner.sandboxes.docker.owners import owner_labels

MOST_IDLE = 4
"""The most idle containers; beyond it, the one idle longest is removed."""


class ContainerRecipe(Struct, frozen=True):
    """What a container is made from, and for what."""

    config: Mapping[str, Any]
    user: User
    door: Door | None
    identity: tuple[tuple[str, int, int], ...]
    """Identifies the folders that are mounted into it."""
    masked: bool = False
    layers: Copies = field(default_factory=Copies)
    """Layers belong to one command: a container that has any is not used again."""

    @property
    def key(self) -> str:
        """The same for recipes that one container can serve."""
        door = self.door and (str(self.door.folder), sorted(self.door.ports.items()))
        return json.dumps([self.config, self.identity, door], sort_keys=True)


class Pool:
    """The containers of one sandbox."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """`folder` is for lifelines."""
        self._engine = engine
        self._folder = folder
        self._idle: list[tuple[str, Container]] = []
        self._busy: set[Container] = set()

    async def take(self, recipe: ContainerRecipe) -> Container:
        """Return a container for one command; raises EngineError."""
        key = recipe.key
        for entry in self._idle:
            if entry[0] == key:
                self._idle.remove(entry)
                self._busy.add(entry[1])
                return entry[1]
        container = await Container.start(self._engine, recipe.config, recipe.user, self._folder)
        self._busy.add(container)
        try:
            if recipe.door is not None:
                await container.forward(recipe.door)
        except BaseException:
            await self.give_back(recipe, container)
            raise
        return container

    async def give_back(self, recipe: ContainerRecipe, container: Container) -> None:
        """Keep the container for the next command, or remove it if it is not clean."""
        self._busy.discard(container)
        keep = container.clean and not recipe.layers.sources
        dropped = [] if keep else [container]
        if keep:
            self._idle.append((recipe.key, container))
        while len(self._idle) > MOST_IDLE:
            dropped.append(self._idle.pop(0)[1])
        for each in dropped:
            with contextlib.suppress(EngineError):  # the containers end without the engine, too
                await asyncio.shield(each.remove())

    async def pause(self) -> None:
        """Freeze the busy containers."""
        await asyncio.gather(*(container.pause() for container in self._busy))

    async def unpause(self) -> None:
        """Resume the busy containers."""
        await asyncio.gather(*(container.unpause() for container in self._busy))

    async def close(self) -> None:
        """Remove the idle containers; raises EngineError."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(container.remove() for _, container in idle))


PREFIX = ".lifeline-"
BEING_MADE_SEC = 1.0
"""A younger pipe may not have been opened yet."""


class Lifeline:
    """A named pipe that we hold open for writing, and that the sandbox's keeper reads.

    Nothing is ever written. When the last writer is gone, by `cut` or by our death, the keeper
    reaches end of file, and the kernel ends everything in the sandbox with it.
    """

    def __init__(self, folder: Path) -> None:
        """Make it in a folder of ours that the engine can see; raises OSError."""
        self._path = folder / f"{PREFIX}{secrets.token_hex(6)}"
        self._hidden = False
        os.mkfifo(self._path, 0o600)
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            # In the sandbox nobody, not even its owner, can then open it for writing.
            self._path.chmod(0o444)
        except OSError:
            self.hide()
            raise

    @property
    def mount(self) -> Mount:
        """Where the keeper finds it."""
        return Mount(self._path, LIFELINE)

    def hide(self) -> None:
        """Remove its name, which is not needed once the sandbox has it."""
        if not self._hidden:
            self._hidden = True
            with contextlib.suppress(OSError):
                self._path.unlink()

    def cut(self) -> None:
        """End the sandbox. May be called repeatedly."""
        self.hide()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


PROC = Path("/proc")

REMOVAL_LOOKS, REMOVAL_SEC = 20, 0.005
"""How often, and how many seconds apart, to check whether a command's dead processes are gone."""
LATE_START_SEC = 1.0
"""How long a container may take to begin whose engine died and does not tell of it."""
NO_FORWARDER = "the image has none of python3, node and socat, one of which its way out needs"


class Exit(Struct, frozen=True):
    """The end of a command."""

    code: int
    oom: bool
    """Whether the kernel killed it, or one of its processes, for using too much memory."""


class Container:
    """A running container that only we use."""

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
        """Whether no command has been tried in it yet."""
        self.clean = True
        """False once remains of a command may be in it: then it can only be removed."""
        self._engine = engine
        self._lifeline = lifeline
        self._user = user
        self._members = members
        self._script = preamble + "".join(read_inside("oom.sh", "run.sh"))
        self._removed = False
        self._keepers = 0
        """How many processes exist besides the commands; 0 until first counted."""

    @classmethod
    async def start(
        cls, engine: Engine, config: Mapping[str, Any], user: User, folder: Path
    ) -> Container:
        """Create and start a container; for `folder` see Lifeline.

        Raises EngineError. If it fails or is cancelled, no container is left behind.
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
            lifeline = await asyncio.to_thread(Lifeline, folder)
        except OSError as error:
            raise EngineError("create", str(error)) from error
        host = config["HostConfig"]
        mounts = [*host["Mounts"], bind(lifeline.mount, apart=False)]
        body = {
            **config,
            "Labels": {**config["Labels"], **await asyncio.to_thread(owner_labels)},
            "HostConfig": {**host, "Mounts": mounts},
        }
        ident = ""
        try:
            answer = await engine.call("create", lambda api: api.create_container_from_config(body))
            ident = answer["Id"]
            await engine.call("start", lambda api: api.start(ident))
            facts = await engine.call("start", lambda api: api.inspect_container(ident))
        except BaseException as error:
            if ident and not (isinstance(error, EngineError) and error.status is not None):
                # It may still begin, and its keeper would wait for ever at a pipe without a writer.
                await asyncio.shield(asyncio.sleep(LATE_START_SEC))
            await asyncio.shield(asyncio.to_thread(lifeline.cut))
            if ident:
                with contextlib.suppress(EngineError):
                    await remove_container(engine, ident)
            raise
        await asyncio.to_thread(lifeline.hide)
        members = member_list(ident, int(facts["State"]["Pid"]))
        container = cls(engine, ident, lifeline, user, preamble(config), members)
        if between := places_between(config):
            await container._make_writable(between)
        return container

    async def execute(
        self,
        command: ExecCommand,
        stdin: AsyncIterator[bytes],
        on_output: OnOutput,
        *,
        started: Callable[[], None] = lambda: None,
    ) -> Exit:
        """Run a command to its end; afterwards no process of it is left, or `clean` is False.

        `on_output` gets its output, `started` is called just before it can do anything. Raises
        ExecNeverStarted, or EngineError if its end is unknown.
        """
        self.clean = False
        wrapped = ("/bin/sh", "-c", self._script, "box", *command.argv)
        command = replace(command, argv=wrapped)
        run = Exec(self._engine, self.id, command, str(self._user))
        try:
            await run.begin()
            state, killed = await run.ready()
            if state == "unwritable":
                # The engine gave the scratch space the mode of a folder in the image.
                await self._make_writable(list(map(str, SCRATCH)))
                run.close()
                run = Exec(self._engine, self.id, command, str(self._user))
                await run.begin()
                state, killed = await run.ready()
            if state != "clean":
                raise ExecNeverStarted("run", f"the sandbox is {state} after an earlier command")
            self.fresh = False
            started()
            await run.follow(stdin, on_output)
            # Check at once, for speed; this first check may be too early.
            code, empty = await asyncio.gather(run.exit_code(), self._is_empty())
        finally:
            run.close()
        self.clean = empty or await self._becomes_empty()
        oom = code != 0 and await self._killed_for_memory() > killed
        return Exit(code, oom)

    async def terminate(self, signal: str = "TERM") -> None:
        """Send a signal to every process of the command, which may ignore it."""
        script = f'trap "" {signal}; kill -{signal} -1'
        with contextlib.suppress(EngineError):
            await self._run_script(script, str(self._user))

    async def forward(self, door: Door) -> None:
        """Connect the ports of its loopback to the door's sockets; raises EngineError."""
        words = [f"{port}:{SOCKETS / name}" for port, name in door.ports.items()]
        script, python, node = read_inside("door.sh", "forward.py", "forward.js")
        argv = ("/bin/sh", "-c", script, "door", python, node, *words)
        code, output = await self._run_argv(argv, self._user.keeper)
        if code != 0:
            raise EngineError("door", NO_FORWARDER if code == 3 else output or f"exit code {code}")

    async def pause(self) -> None:
        """Freeze all processes in it."""
        await self._engine.call("pause", lambda api: api.pause(self.id))

    async def unpause(self) -> None:
        """Resume all processes in it."""
        await self._engine.call("unpause", lambda api: api.unpause(self.id))

    async def remove(self) -> None:
        """Kill everything in it and remove it; raises EngineError if the engine cannot.

        The container ends in any case. May be called repeatedly.
        """
        self.clean = False
        removed, self._removed = self._removed, True
        try:
            if not removed and not self._engine.silent:
                await remove_container(self._engine, self.id)
        finally:
            self._lifeline.cut()

    async def _becomes_empty(self) -> bool:
        """Whether it is empty once the kernel has reaped the dead, which takes a moment."""
        for _ in range(REMOVAL_LOOKS):
            if await self._is_empty():
                return True
            await asyncio.sleep(REMOVAL_SEC)
        return False

    async def _is_empty(self) -> bool:
        """Whether only the keeper processes are left, according to the kernel or the engine."""
        users = users_in(self._members) if self._members else None
        if users is None or self._user.keeper_uid not in users:  # the sandbox maps to other uids
            users = await self._users_by_engine()
        keepers = sum(user != self._user.uid for user in users)
        whole = keepers >= max(1, self._keepers)
        self._keepers = self._keepers or keepers
        return whole and keepers == len(users)

    async def _users_by_engine(self) -> list[int]:
        """Return the uids of its processes as the engine reports them; [] if it cannot."""
        try:
            reply = await self._engine.call("top", lambda api: api.top(self.id, "-eo pid,uid"))
            column = reply["Titles"].index("UID")
            return [int(process[column]) for process in reply["Processes"]]
        except (EngineError, KeyError, ValueError, TypeError):
            return []

    async def _killed_for_memory(self) -> int:
        with contextlib.suppress(EngineError, ValueError):
            script = f'{read_inside("oom.sh")[0]}oom_kills; echo "$killed"'
            _, output = await self._run_script(script, self._user.keeper)
            return int(output)
        return 0

    async def _make_writable(self, places: list[str]) -> None:
        """Make these folders writable for the command's user; the engine has made them as root."""
        await self._run_script(f"chmod 1777 {shlex.join(places)}", "0:0")

    async def _run_script(self, script: str, user: str) -> tuple[int, str]:
        return await self._run_argv(("/bin/sh", "-c", f"read -r _; {script}"), user)

    async def _run_argv(self, argv: Sequence[str], user: str) -> tuple[int, str]:
        """Run a short command of our own; return its exit code and output."""
        chunks: list[bytes] = []
        run = Exec(self._engine, self.id, ExecCommand(tuple(argv), {}, "/"), user)
        try:
            await run.begin()
            await run.follow(_nothing(), lambda _, data: chunks.append(data))
            code = await run.exit_code()
        finally:
            run.close()
        return code, b"".join(chunks).decode(errors="replace").strip()


@cache
def read_inside(*names: str) -> tuple[str, ...]:
    """Return the texts of programs that run in sandboxes."""
    folder = Path(__file__).with_name("inside")
    return tuple((folder / name).read_text() for name in names)


async def _nothing() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece


def member_list(container: str, first: int, proc: Path = PROC) -> Path | None:
    """Return the file that lists the processes of a container, whose first process is `first`.

    None if the engine has other processes than this machine, or the cgroups are invisible: then the
    number may be any process's.

    The engine starts `ps` to answer the same question, which takes longer than most commands.
    """
    with contextlib.suppress(OSError):
        for place in _groups(first, proc):
            file = place / "cgroup.procs"
            if container in place.name and str(first) in file.read_text("ascii").split():
                return file
    return None


def users_in(members: Path, proc: Path = PROC) -> list[int] | None:
    """Return the uid of each process in a list; None if it cannot be read."""
    uids = []
    try:
        pids = members.read_text("ascii").split()
    except OSError:
        return None
    for pid in pids:
        try:
            status = (proc / pid / "status").read_text("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            return None
        found = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
        if found is None:
            return None
        uids.append(int(found[1]))
    return uids


def _groups(pid: int, proc: Path) -> Iterator[Path]:
    """Yield where the cgroups of a process are mounted, if they are mounted here."""
    mounted: dict[str, Path] = {}
    for line in (proc / "self" / "mounts").read_text("utf-8", "replace").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind in ("cgroup", "cgroup2"):
            for name in options.split(",") if kind == "cgroup" else ("",):
                mounted.setdefault(name, Path(place))
    for line in (proc / str(pid) / "cgroup").read_text("utf-8", "replace").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name in mounted:
                yield mounted[name] / path.lstrip("/")


def remove_dead_lifelines(folder: Path, *, now: float) -> None:
    """Remove the pipes in a folder whose owner was killed before a sandbox had them.

    `now` is the system's time, in seconds.
    """
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            known = path.lstat()
            if stat.S_ISFIFO(known.st_mode) and now - known.st_ctime > BEING_MADE_SEC:
                _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # Without a writer the read returns end of file; with a silent writer it would block.
        if os.read(end, 1) == b"":
            path.unlink()
    except BlockingIOError:
        pass
    finally:
        os.close(end)
