"""Cassettes: what of a request is compared, what is kept of an exchange, and in which order."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.errors import UsageError
from agentrunner.gateway.cassette import (
    Exchange,
    Player,
    RecordedProvider,
    Recorder,
    _replaced,
    difference,
    normalise,
    read_cassette,
)
from agentrunner.gateway.exchange import Incoming, Mismatch, Outgoing
from agentrunner.text.redaction import Redactor

SECRET = "hunter2-" + "d0g5" * 5
REDACTOR = Redactor({"DB_PASSWORD": SECRET})
PATH = "/responses"


def ask(text: str, **more: Any) -> bytes:
    return json.dumps({"model": "m", "input": [{"role": "user", "content": text}], **more}).encode()


def record(
    recorder: Recorder, text: str, *chunks: bytes, metered: bool = True, broken: str = ""
) -> None:
    exchange = recorder.begin("POST", PATH, "m", ask(text), metered=metered)
    headers = {"content-type": "text/event-stream", "x-request-id": "r1", "retry-after": "3"}
    recorder.end(exchange, 0 if broken and not chunks else 200, headers, chunks, broken)


def replay(player: Player, text: str, *, metered: bool = True) -> bytes:
    exchange = player.answer("POST", PATH, ask(text), metered=metered)
    return b"".join(player.chunks(exchange))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "run.cassette"


# -- what is compared -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-11-21T10:00:00.123Z", "at 2027-01-02T03:04:05+09:00"),
        ("Sat Nov 21 10:26:21 UTC 2026", "Sun Dec  6 09:01:02 UTC 2026"),
        ("-rw-r--r-- 1 u u 5 Nov 21 10:26 a", "-rw-r--r-- 1 u u 5 Dec  6 09:01 a"),
        ("Wall time: 0.0521 seconds\nOutput:", "Wall time: 1.2 seconds\nOutput:"),
        ("Wall time 0.4 seconds", "Wall time 0.3 seconds"),
        ('"chunk_id":"a612e3","wall_time_seconds":0.000014', '"chunk_id":"0c3cd3",'
         '"wall_time_seconds":6.0e-06'),
        ("1 passed in 0.02s", "1 passed in 1.31s"),
        ("msg_01a1fda4-834c-7a93-b72c-2b9be6d719e8", "msg_0f14ce71-3cb1-5697-9af4-0edf5a8b5d06"),
        ("<<<PRD 0123456789abcdef", "<<<PRD fedcba9876543210"),
        ("<object at 0x7fdaf39aa610>", "<object at 0x7f2977bc6690>"),
        ("in /tmp/pytest-of-root/x1/y", "in /tmp/abc"),
        ("/home/a/.local/state/agentrunner/runs/shop-1a2b/box/codex/skills",
         "/srv/state/runs/shop-99ff/box/codex/skills"),
        ("http://127.0.0.1:43211/v1", "http://127.0.0.1:8787/v1"),
        ("x" * 300 + " 10:26:21", "x" * 300 + " 11:11:11"),
    ],
)  # fmt: skip
def test_what_differs_from_run_to_run_is_equal(one: str, other: str) -> None:
    normal, now = normalise(ask(one)), normalise(ask(other))
    assert difference(normal.asked, now.asked, {}) is None
    assert normal.fingerprint == now.fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("add a function", "add a class"),
        ("exit code 0", "exit code 1"),
        ("3 passed", "2 passed"),
        ("version 1.2.3", "version 1.2.4"),
        ("the deadbeef of it", "the cafe of it"),
        ("x" * 300 + "a", "x" * 300 + "b"),
        ("/usr/lib/a", "/usr/lib/b"),
        ("timeout 5 s", "timeout 6 s"),
        ("tmp/a", "tmp/b"),
        ("Margin 12", "Margin 13"),
        ("calc.py:12:05: error", "calc.py:13:05: error"),
    ],
)
def test_what_is_asked_is_compared(one: str, other: str) -> None:
    assert normalise(ask(one)).fingerprint != normalise(ask(other)).fingerprint


def test_a_long_word_takes_no_time() -> None:
    """An image, say; the test's time limit would end it."""
    normalise(ask("/runs" + "a" * 3_000_000 + "/" * 1_000_000))


