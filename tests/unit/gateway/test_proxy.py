"""The proxy on sockets of this process: who gets through, who does not, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentrunner.config.hosts import parse_host
from agentrunner.gateway.dial import BUFFER, Address, Direct
from agentrunner.gateway.egress_log import EgressLog
from agentrunner.gateway.order import GatewayOrder
from agentrunner.gateway.proxy import Proxy, ProxyLimits, make_proxy
from tests.kit.examples import examples
from tests.kit.greeter import echo

MB = 1 << 20
HANG = ("a DNS that never answers",)


@dataclass
class Bench:
    """A proxy that listens, and a server that it may reach as model.test."""

    path: Path
    port: int
    log: Path
    proxy: Proxy
    asked: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)

    async def open(self, head: bytes | str) -> tuple[StreamReader, StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        if isinstance(head, str):
            head = f"CONNECT {head} HTTP/1.1\r\nHost: {head}\r\n\r\n".encode()
        writer.write(head)
        return reader, writer

    async def ask(self, head: bytes | str) -> str:
        """The whole answer to a request that is refused."""
        reader, writer = await self.open(head)
        try:
            return (await reader.read()).decode()
        finally:
            writer.close()

    async def reach(self, head: bytes | str = "") -> tuple[StreamReader, StreamWriter]:
        """A tunnel to the server."""
        reader, writer = await self.open(head or f"model.test:{self.port}")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        return reader, writer

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    async def closed(self, count: int = 1) -> dict[str, Any]:
        """The line of the last tunnel, when so many have ended."""
        while True:
            found = [line for line in self.lines() if line["decision"] == "closed"]
            if len(found) >= count:
                return found[-1]
            await asyncio.sleep(0)


@asynccontextmanager
async def bench(
    folder: Path,
    *allow: str,
    answer: Sequence[str] = (),
    server: Any = echo,
    limits: ProxyLimits | None = None,
    ask_after: int = 0,
    log: Path | None = None,
) -> AsyncIterator[Bench]:
    """`allow` is added to the entry of model.test; PORT in it is the server's."""
    listening = await asyncio.start_server(server, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    path, log = folder / "proxy.sock", log or folder / "egress.jsonl"
    path.unlink(missing_ok=True)
    asked: list[str] = []
    stops: list[str] = []

    async def resolve(name: str, port: int) -> list[Address]:
        asked.append(f"{name}:{port}")
        if answer is HANG:
            await asyncio.Event().wait()
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [ip_address(each) for each in answer]

    proxy = Proxy(
        [parse_host(text.replace("PORT", str(port))) for text in allow]
        + [parse_host(f"model.test:{port}@127.0.0.1")],
        EgressLog(log, "test", lambda: "now"),
        setting="task.test.network",
        ask_after=ask_after,
        ask=stops.append,
        way_out=Direct(resolve),
        limits=limits,
    )
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))
        unix.listen()
        unix.setblocking(False)
        await proxy.serve(unix)
        async with listening:
            try:
                yield Bench(path, port, log, proxy, asked, stops)
            finally:
                await proxy.close()


