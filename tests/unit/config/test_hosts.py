"""Allow-list entries: what people write, what is meant, and what is refused with a reason."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentrunner.config.hosts import (
    AllowedHost,
    canonical_name,
    checked_host,
    find_host,
    parse_host,
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("example.org:443", AllowedHost("example.org", 443)),
        ("  Example.ORG.:443 ", AllowedHost("example.org", 443)),
        ("*.example.org:8443", AllowedHost("example.org", 8443, wildcard=True)),
        ("db:5432@10.0.0.5", AllowedHost("db", 5432, address="10.0.0.5")),
        ("v6.test:443@::1", AllowedHost("v6.test", 443, address="::1")),
        ("v6.test:443@FD00::0:1", AllowedHost("v6.test", 443, address="fd00::1")),
        ("xn--bcher-kva.example:443", AllowedHost("xn--bcher-kva.example", 443)),
        ("my_bucket.storage.example:443", AllowedHost("my_bucket.storage.example", 443)),
    ],
)
def test_what_people_write(text: str, meant: AllowedHost) -> None:
    assert parse_host(text) == meant
    assert parse_host(str(meant)) == meant
    assert checked_host(text) == text.strip()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("example.org", "names no port"),
        ("", "names no port"),
        (":443", "names no port"),
        ("example.org:", "names no port"),
        ("example.org:https", "names no port"),
        ("example.org:0", "names no port"),
        ("example.org:65536", "names no port"),
        ("example.org:4४3", "names no port"),
        ("example.org:+443", "names no port"),
        ("https://example.org:443", "names no host"),
        ("example.org/path:443", "names no host"),
        ("user@example.org:443", "names no port"),
        ("a..b:443", "names no host"),
        ("example.org..:443", "names no host"),
        (".example.org:443", "names no host"),
        ("-a.org:443", "names no host"),
        ("a b.org:443", "names no host"),
        ("10.0.0.5:443", "names no host"),
        ("127.1:443", "names no host"),
        ("2130706433:443", "names no host"),
        ("0x7f000001:443", "names no host"),
        ("0x7f.0x1:443", "names no host"),
        ("[::1]:443", "names no host"),
        ("*:443", "names no host"),
        ("*.*.org:443", "names no host"),
        ("a.*.org:443", "names no host"),
        ("%65xample.org:443", "names no host"),
        ("bücher.example:443", "in ASCII"),
        ("*.org:443", "too wide"),
        ("*.example.org:443@10.0.0.5", "too wide"),
        ("db.local:5432@", "no IP address"),
        ("db.local:5432@localhost", "no IP address"),
        ("db.local:5432@10.0.0.5:80", "no IP address"),
        ("db.local:5432@0.0.0.0", "no address of one host"),
        ("db.local:5432@::", "no address of one host"),
        ("db.local:5432@224.0.0.1", "no address of one host"),
        ("db.local:5432@255.255.255.255", "no address of one host"),
        (f"{'a' * 64}.org:443", "names no host"),
        (f"{'a.' * 127}org:443", "names no host"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_host(text)


def test_an_entry_means_its_name_and_port_alone() -> None:
    host = parse_host("example.org:443")
    assert host.covers("example.org", 443)
    assert not host.covers("example.org", 80)
    assert not host.covers("www.example.org", 443)
    assert not host.covers("example.org.evil.test", 443)
    assert not host.covers("evilexample.org", 443)


def test_a_wildcard_means_names_below_and_not_itself() -> None:
    host = parse_host("*.example.org:443")
    assert host.covers("www.example.org", 443)
    assert host.covers("a.b.example.org", 443)
    assert not host.covers("example.org", 443)
    assert not host.covers("evilexample.org", 443)
    assert not host.covers("www.example.org", 80)


def test_a_pinned_name_goes_before_a_name_and_that_before_a_wildcard() -> None:
    wide, pinned = parse_host("*.example.org:443"), parse_host("db.example.org:443@10.0.0.5")
    assert find_host([wide, pinned], "db.example.org", 443) == pinned
    assert find_host([wide, pinned], "www.example.org", 443) == wide
    assert find_host([wide, pinned], "example.org", 443) is None
    assert find_host([], "example.org", 443) is None
    # As a person allows it whose listed name turned out to lead to a private address.
    plain = parse_host("db.example.org:443")
    assert find_host([wide, plain, pinned], "db.example.org", 443) == pinned


@given(st.text(max_size=40) | st.from_regex(r"(\*\.)?[a-zA-Z0-9._-]{1,20}:[0-9]{1,6}(@.{0,20})?"))
@example("a.b:1@1.2.3.4%eth0")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        host = parse_host(text)
    except ValueError:
        return
    assert parse_host(str(host)) == host
    assert canonical_name(host.name) == host.name