def test_the_folder_that_is_worked_in_is_a_word() -> None:
    one = normalise(ask("cd /home/a/shop; ls ~/.claude/projects/-home-a-shop"), "/home/a/shop")
    assert one.asked["input"][0]["content"] == "cd <workdir>; ls ~/.claude/projects/<workdir>"


def test_who_asks_is_left_out() -> None:
    some = {"client_metadata": {"a": 1}, "prompt_cache_key": "k", "metadata": {"user_id": "u"}}
    assert normalise(ask("x", **some)) == normalise(ask("x"))


def test_a_body_that_is_no_json_is_a_text() -> None:
    assert normalise(b"plain at 10:00").asked == "plain at <time>"
    assert normalise(b"").asked is None


def test_a_request_is_known_by_its_last_text() -> None:
    assert normalise(ask("Fix add.")).digest == "Fix add."
    parts = {"contents": [{"parts": [{"text": "first"}]}, {"parts": [{"text": "last"}]}]}
    assert normalise(json.dumps(parts).encode()).digest == "last"
    assert normalise(b"{}").digest == ""


@pytest.mark.parametrize(
    ("recorded", "now", "found"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ("a.b[1]", "2", "3")),
        ({"a": [1]}, {"a": [1, 2]}, ("a[1]", "nothing", "2")),
        (
            {"a": "x" * 100 + "yes"},
            {"a": "x" * 100 + "no"},
            ("a", f'"…{"x" * 40}yes"', f'"…{"x" * 40}no"'),
        ),
        ({"a": 1}, {}, ("a", "1", "nothing")),
        ({}, {"a": "ä"}, ("a", "nothing", '"ä"')),
        ({"a": 1}, {"a": "1"}, ("a", "1", '"1"')),
        ("x", "y", ("", '"x"', '"y"')),
    ],
)
def test_the_first_difference(recorded: Any, now: Any, found: Any) -> None:
    assert difference(recorded, now, {}) == found


def test_a_long_text_is_shown_where_it_differs() -> None:
    one, other = (normalise(ask("a" * 500 + word + "b" * 500)) for word in ("ONE", "OTHER"))
    (text,) = one.texts.values()
    assert text == "a" * 500 + "ONE" + "b" * 500 and text not in str(one.asked)
    found = difference(one.asked, other.asked, {**one.texts, **other.texts})
    assert found is not None
    place, then, now = found
    assert place == "input[0].content"
    assert then.startswith('"…aaaa') and "aONEbbb" in then and "aOTHERbbb" in now


# -- what is kept ---------------------------------------------------------------------------------


def test_a_reply_comes_back_piece_by_piece(tape: Path) -> None:
    pieces = (b"data: {}\n", b"\n", "data: ä".encode()[:7], "data: ä".encode()[7:], b"\xff")
    record(Recorder(tape, "1-001", REDACTOR), "x", *pieces)
    player = Player(tape, "1-001", REDACTOR)
    exchange = player.answer("POST", PATH, ask("x"), metered=True)
    again = player.chunks(exchange)
    assert b"".join(again) == b"".join(pieces)
    assert again[:3] == [b"data: {}\n", b"\n", b"data: "]
    assert exchange.headers == {"content-type": "text/event-stream", "retry-after": "3"}


