"""Sockets in a run's folder, and listeners that a sandbox hands over from inside of a box."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agentrunner.gateway.listeners import Close, Control, Listener, closed_to_others


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """A folder whose path is longer than an address of a Unix socket may be."""
    folder = tmp_path.joinpath(*["a-run-in-a-deep-folder"] * 8)
    folder.mkdir(parents=True)
    assert len(str(folder)) > 107
    return folder


def connect(folder: Path, name: str) -> socket.socket:
    """A connection, by a path short enough."""
    fd = os.open(folder, os.O_RDONLY)
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(f"/proc/self/fd/{fd}/{name}")
    except OSError:
        client.close()
        raise
    finally:
        os.close(fd)
    return client


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_socket_in_a_deep_folder_listens_and_goes(deep: Path) -> None:
    listener = Listener(deep, "proxy.sock", 0o666)
    connect(deep, "proxy.sock").close()
    assert [path.name for path in deep.iterdir()] == ["proxy.sock"]
    assert stat.S_IMODE((deep / "proxy.sock").stat().st_mode) == 0o666
    listener.close()
    assert list(deep.iterdir()) == []


def test_a_stale_socket_is_replaced(deep: Path) -> None:
    with Listener(deep, "proxy.sock", 0o600).socket:
        pass  # as a kill leaves it
    with pytest.raises(ConnectionRefusedError):
        connect(deep, "proxy.sock")
    listener = Listener(deep, "proxy.sock", 0o600)
    connect(deep, "proxy.sock").close()
    listener.close()
    assert list(deep.iterdir()) == []


def test_a_socket_that_another_process_has_replaced_stays(deep: Path) -> None:
    old = Listener(deep, "proxy.sock", 0o600)
    new = Listener(deep, "proxy.sock", 0o600)
    old.close()
    connect(deep, "proxy.sock").close()
    new.close()


def test_half_a_socket_of_a_crash_is_no_obstacle(deep: Path) -> None:
    (deep / ".proxy.sock").touch()
    Listener(deep, "proxy.sock", 0o600).close()
    assert list(deep.iterdir()) == []


def test_without_its_folder_there_is_no_socket(tmp_path: Path) -> None:
    before = descriptors()
    with pytest.raises(OSError, match="none"):
        Listener(tmp_path / "none", "proxy.sock", 0o600)
    assert descriptors() == before


def test_a_folder_is_closed_by_any_folder_above_it(tmp_path: Path) -> None:
    folder = tmp_path / "closed/open/sock"
    folder.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    assert closed_to_others(folder)
    assert not closed_to_others(Path("/usr/bin"))


class Service:
    """Takes listeners, and notes which are closed again."""

    def __init__(self) -> None:
        self.open: list[int] = []

    async def serve(self, listener: socket.socket) -> Close:
        port = listener.getsockname()[1]
        self.open.append(port)

        async def close() -> None:
            listener.close()
            self.open.remove(port)

        return close


@asynccontextmanager
async def control(folder: Path) -> AsyncIterator[tuple[socket.socket, Service]]:
    """A connection to a control socket that knows `proxy.sock`."""
    service = Service()
    serving = Control({"proxy.sock": service.serve})
    listener = Listener(folder, "control.sock", 0o600)
    serving.serve(listener.socket)
    client = connect(folder, "control.sock")
    client.setblocking(False)
    try:
        yield client, service
    finally:
        client.close()
        await serving.close()
        listener.close()
        assert service.open == []


async def answer(client: socket.socket) -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        data = await asyncio.get_running_loop().sock_recv(client, 1)
        assert data, "the connection has ended"
        line += data
    said: dict[str, Any] = json.loads(line)
    return said


async def until(condition: Any) -> None:
    while not condition():  # noqa: ASYNC110 - the loop itself brings it about
        await asyncio.sleep(0)


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


TAKE = b'{"socket": "proxy.sock"}\n'


async def test_several_listeners_come_and_go_with_their_connection(deep: Path) -> None:
    async with control(deep) as (client, service):
        ports = []
        for _ in range(3):
            with listening() as made:
                ports.append(made.getsockname()[1])
                socket.send_fds(client, [TAKE], [made.fileno()])
            assert await answer(client) == {"taken": "proxy.sock"}
        assert service.open == ports
        client.close()
        await until(lambda: service.open == [])


async def test_a_line_in_two_pieces_is_one(deep: Path) -> None:
    async with control(deep) as (client, _):
        with listening() as made:
            socket.send_fds(client, [TAKE[:9]], [made.fileno()])
        client.send(TAKE[9:])
        assert await answer(client) == {"taken": "proxy.sock"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"socket": "other.sock"}\n', "KeyError"),
        (b'{"socket": ["proxy.sock"]}\n', "TypeError"),
        (b"[]\n", "TypeError"),
        (b"nonsense\n", "JSONDecodeError"),
        (b"\xff\n", "UnicodeDecodeError"),
        (b"\n", "JSONDecodeError"),
    ],
)
async def test_nonsense_is_answered_and_harms_nothing(deep: Path, line: bytes, said: str) -> None:
    async with control(deep) as (client, _):
        with listening() as made:
            client.send(b"{}\n")
            await answer(client)
            before = descriptors()
            socket.send_fds(client, [line], [made.fileno()])
            assert said in (await answer(client))["error"]
            assert descriptors() == before
            socket.send_fds(client, [TAKE], [made.fileno()])
        assert await answer(client) == {"taken": "proxy.sock"}


async def test_what_is_no_listener_is_not_taken(deep: Path) -> None:
    async with control(deep) as (client, service):
        client.send(TAKE)
        assert (await answer(client))["error"] == "no listener came with it"
        with (deep / "file").open("wb") as file:
            socket.send_fds(client, [TAKE], [file.fileno()])
        assert (await answer(client))["error"] == "no listener came with it"
        with socket.socket() as idle:
            socket.send_fds(client, [TAKE], [idle.fileno()])
        assert "does not listen" in (await answer(client))["error"]
        assert service.open == []


async def test_a_line_without_end_ends_the_connection(deep: Path) -> None:
    async with control(deep) as (client, _):
        client.send(b"x" * 5000)
        with pytest.raises(ConnectionResetError):
            await asyncio.get_running_loop().sock_recv(client, 1)


FROM_A_CONTAINER = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
try:
    client.sendall(b"{}\\n")
    print(client.recv(100))
except OSError:
    print("turned away")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a PID namespace at once")
async def test_nobody_inside_of_a_container_is_heard(tmp_path: Path) -> None:
    async with control(tmp_path):
        for namespace, said in (("--pid", "turned away"), ("--uts", "b'{\"error")):
            # In a thread: the control socket is served by this one.
            asked = await asyncio.to_thread(
                subprocess.run,
                ["unshare", namespace, "--fork", sys.executable, "-c", FROM_A_CONTAINER,
                 str(tmp_path / "control.sock")],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert asked.stdout.startswith(said), asked