async def test_a_listed_host_is_reached_and_counted(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        reader, writer = await at.reach()
        assert at.lines()[-1]["decision"] == "allowed", "it is on disk before a byte goes through"
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        closed = await at.closed()
        assert (closed["host"], closed["port"]) == ("model.test", at.port)
        assert (closed["address"], closed["up"], closed["down"]) == ("127.0.0.1", 5, 5)
        assert at.asked == []


async def test_what_comes_with_the_head_goes_through_too(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        head = f"CONNECT Model.Test.:{at.port} HTTP/1.0\r\n\r\nearly".encode()
        reader, writer = await at.reach(head)
        assert await reader.readexactly(5) == b"early"
        writer.close()


async def test_a_client_that_says_no_more_is_still_answered(tmp_path: Path) -> None:
    async def late(reader: StreamReader, writer: StreamWriter) -> None:
        asked = await reader.read()
        writer.write(b"all of " + asked)
        writer.close()

    async with bench(tmp_path, server=late) as at:
        reader, writer = await at.reach()
        writer.write(b"it")
        writer.write_eof()
        assert await reader.read() == b"all of it"
        writer.close()


async def test_a_server_that_says_no_more_still_hears(tmp_path: Path) -> None:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def early(reader: StreamReader, writer: StreamWriter) -> None:
        writer.write(b"bye")
        writer.write_eof()
        heard.set_result(await reader.read())
        writer.close()

    async with bench(tmp_path, server=early) as at:
        reader, writer = await at.reach()
        assert await reader.read() == b"bye"
        writer.write(b"wait")
        writer.close()
        assert await heard == b"wait"


async def test_who_reads_slowly_slows_down_who_writes(tmp_path: Path) -> None:
    written = 0

    async def fast(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal written
        while written < 48 * MB:
            writer.write(bytes(BUFFER))
            written += BUFFER
            await writer.drain()
        writer.close()

    async with bench(tmp_path, server=fast) as at:
        reader, writer = await at.reach()
        read = furthest = 0
        while data := await reader.read(16 << 10):
            read += len(data)
            furthest = max(furthest, written - read)
            for _ in range(5):  # the others could go ahead
                await asyncio.sleep(0)
        writer.close()
        assert read == written and furthest < 16 * MB


async def test_a_host_that_is_not_listed_is_refused_with_the_way_out(tmp_path: Path) -> None:
    async with bench(tmp_path, "good.test:443", "*.wide.test:443", answer=["8.8.8.8"]) as at:
        for target in (
            "evil.test:443", "good.test:80", "good.test.evil.test:443", "evilgood.test:443",
            "wide.test:443", "www.wide.test:22", "evilwide.test:443", f"x.model.test:{at.port}",
        ):  # fmt: skip
            answer = await at.ask(target)
            assert answer.startswith(f"HTTP/1.1 403 AgentRunner: {target} is not on the list")
            assert "\r\nx-agentrunner-error: not_listed\r\n" in answer
            assert f"\nAgentRunner: {target} is not on the list" in answer
            assert f'to allow it: task.test.network: ["{target}"]' in answer
            last = at.lines()[-1]
            assert (f"{last['host']}:{last['port']}", last["reason"]) == (target, "not_listed")
        assert at.asked == [], "a name was looked up that is not allowed"


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.5", "169.254.169.254", "::1"])
async def test_a_listed_name_that_leads_inside_is_refused(tmp_path: Path, address: str) -> None:
    async with bench(tmp_path, "rebound.test:PORT", answer=[address], ask_after=1) as at:
        answer = await at.ask(f"rebound.test:{at.port}")
        entry = f"rebound.test:{at.port}@{address}"
        assert answer.startswith("HTTP/1.1 403 ")
        assert f"leads to {address}" in answer and f'["{entry}"]' in answer
        last = at.lines()[-1]
        assert (last["decision"], last["reason"], last["address"]) == (
            "refused", "not_public", address,
        )  # fmt: skip
        assert at.stops == [entry]


async def test_a_name_without_an_address_is_a_failure(tmp_path: Path) -> None:
    async with bench(tmp_path, "gone.test:443", ask_after=1) as at:
        answer = await at.ask("gone.test:443")
        assert answer.startswith("HTTP/1.1 502 ")
        assert "x-agentrunner-error: unresolved" in answer and "not known" in answer
        assert at.lines()[-1]["decision"] == "failed"
        assert at.stops == []


async def test_a_host_that_does_not_answer_is_a_failure(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    async with bench(tmp_path, f"down.test:{port}@127.0.0.1") as at:
        answer = await at.ask(f"down.test:{port}")
        assert answer.startswith("HTTP/1.1 502 ") and "unreachable" in answer
        assert at.lines()[-1]["decision"] == "failed"


async def test_a_look_up_that_hangs_is_given_up(tmp_path: Path) -> None:
    limits = ProxyLimits(dial_sec=0.05)
    async with bench(tmp_path, "slow.test:443", answer=HANG, limits=limits) as at:
        answer = await at.ask("slow.test:443")
        assert at.asked == ["slow.test:443"] and "it took too long" in answer


@pytest.mark.parametrize(
    ("head", "status", "reason"),
    [
        (b"GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n", 405, "plain_http"),
        (b"nonsense\r\n\r\n", 400, "malformed"),
        (b"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1:443\r\n\r\n", 403, "address"),
        (b"CONNECT a@b.test:443 HTTP/1.1\r\nHost: b.test\r\n\r\n", 403, "not_a_name"),
        (b"X: " + b"x" * (17 << 10) + b"\r\n\r\n", 431, "too_large"),
        (b"x" * MB, 431, "too_large"),
    ],
)
async def test_each_refusal_is_a_sentence_and_a_line(
    tmp_path: Path, head: bytes, status: int, reason: str
) -> None:
    async with bench(tmp_path) as at:
        answer = await at.ask(head)
        assert answer.startswith(f"HTTP/1.1 {status} ")
        assert f"x-agentrunner-error: {reason}" in answer
        assert "AgentRunner: " in answer
        assert (at.lines()[-1]["decision"], at.lines()[-1]["reason"]) == ("refused", reason)


async def test_a_head_that_never_ends_is_cut_off(tmp_path: Path) -> None:
    async with bench(tmp_path, limits=ProxyLimits(head_sec=0.05)) as at:
        assert "x-agentrunner-error: too_slow" in await at.ask(b"CONNECT model.test:")


async def test_a_client_that_goes_away_leaves_no_line(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        _, writer = await at.open(b"CONNECT model.test:")
        writer.close()
        assert "not_listed" in await at.ask("evil.test:443")
        assert len(at.lines()) == 1


async def test_too_many_at_a_time_are_turned_away(tmp_path: Path) -> None:
    async with bench(tmp_path, limits=ProxyLimits(connections=2)) as at:
        first, second = await at.reach(), await at.reach()
        assert "x-agentrunner-error: too_many" in await at.ask(f"model.test:{at.port}")
        turned_away = [await at.open(b"") for _ in range(4)]
        ends = await asyncio.gather(*(reader.read() for reader, _ in turned_away))
        assert any(end == b"" for end in ends), "not even a no for the rest"
        for _, writer in (first, *turned_away):
            writer.close()
        await at.closed()
        third = await at.reach()
        for _, writer in (second, third):
            writer.close()


async def test_a_tunnel_where_nothing_moves_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    clock, ahead = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: clock() + ahead[0])
    async with bench(tmp_path, limits=ProxyLimits(idle_sec=1000)) as at:
        reader, writer = await at.reach()
        for _ in range(3):  # longer than it may be idle
            ahead[0] += 900
            writer.write(b"x")
            assert await reader.read(1) == b"x"
        ahead[0] += 1001
        assert await reader.read() == b""
        assert (await at.closed())["seconds"] >= 3701
        writer.close()


async def test_the_end_of_the_proxy_ends_open_tunnels_and_counts_them(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        reader, writer = await at.reach()
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
    with pytest.raises(asyncio.IncompleteReadError):
        await reader.readexactly(1)
    writer.close()
    assert (at.lines()[-1]["decision"], at.lines()[-1]["up"]) == ("closed", 5)


async def test_a_host_refused_again_and_again_is_asked_for_once(tmp_path: Path) -> None:
    async with bench(tmp_path, ask_after=3) as at:
        for stops in ([], [], ["a.test:443"], ["a.test:443"]):
            for target in ("127.0.0.1:443", "nonsense", "a.test:443"):
                await at.ask(target)
            assert at.stops == stops
        for _ in range(3):
            await at.ask("b.test:443")
        assert at.stops == ["a.test:443", "b.test:443"]


async def test_a_decision_that_cannot_be_written_down_is_no(tmp_path: Path) -> None:
    async with bench(tmp_path, log=Path("/dev/full")) as at:
        answer = await at.ask(f"model.test:{at.port}")
        assert answer.startswith("HTTP/1.1 503 ") and "x-agentrunner-error: no_log" in answer
        assert (await at.ask("evil.test:443")).startswith("HTTP/1.1 403 ")


async def test_a_secret_in_a_name_is_in_no_file_and_no_question(tmp_path: Path) -> None:
    stops: list[str] = []
    order = GatewayOrder(
        tmp_path, tmp_path / "log", tmp_path / "usage", allow=(), ask_after=1,
        secrets={"API_KEY": "sk-Live-0123456789abcdef"},
    )  # fmt: skip
    proxy = make_proxy(order, stops.append)
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "proxy.sock"))
        unix.listen()
        unix.setblocking(False)
        await proxy.serve(unix)
        at = Bench(tmp_path / "proxy.sock", 0, tmp_path / "log", proxy)
        await at.ask("sk-Live-0123456789abcdef.evil.test:443")
        await at.ask("user:sk-Live-0123456789abcdef@evil.test:443")
        await proxy.close()
    said = (tmp_path / "log").read_text() + str(stops)
    assert "0123456789" not in said
    assert [line["host"] for line in at.lines()] == [
        "[API_KEY redacted].evil.test", "user:[API_KEY redacted]@evil.test",
    ]  # fmt: skip


WORDS = st.sampled_from(
    ["CONNECT ", "GET ", " ", "\r\n", "\r\n\r\n", ":", ":443", "PORT", "model.test", "good.test",
     "evil.test", "#", "@", "/", "Host: ", "model.test:PORT", " HTTP/1.1\r\n", "\0", ".", "%2e"]
)  # fmt: skip


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS.map(str.encode) | st.binary(max_size=5), max_size=10).map(b"".join))
def test_whatever_is_asked_only_listed_names_are_looked_up(tmp_path: Path, said: bytes) -> None:
    asyncio.run(_one(tmp_path, said))


async def _one(folder: Path, said: bytes) -> None:
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    async with bench(folder, "good.test:443", answer=["127.0.0.1"]) as at:
        reader, writer = await at.open(said.replace(b"PORT", b"%d" % at.port))
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        assert set(at.asked) <= {"good.test:443"}
        assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200 "))
        if answer.startswith(b"HTTP/1.1 200 "):
            assert said.upper().startswith(b"CONNECT MODEL.TEST")
    assert problems == []
