"""T13: which addresses a name may lead to, and that the checked one is the dialled one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from agentrunner.gateway.dial import (
    Address,
    Direct,
    NotPublic,
    TunnelSide,
    is_ours,
    is_public,
    look_up,
    way_out,
)
from agentrunner.gateway.head import HostAndPort

HOST = HostAndPort("model.test", 443)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::1", "64:ff9b::808:808"],
)
def test_addresses_of_the_internet(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.254", "::1",  # loopback
        "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1", "fec0::1",
        "169.254.169.254", "169.254.0.1", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0",
        "100.64.0.1", "100.100.100.200", "100.127.255.255",  # shared; Alibaba's metadata
        "168.63.129.16", "192.0.0.192", "fd00:ec2::254",  # metadata of Azure, Oracle, AWS
        "0.0.0.0", "0.1.2.3", "::",
        "224.0.0.1", "239.255.255.255", "ff02::1", "255.255.255.255", "240.0.0.1",
        "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1",
        "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::8.8.8.8", "::7f00:1",
        "2002:7f00:1::", "2002:808:808::1", "192.88.99.1", "2001:0:1::1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "64:ff9b:1::808:808",
        "100::1", "5f00::1", "1000::1", "4000::1",
    ],
)  # fmt: skip
def test_addresses_that_are_nobody_elses_business(address: str) -> None:
    assert not is_public(ip_address(address))


def test_an_address_of_this_machine_is_known() -> None:
    assert is_ours(ip_address("127.0.0.1"))
    assert not is_ours(ip_address("192.0.2.77"))


async def test_the_system_is_asked_for_a_name() -> None:
    found = await look_up("localhost", 443)
    assert set(found) <= {ip_address("127.0.0.1"), ip_address("::1")} and found


class Net:
    """A DNS that changes its answers, and a network that notes what is dialled."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.dialled: list[str] = []

    async def resolve(self, name: str, port: int) -> list[Address]:
        self.asked.append(f"{name}:{port}")
        answer = self.answers.pop(0)
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return [ip_address(each) for each in answer]

    async def connect(self, addresses: Sequence[Address], port: int) -> TunnelSide:
        self.dialled += [f"{address} {port}" for address in addresses]
        raise ConnectionRefusedError("nobody is there")

    async def open(self, pin: str | None = None) -> None:
        await Direct(self.resolve, self.connect).open(HOST, pin)


async def test_dns_rebinding_leads_nowhere() -> None:
    net = Net(["8.8.8.8"], ["127.0.0.1"], ["10.0.0.5", "169.254.169.254"])
    with pytest.raises(ConnectionRefusedError):
        await net.open()
    assert (net.asked, net.dialled) == (["model.test:443"], ["8.8.8.8 443"])
    for address in ("127.0.0.1", "10.0.0.5"):
        with pytest.raises(NotPublic) as refused:
            await net.open()
        assert refused.value.address == address
    assert net.dialled == ["8.8.8.8 443"]


async def test_of_several_answers_each_public_one_is_tried_and_no_other() -> None:
    net = Net(["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1111", "::ffff:1.1.1.1"])
    with pytest.raises(ConnectionRefusedError):
        await net.open()
    assert net.dialled == ["8.8.8.8 443", "2606:4700::1111 443"]


async def test_a_pinned_address_is_dialled_and_dns_not_asked() -> None:
    net = Net()
    with pytest.raises(ConnectionRefusedError):
        await net.open("10.0.0.5")
    assert (net.asked, net.dialled) == ([], ["10.0.0.5 443"])


async def test_no_address_at_all_is_not_public() -> None:
    async def nothing(name: str, port: int) -> list[Address]:
        return []

    with pytest.raises(NotPublic):
        await Direct(nothing).open(HOST, None)


class CompanyProxy:
    """Speaks as the proxy of a company does, and notes what it is asked."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.heads: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        writer.close()


async def through(answer: bytes, environ: dict[str, str], pin: str | None = None) -> CompanyProxy:
    proxy = CompanyProxy(answer)
    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    async with server:
        place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        variables = {name: value.replace("PLACE", place) for name, value in environ.items()}
        host, address = await way_out(variables).open(HostAndPort("no-such-host.invalid", 443), pin)
        assert await host.reader.read() == b"hello"
        assert address == f"by {place}"
        await host.close()
    return proxy


async def test_behind_a_companys_proxy_it_is_asked_by_name() -> None:
    established = b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\nhello"
    proxy = await through(established, {"HTTPS_PROXY": "http://me:p%40ss@PLACE"})
    (head,) = proxy.heads
    assert head.startswith(b"CONNECT no-such-host.invalid:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in head


@pytest.mark.parametrize(
    ("answer", "said"),
    [(b"HTTP/1.1 407 Who are you\r\n\r\n", "407 Who are you"), (b"SSH-2.0\r\n", "is none")],
)
async def test_a_companys_proxy_that_refuses_is_told(answer: bytes, said: str) -> None:
    with pytest.raises(ConnectionError, match=said):
        await through(answer, {"https_proxy": "PLACE"})


async def test_a_companys_proxy_does_not_open_private_names() -> None:
    way = way_out({"HTTPS_PROXY": "http://192.0.2.1:3128"})
    with pytest.raises(NotPublic):
        await way.open(HostAndPort("localhost", 443), None)


async def test_what_no_proxy_names_or_a_pin_is_dialled_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("no_proxy", "localhost")
    way = way_out({"HTTPS_PROXY": "http://192.0.2.1:3128"})
    with pytest.raises(NotPublic):  # and not a time-out at the proxy
        await way.open(HostAndPort("localhost", 443), None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        host, address = await way.open(HostAndPort("db.test", port), "127.0.0.1")
        assert address == "127.0.0.1"
        await host.close()


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:1080", "https://proxy.test:443", "http://"])
def test_a_proxy_of_another_kind_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(ValueError, match="only a proxy at http"):
        way_out({"HTTPS_PROXY": url})