class Slow:
    """A provider whose reply has three pieces, and goes on for ever where it hangs."""

    def __init__(self, hangs: bool) -> None:
        self.hangs = hangs

    @asynccontextmanager
    async def ask(self, request: Outgoing) -> AsyncIterator[Incoming]:
        yield Incoming(200, [], self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        for piece in (b"one ", b"two ", b"three"):
            yield piece
        if self.hangs:
            await asyncio.Event().wait()


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_client_may_hang_up_before_the_reply_has_ended(
    tape: Path, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentrunner.gateway.cassette.HANG_UP_SEC", 0.05)
    provider = RecordedProvider(Slow(hangs), Recorder(tape, "1-001", REDACTOR))
    request = Outgoing("POST", PATH, "", [], ask("x"), "m", metered=True)
    async with provider.ask(request) as reply:
        assert await anext(reply.chunks) == b"one "  # and reads no more
    exchange = Player(tape, "1-001", REDACTOR).answer("POST", PATH, ask("x"), metered=True)
    assert bool(exchange.broken) is hangs
    assert replay(Player(tape, "1-001", REDACTOR), "x") == b"one two three"


def test_no_secret_gets_into_the_file(tape: Path) -> None:
    coded = base64.b64encode(SECRET.encode())
    recorder = Recorder(tape, "1-001", REDACTOR)
    half = len(SECRET) // 2
    record(recorder, f"it is {SECRET}", b"so ", SECRET[:half].encode(), SECRET[half:].encode())
    record(recorder, coded.decode(), coded)
    record(recorder, "x", broken=f"no route to {SECRET}")
    text = tape.read_text()
    assert SECRET not in text and coded.decode() not in text
    assert text.count("[DB_PASSWORD redacted]") == 7  # in digests, requests and replies
    player = Player(tape, "1-001", REDACTOR)
    assert replay(player, f"it is {SECRET}") == b"so [DB_PASSWORD redacted]"
    assert tape.stat().st_mode & 0o777 == 0o600


def test_a_reply_speaks_of_the_folder_of_its_reader(tape: Path) -> None:
    recorder = Recorder(tape, "1-001", REDACTOR, "/home/a/shop")
    record(recorder, "in /home/a/shop", b'{"cmd": "cd /home', b'/a/shop && ls"}')
    player = Player(tape, "1-001", REDACTOR, "/srv/other")
    exchange = player.answer("POST", PATH, ask("in /srv/other"), metered=True)
    assert player.chunks(exchange) == [b'{"cmd": "cd /srv/other', b' && ls"}']


@given(st.lists(st.text("ab/", max_size=6), max_size=6))
def test_a_place_is_replaced_wherever_it_is_cut(pieces: list[str]) -> None:
    out = _replaced(pieces, "/ab", "X")
    assert "".join(out) == "".join(pieces).replace("/ab", "X")
    assert len(out) <= len(pieces)


# -- in which order -------------------------------------------------------------------------------


def test_requests_are_answered_in_their_order(tape: Path) -> None:
    recorder = Recorder(tape, "1-001", REDACTOR)
    for n in range(3):
        record(recorder, "again", b"answer %d" % n)
    player = Player(tape, "1-001", REDACTOR)
    assert [replay(player, "again") for _ in range(3)] == [b"answer 0", b"answer 1", b"answer 2"]
    with pytest.raises(Mismatch, match=r"request 4 of '1-001' \('again'\) is one more than were"):
        replay(player, "again")


def test_a_request_that_differs_ends_the_replay(tape: Path) -> None:
    recorder = Recorder(tape, "1-001", REDACTOR)
    for text in ("one", "two", "three"):
        record(recorder, text, b"x")
    player = Player(tape, "1-001", REDACTOR)
    replay(player, "one")
    for text in ("deux", "two"):
        with pytest.raises(Mismatch) as caught:
            replay(player, text)
        assert str(caught.value) == (
            "request 2 of '1-001' ('deux') differs from the recorded one at input[0].content: "
            '"two" then, "deux" now.'
        )


def test_another_address_is_a_difference(tape: Path) -> None:
    record(Recorder(tape, "1-001", REDACTOR), "one", b"x")
    player = Player(tape, "1-001", REDACTOR)
    with pytest.raises(Mismatch, match="at address: POST /responses then, POST /other now"):
        player.answer("POST", "/other", ask("one"), metered=True)


def test_channels_do_not_mix(tape: Path) -> None:
    first, second = (Recorder(tape, name, REDACTOR) for name in ("1-001", "meta"))
    for recorder, text in ((first, "a"), (second, "b"), (first, "c")):
        record(recorder, text, text.encode())
    assert replay(Player(tape, "meta", REDACTOR), "b") == b"b"
    player = Player(tape, "1-001", REDACTOR)
    assert replay(player, "a") + replay(player, "c") == b"ac"
    with pytest.raises(Mismatch, match=r"nothing for '1-002', but for '1-001', 'meta'\."):
        replay(Player(tape, "1-002", REDACTOR), "a")


def test_what_overlapped_may_come_in_another_order(tape: Path) -> None:
    recorder = Recorder(tape, "1-001", REDACTOR)
    begun = {text: recorder.begin("POST", PATH, "m", ask(text), metered=True) for text in "ab"}
    for text in "ba":
        recorder.end(begun[text], 200, {}, [text.encode()])
    record(recorder, "c", b"c")
    for order in ("abc", "bac"):
        player = Player(tape, "1-001", REDACTOR)
        assert [replay(player, text) for text in order] == [t.encode() for t in order]
    player = Player(tape, "1-001", REDACTOR)
    with pytest.raises(Mismatch):
        replay(player, "c")


def test_what_costs_nothing_may_come_at_any_time(tape: Path) -> None:
    recorder = Recorder(tape, "1-001", REDACTOR)
    record(recorder, "models", b"[]", metered=False)
    record(recorder, "one", b"1")
    player = Player(tape, "1-001", REDACTOR)
    assert replay(player, "one") == b"1"
    assert [replay(player, "models", metered=False) for _ in range(2)] == [b"[]", b"[]"]
    with pytest.raises(Mismatch, match="no answer to POST /responses"):
        replay(player, "other", metered=False)


def test_a_new_process_goes_on(tape: Path) -> None:
    for n, text in enumerate("ab", 1):
        recorder = Recorder(tape, "1-001", REDACTOR)
        record(recorder, text, text.encode())
        assert read_cassette(tape)[-1].number == n
    assert replay(Player(tape, "1-001", REDACTOR, played=1), "b") == b"b"


def test_a_long_text_is_kept_once(tape: Path) -> None:
    recorder = Recorder(tape, "1-001", REDACTOR)
    for text in ("long " * 100, "long " * 100, "other " * 100):
        record(recorder, text, b"x")
    record(Recorder(tape, "1-001", REDACTOR), "long " * 100, b"x")
    assert [len(exchange.texts) for exchange in read_cassette(tape)] == [1, 0, 1, 0]
    with pytest.raises(Mismatch, match=r'long long long long .*then, "…long .* xlong'):
        replay(Player(tape, "1-001", REDACTOR), "long " * 60 + "x" + "long " * 40)


# -- files ----------------------------------------------------------------------------------------


def test_half_a_line_at_the_end_is_left_out(tape: Path) -> None:
    record(Recorder(tape, "1-001", REDACTOR), "one", b"1")
    with tape.open("ab") as file:
        file.write(b'{"v": 1, "chan')
    assert [exchange.digest for exchange in read_cassette(tape)] == ["one"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"v": 2}\n', "line 1 is of version 2"),
        ('nonsense\n{"v": 1}\n', "line 1 is no exchange"),
        ('{"v": 1, "channel": "x"}\n[]\n', "line 1 is no exchange"),
    ],
)
def test_a_file_that_is_no_cassette(tape: Path, text: str, part: str) -> None:
    tape.write_text(text)
    with pytest.raises(UsageError, match=part) as caught:
        read_cassette(tape)
    assert caught.value.code == "cassette-invalid"
    with pytest.raises(UsageError):
        Player(tape, "1-001", REDACTOR)


def test_a_file_that_is_not_there(tape: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_cassette(tape)


def test_a_line_can_be_read_by_a_person(tape: Path) -> None:
    record(Recorder(tape, "1-001", REDACTOR), "Fix add.", b"Done.")
    (exchange,) = read_cassette(tape)
    assert exchange == Exchange(
        channel="1-001", number=1, after=0, method="POST", path=PATH, model="m", metered=True,
        fingerprint=exchange.fingerprint, digest="Fix add.",
        request={"model": "m", "input": [{"role": "user", "content": "Fix add."}]}, texts={},
        status=200, headers={"content-type": "text/event-stream", "retry-after": "3"},
        body=["Done."],
    )  # fmt: skip
