"""The gateway process: how it starts, what it keeps to itself, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.errors import InfraError
from agentrunner.gateway.egress_log import read_egress
from agentrunner.gateway.gateway_process import companion, running
from agentrunner.gateway.order import GatewayOrder, Upstream
from tests.kit.greeter import echo

SECRET = "sk-secret-0123456789abcdef"


@pytest.fixture
def order(tmp_path: Path) -> GatewayOrder:
    # Longer than an address of a Unix socket may be.
    run = tmp_path.joinpath(*["a-run-in-a-deep-folder"] * 6)
    run.mkdir(parents=True)
    return GatewayOrder(
        sockets=run / "sock",
        egress_log=run / "egress.jsonl",
        usage_log=run / "usage.jsonl",
        label="worker-1",
        allow=(),
        secrets={"API_KEY": SECRET},
    )


async def dial(order: GatewayOrder, name: str = "proxy.sock") -> tuple[StreamReader, StreamWriter]:
    folder = os.open(order.sockets, os.O_RDONLY)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/{name}")
    finally:
        os.close(folder)


async def ask(order: GatewayOrder, target: str) -> bytes:
    reader, writer = await dial(order)
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    try:
        return await reader.read()
    finally:
        writer.close()


@asynccontextmanager
async def allowing(order: GatewayOrder) -> AsyncIterator[GatewayOrder]:
    """The order with a server that may be reached."""
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield replace(order, allow=(f"model.test:{port}@127.0.0.1",))


async def through(order: GatewayOrder) -> tuple[StreamReader, StreamWriter]:
    assert order.allow
    target = order.allow[0].partition("@")[0]
    reader, writer = await dial(order)
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nhello".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert await reader.readexactly(5) == b"hello"
    return reader, writer


async def test_it_listens_before_the_block_and_is_gone_after_it(order: GatewayOrder) -> None:
    async with allowing(order) as order:
        async with running(order, os.environ) as process:
            modes = {path.name: path.stat().st_mode & 0o777 for path in order.sockets.iterdir()}
            # The forwarder of a container has another uid; the folders above are closed.
            assert modes == {"proxy.sock": 0o666, "control.sock": 0o600}
            assert order.sockets.stat().st_mode & 0o777 == 0o711
            reader, writer = await through(order)
            began = time.monotonic()
        assert time.monotonic() - began < 2, "an open tunnel held it up"
        assert await reader.read() == b""
        writer.close()
        assert list(order.sockets.iterdir()) == []
        assert not Path(f"/proc/{process.pid}").exists()
        assert process.complaints == ""
        (use,) = read_egress(order.egress_log)
        assert (use.host, use.allowed, use.bytes) == ("model.test", 1, 10)


async def test_a_crash_leaves_sockets_that_the_next_one_replaces(order: GatewayOrder) -> None:
    async with allowing(order) as order:
        async with running(order, os.environ) as process:
            reader, writer = await through(order)
            process.kill()
            assert await reader.read() == b""
            writer.close()
        assert (order.sockets / "proxy.sock").exists()
        with pytest.raises(ConnectionRefusedError):
            await dial(order)
        async with running(order, os.environ):
            _, writer = await through(order)
            writer.close()
        assert [use.allowed for use in read_egress(order.egress_log)] == [2]


async def test_its_end_in_between_is_told(order: GatewayOrder) -> None:
    async def ended() -> None:
        async with running(order, os.environ) as process:
            os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(InfraError, match="ended while it was needed"):
        await ended()


async def test_an_error_of_the_block_goes_before_its_end(order: GatewayOrder) -> None:
    async def fails() -> None:
        async with running(order, os.environ) as process:
            os.kill(process.pid, signal.SIGKILL)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()


async def test_one_that_cannot_start_is_told_in_its_words(order: GatewayOrder) -> None:
    order.sockets.touch()
    with pytest.raises(InfraError, match=r"did not start: gateway: .*sock") as told:
        async with running(order, os.environ):
            pass
    assert told.value.code == "gateway"


@pytest.mark.parametrize(
    "text", [b"", b"x", b"5\n{}", b"2\n{}", b"7\nSECRETS", b"-1\n", b"99999999999\n", b"3\n[1]"]
)
def test_an_order_that_cannot_be_read_is_refused_and_not_repeated(text: bytes) -> None:
    command = [sys.executable, "-m", "agentrunner.gateway"]
    ended = subprocess.run(command, input=text, capture_output=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.startswith(b"gateway: its order cannot be read")
    assert b"SECRETS" not in ended.stderr and ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("allow", ["nonsense", "10.0.0.1:443"])
async def test_a_host_that_cannot_be_read_is_told(order: GatewayOrder, allow: str) -> None:
    with pytest.raises(InfraError, match=r"gateway: .*names no") as told:
        async with running(replace(order, allow=(allow,)), os.environ):
            pass
    assert "Traceback" not in told.value.message


async def test_it_keeps_its_order_to_itself(order: GatewayOrder) -> None:
    environ = {"PATH": "/bin", "API_KEY": SECRET, "HTTPS_PROXY": "http://proxy.test:3128"}
    upstream = Upstream("openai", "http://127.0.0.1:9/v1", SECRET, "placeholder")
    async with running(replace(order, upstream=upstream), environ) as process:
        facts = Path(f"/proc/{process.pid}")
        assert SECRET.encode() not in (facts / "cmdline").read_bytes()
        assert (facts / "environ").read_bytes() == b"HTTPS_PROXY=http://proxy.test:3128\0"
        limits = (facts / "limits").read_text().splitlines()
        assert any(line.split()[:6] == "Max core file size 0 0".split() for line in limits)
        assert {path.name for path in order.sockets.iterdir()} >= {"gateway.sock", "proxy.sock"}
        await ask(order, f"{SECRET}.evil.test:443")
    logs = {order.egress_log, order.usage_log}
    assert {path for path in order.sockets.parent.iterdir() if path.is_file()} == logs
    for path in logs:
        assert SECRET not in path.read_text(), path


def test_no_process_of_its_user_reads_its_memory() -> None:
    script = """if True:
        import ctypes
        from agentrunner.gateway.main import keep_secret
        keep_secret()
        print(ctypes.CDLL(None).prctl(3))  # PR_GET_DUMPABLE
    """
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"0\n"


async def test_without_a_model_no_web_framework_is_loaded(order: GatewayOrder) -> None:
    async with running(order, os.environ) as process:
        assert "/aiohttp/" not in Path(f"/proc/{process.pid}/maps").read_text()
    upstream = Upstream("openai", "http://127.0.0.1:9/v1", SECRET, "placeholder")
    async with running(replace(order, upstream=upstream), os.environ) as process:
        assert "/aiohttp/" in Path(f"/proc/{process.pid}/maps").read_text()


async def test_a_host_asked_for_again_and_again_is_reported_once(order: GatewayOrder) -> None:
    async with running(replace(order, ask_after=2), os.environ) as process:
        for _ in range(4):
            assert b" 403 " in await ask(order, "needed.test:443")
    assert process.stops == ["needed.test:443"]


async def test_no_client_can_end_it(order: GatewayOrder) -> None:
    async with running(order, os.environ) as process:
        for name in ("proxy.sock", "control.sock"):
            for said in (b"", b"\0" * 100_000, b"\r\n" * 1000, b'{"socket": 1}\n' * 100, b"{}\n"):
                _, writer = await dial(order, name)
                writer.write(said)
                writer.transport.abort()
        assert b"not_listed" in await ask(order, "evil.test:443")
    assert process.complaints == ""


def test_it_ends_with_whoever_started_it(order: GatewayOrder) -> None:
    how = companion(order, os.environ)
    script = f"""if True:
        import subprocess, sys
        child = subprocess.Popen({how.argv!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdin.write(b"{len(how.stdin)}\\n" + {how.stdin!r})
        child.stdin.flush()
        print(child.stdout.readline().decode() + str(child.pid), flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert json.loads(parent.stdout.readline()) == {"event": "ready"}
        process = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    ended, _, _ = select.select([process], [], [], 10)
    os.close(process)
    assert ended and list(order.sockets.iterdir()) == []
