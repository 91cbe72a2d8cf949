"""T13: the request of a client of the proxy is one thing to every reader, or refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentrunner.config.hosts import canonical_name
from agentrunner.gateway.head import HEAD_LIMIT, HostAndPort, RequestRefused, read_head


def connect(target: str, *headers: str, version: str = "1.1") -> bytes:
    lines = (f"CONNECT {target} HTTP/{version}", *headers)
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")


def refusal(head: bytes) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        read_head(head)
    return caught.value


@pytest.mark.parametrize(
    ("head", "target"),
    [
        (connect("example.org:443", "Host: example.org:443"), HostAndPort("example.org", 443)),
        (connect("example.org:443", "Host: example.org"), HostAndPort("example.org", 443)),
        (connect("example.org:443", "Host:"), HostAndPort("example.org", 443)),
        (connect("EXAMPLE.org.:443", "Host: Example.Org:443"), HostAndPort("example.org", 443)),
        (connect("example.org:443", version="1.0"), HostAndPort("example.org", 443)),
        (
            connect(
                "a.b:22",
                "Host: a.b:22",
                "User-Agent: curl/8",
                "Proxy-Connection: Keep-Alive",
                "Proxy-Authorization: Basic eA==",
                "Content-Length: 0",
            ),
            HostAndPort("a.b", 22),
        ),
    ],
)
def test_a_connect_is_read(head: bytes, target: HostAndPort) -> None:
    assert read_head(head) == target


@pytest.mark.parametrize(
    "target",
    [
        "evil.com#allowed.com:443",
        "allowed.com:443#",
        "allowed.com:443/",
        "allowed.com:443@evil.com:443",
        "user@allowed.com:443",
        "user:pass@allowed.com:443",
        "allowed.com",
        "allowed.com:",
        "allowed.com:0",
        "allowed.com:99999",
        "allowed.com:https",
        "allowed.com:443:443",
        "allowed.com\\evil.com:443",
        "allowed%2ecom:443",
        "%61llowed.com:443",
        "allowed.com%00.evil.com:443",
        "allowed..com:443",
        "allowed.com..:443",
        "-allowed.com:443",
        "*.allowed.com:443",
        "//allowed.com:443",
        "https://allowed.com:443",
        ":443",
        "[allowed.com]:443",
    ],
)
def test_a_target_that_is_no_plain_name_and_port_is_refused(target: str) -> None:
    refused = refusal(connect(target, f"Host: {target}"))
    assert (refused.status, refused.reason) == (403, "not_a_name")
    assert refused.host in target
    assert target[:4] in refused.text


@pytest.mark.parametrize(
    "target",
    [
        "127.0.0.1:443",
        "169.254.169.254:80",
        "8.8.8.8:443",
        "[::1]:443",
        "[::ffff:127.0.0.1]:443",
        "[fe80::1%eth0]:443",
        "::1:443",
        "127.1:443",
        "2130706433:443",
        "0x7f000001:443",
        "0X7F.1:443",
        "0177.0.0.01:443",
        "127.0.0.1.:443",
    ],
)
def test_an_address_is_refused_in_every_spelling(target: str) -> None:
    refused = refusal(connect(target, f"Host: {target}"))
    assert (refused.status, refused.reason) == (403, "address")
    assert "can be pinned" in refused.text


@pytest.mark.parametrize(
    "head",
    [
        connect("a.b:443", "Host: a.b:443", "Host: a.b:443"),
        connect("a.b:443", "Host: a.b:443", "Host: evil.test"),
        connect("a.b:443"),
        connect("a.b:443", "Host: evil.test:443"),
        connect("a.b:443", "Host: a.b:80"),
        connect("a.b:443", "Host: a.b:443", "Content-Length: 5"),
        connect("a.b:443", "Host: a.b:443", "Transfer-Encoding: chunked"),
        connect("a.b:443", "Host: a.b:443", "Transfer-Encoding: identity"),
        connect("a.b:443", "Host: a.b:443", "X: 1", " folded"),
        connect("a.b:443", "Host: a.b:443", "X: 1", "\tfolded"),
        connect("a.b:443", "Host: a.b:443", "X : 1"),
        connect("a.b:443", "Host: a.b:443", "X: a\rb"),
        connect("a.b:443", "Host: a.b:443", "X: a\nHost: evil.test"),
        connect("a.b:443", "Host: a.b:443", "X: a\0b"),
        connect("a.b:443", "no header at all"),
        connect("a.b:443", "Host: a.b:443", version="2.0"),
        connect("a.b:443", "Host: a.b:443", version="0.9"),
        connect("a.b:443 evil.test:443", "Host: a.b:443"),
        connect("bücher.example:443", "Host: bücher.example:443"),
        b"CONNECT a.b:443 HTTP/1.1\nHost: a.b:443\n\r\n\r\n",
        b" CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n",
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    ],
)
def test_what_two_readers_might_read_differently_is_refused(head: bytes) -> None:
    refused = refusal(head)
    assert (refused.status, refused.reason) == (400, "malformed")


@pytest.mark.parametrize(
    ("head", "host", "port"),
    [
        (b"GET http://Plain.test/x HTTP/1.1\r\nHost: plain.test\r\n\r\n", "plain.test", 80),
        (b"GET http://plain.test:8080/ HTTP/1.1\r\nHost: plain.test\r\n\r\n", "plain.test", 8080),
        (b"POST https://plain.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", "", 0),
        (b"GET / HTTP/1.1\r\nHost: plain.test\r\n\r\n", "", 0),
        (b"GET http://[bad HTTP/1.1\r\nHost: plain.test\r\n\r\n", "", 0),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n", "", 0),
        (b"OPTIONS * HTTP/1.1\r\nHost: plain.test\r\n\r\n", "", 0),
    ],
)
def test_plain_http_is_told_what_is_let_through(head: bytes, host: str, port: int) -> None:
    refused = refusal(head)
    assert (refused.status, refused.reason) == (405, "plain_http")
    if b"https:" not in head:
        assert (refused.host, refused.port) == (host, port)
    assert b"\r\nAllow: CONNECT\r\n" in refused.response()


WORDS = st.sampled_from(
    ["CONNECT", "GET", " ", "\r\n", "\n", "\t", ":", "443", "a.b", "evil.test", "127.0.0.1", "#",
     "@", "/", "Host", "Host: a.b:443", "HTTP/1.1", "HTTP/1.0", "http://", "\0", "%00", "é",
     "[::1]", "Content-Length: 1", "Transfer-Encoding: chunked"]
)  # fmt: skip
HEADS = (
    st.binary(max_size=200)
    | st.lists(WORDS, max_size=12).map(lambda words: "".join(words).encode("latin-1"))
    | st.text(max_size=30).map(lambda text: f"CONNECT {text} HTTP/1.1\r\nHost: x".encode())
)


@given(HEADS)
@example(b"A" * (HEAD_LIMIT - 4))
def test_any_head_is_one_target_or_one_refusal(data: bytes) -> None:
    try:
        target = read_head(data + b"\r\n\r\n")
    except RequestRefused as refused:
        response = refused.response()
        status = refused.status
    else:
        assert canonical_name(target.host) == target.host
        assert 0 < target.port < 65536
        asked = data.split(b" ")[1].lower()
        assert asked.removesuffix(b":%d" % target.port).removesuffix(b".") == target.host.encode()
        return
    assert 400 <= status < 500
    head, _, body = response.partition(b"\r\n\r\n")
    assert re.fullmatch(rb"AgentRunner: [\x20-\x7e]+\n", body), "a forged line"
    assert head.count(b"\r\n") == head.count(b"\n") == head.count(b"\r") in (4, 5)
