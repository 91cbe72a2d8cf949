"""No spelling of a secret comes through, however the text is cut."""

from __future__ import annotations

import base64
import html
import json
import shlex
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.text.redaction import MIN_LENGTH, Redactor

SECRET = "s3cr\"t/k'y+ü=&<9\\x>"
MARK = "[KEY redacted]"


@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda s: base64.b64encode(s.encode()).decode(),
        lambda s: base64.urlsafe_b64encode(s.encode()).decode().rstrip("="),
        lambda s: quote(s, safe=""),
        quote,
        quote_plus,
        lambda s: quote(s, safe="").lower(),
        lambda s: json.dumps(s)[1:-1],
        lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
        lambda s: json.dumps(s).replace("/", "\\/")[1:-1],
        lambda s: json.dumps(json.dumps(s)[1:-1])[1:-1],
        shlex.quote,
        lambda s: "'" + s.replace("'", "'\\''") + "'",
        lambda s: s.encode().hex(),
        lambda s: s.encode().hex().upper(),
        lambda s: repr(s)[1:-1],
        html.escape,
    ],
)
def test_every_spelling_is_masked(spell: Callable[[str], str]) -> None:
    redacted = Redactor({"KEY": SECRET}).redact(f"before {spell(SECRET)} after")
    assert redacted.replace("'", "") == f"before {MARK} after"


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc"])
@pytest.mark.parametrize("after", [b"", b"z", b"yz"])
def test_base64_is_masked_at_each_alignment(before: bytes, after: bytes) -> None:
    encoded = base64.b64encode(before + SECRET.encode() + after).decode()
    redacted = Redactor({"KEY": SECRET}).redact(encoded)
    # What may stay encodes the neighbours and at most six bits of the secret's first and last byte.
    rest = redacted.replace(MARK, "").rstrip("=")
    assert MARK in redacted
    assert len(rest) <= -(-4 * len(before) // 3) + -(-4 * len(after) // 3) + 1


@pytest.mark.parametrize(
    ("secrets", "text", "expected"),
    [
        ({"A": "abcdef"}, "abcdefabcdef", "[A redacted]"),
        ({"A": "abcdef"}, "abcdef abcdef", "[A redacted] [A redacted]"),
        ({"A": "abcdef", "B": "defghi"}, "xabcdefghix", "x[A, B redacted]x"),
        ({"A": "abcdef", "B": "ghijkl"}, "xabcdefghijklx", "x[A, B redacted]x"),
        ({"A": "abcdef", "B": "abcdefgh"}, "xabcdefghx", "x[B redacted]x"),
        ({"A": "abcdefgh", "B": "cdefgh"}, "xabcdefghx", "x[A, B redacted]x"),
        ({"A": "aaaaaa"}, "aaaaaaaaaab", "[A redacted]b"),
        ({"A": "same-value", "B": "same-value"}, "same-value", "[A redacted]"),
        ({}, "nothing to hide", "nothing to hide"),
    ],
)
def test_overlapping_and_adjacent_secrets_become_one_mark(
    secrets: dict[str, str], text: str, expected: str
) -> None:
    assert Redactor(secrets).redact(text) == expected


def test_each_line_of_a_secret_and_its_trimmed_value_are_masked() -> None:
    redactor = Redactor({"PEM": "first-line\n  second-line\n"})
    assert redactor.redact("x second-line y first-line") == "x [PEM redacted] y [PEM redacted]"


def test_short_secrets_are_named_and_not_masked() -> None:
    redactor = Redactor({"PIN": "12345", "KEY": "123456", "NONE": ""})
    assert redactor.unprotected == ("PIN",)
    assert redactor.redact("12345") == "12345"
    assert redactor.redact("123456") == "[KEY redacted]"
    assert MIN_LENGTH == 6


def test_repr_hides_values() -> None:
    redactor = Redactor({"KEY": SECRET})
    shown = f"{redactor!r} {redactor} {redactor.stream()!r}"
    assert "KEY" in shown and SECRET not in shown


def test_bytes_that_are_no_text_stay() -> None:
    assert Redactor({"KEY": "päßwörd"}).redact_bytes(
        b"\xff\xe3" + "päßwörd".encode() + b"\x80"
    ) == (b"\xff\xe3[KEY redacted]\x80")


SECRETS = st.dictionaries(
    st.sampled_from(["A", "B", "C"]), st.text("ab\"'/+ü", min_size=6, max_size=9), min_size=1
)


@settings(deadline=None)
@given(secrets=SECRETS, data=st.data())
def test_a_stream_says_what_the_whole_text_says(
    secrets: dict[str, str], data: st.DataObject
) -> None:
    piece = st.one_of(st.sampled_from(sorted(secrets.values())), st.text("ab\"' ü", max_size=4))
    text = "".join(data.draw(st.lists(piece, max_size=8)))
    redactor = Redactor(secrets)
    whole = redactor.redact(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    stream = redactor.stream()
    parts = [
        stream.feed(text[start:stop])
        for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]
    assert "".join(parts) + stream.finish() == whole
    for value in secrets.values():
        assert value not in whole


def test_a_stream_holds_back_no_more_than_the_longest_spelling() -> None:
    redactor = Redactor({"KEY": "secret"})
    stream = redactor.stream()
    said = sum(len(stream.feed("x" * 1000)) for _ in range(10))
    assert 10_000 - said < 32


@pytest.mark.parametrize(
    "chunk", ["a" * 65_536, "sk-live-" * 8192, "".join(map(chr, range(256))) * 256]
)
def test_a_chunk_takes_milliseconds(chunk: str) -> None:
    redactor = Redactor(
        {f"K{n}": f"sk-live-{n}-'\"/{n * 7919}" for n in range(20)} | {"A": "a" * 40}
    )
    begun = time.perf_counter()
    redactor.redact(chunk)
    assert time.perf_counter() - begun < 1
