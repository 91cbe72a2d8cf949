"""Where the gateway process listens: Unix sockets, and listeners made inside a sandbox.

A run's folder has a long path, and the address of a Unix socket is limited to 107 bytes: sockets
are bound through the descriptor of their folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path

Close = Callable[[], Awaitable[None]]
Serve = Callable[[socket.socket], Awaitable[Close]]
"""Begins to accept on a listening socket; its result ends that and closes the socket."""

BACKLOG = 128
LINE_LIMIT = 4096


class Listener:
    """A Unix socket in a folder, replacing any other of that name."""

    def __init__(self, folder: Path, name: str, mode: int) -> None:
        """Listen from here on, connectable by the users that `mode` permits; raises OSError."""
        self._folder = folder
        self._name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._inode = self._bind(mode)
        except OSError:
            self.socket.close()
            raise

    def _bind(self, mode: int) -> int:
        # It is bound beside its place and renamed into it: so there is always a listening socket.
        fresh = f".{self._name}"
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)
            self.socket.bind(f"/proc/self/fd/{folder}/{fresh}")
            os.chmod(fresh, mode, dir_fd=folder)
            self.socket.listen(BACKLOG)
            os.rename(fresh, self._name, src_dir_fd=folder, dst_dir_fd=folder)
            return os.stat(self._name, dir_fd=folder).st_ino
        finally:
            os.close(folder)

    def close(self) -> None:
        """Stop listening; remove the file unless another process has put its own there."""
        self.socket.close()
        path = self._folder / self._name
        with contextlib.suppress(OSError):
            if path.stat().st_ino == self._inode:
                path.unlink()


def closed_to_others(folder: Path) -> bool:
    """Whether a folder above this one keeps everybody except its owner out."""
    return any(not parent.stat().st_mode & 0o011 for parent in folder.resolve().parents)


class Control:
    """Takes over listeners from a sandbox: a JSON line `{"socket": NAME}` with each.

    It answers each with a line, `{"taken": NAME}` or `{"error": TEXT}`. A connection may bring
    several, and lasts as long as its sandbox: when it ends, they are closed.
    """

    def __init__(self, services: Mapping[str, Serve]) -> None:
        self._services = services
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, listener: socket.socket) -> None:
        """Begin to accept connections that bring listeners."""
        self._start(self._accept(listener))

    async def close(self) -> None:
        """Accept no more connections, and close what was taken over."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listener)
            if _sees_our_processes(client):
                self._start(self._serve_client(client))
            else:
                client.close()

    async def _serve_client(self, client: socket.socket) -> None:
        """Take over what one connection brings, until it ends."""
        taken: list[Close] = []
        files: deque[int] = deque()
        pending = b""
        try:
            while len(pending) < LINE_LIMIT:
                await _readable(client)
                data, handed, _, _ = socket.recv_fds(client, LINE_LIMIT, 16)
                files.extend(handed)
                if not data:
                    break
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    answer = await self._take(line, files.popleft() if files else -1, taken)
                    with contextlib.suppress(BlockingIOError):  # nobody reads our answers
                        client.send(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass  # the sender is gone
        finally:
            client.close()
            for fd in files:
                os.close(fd)
            for close in taken:
                await close()

    async def _take(self, line: bytes, fd: int, taken: list[Close]) -> dict[str, str]:
        try:
            listener = socket.socket(fileno=fd)
        except (OSError, ValueError):
            if fd >= 0:
                os.close(fd)
            return {"error": "no listener came with it"}
        try:
            name = json.loads(line)["socket"]
            serve = self._services[name]
            if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                raise ValueError("it does not listen")
            listener.setblocking(False)
            taken.append(await serve(listener))
        except (KeyError, TypeError, ValueError, OSError) as error:
            listener.close()
            return {"error": f"{type(error).__name__}: {error}"}
        return {"taken": name}


def _sees_our_processes(client: socket.socket) -> bool:
    """Whether the client connected from our own PID namespace.

    If the folder is bound into a container, a worker with our uid finds the socket there.
    """
    pid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    line = next((line for line in status.splitlines() if line.startswith("NSpid:")), "")
    return len(line.split()) == 2


async def _readable(client: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(client, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(client)
