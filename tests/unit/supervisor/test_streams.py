from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.supervisor import streams
from agentrunner.supervisor.streams import COUNTS, CappedStream, Tail, redactor_of
from agentrunner.text.redaction import Redactor

NOTHING = Redactor({})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEAD", 10)
    monkeypatch.setattr(streams, "TAIL", 20)


def count(folder: Path, size: int) -> None:
    (folder / "counts").write_bytes(COUNTS.pack(size, 0))


@given(st.lists(st.sampled_from([b"secret", b"sec", b"ret", b"s", b"\xc3", b"\xa9t", b"x"])))
def test_no_secret_gets_through_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("stream") / "stdout"
    stream = CappedStream(path, redactor_of([(b"secret", "A"), (b"s\xc3\xa9t", "A")]))
    for chunk in chunks:
        stream.feed(chunk)
    stream.finish()
    printed = b"".join(chunks)
    assert path.read_bytes() == re.sub(b"(?:secret|s\xc3\xa9t)+", b"[A redacted]", printed)


def test_only_what_may_be_the_beginning_of_a_secret_is_held_back() -> None:
    stream = Redactor({"KEY": "secret"}).stream()
    assert stream.feed("a line\nsecre") == "a line\n"
    assert stream.feed("cy") == "secrecy"


@pytest.mark.usefixtures("small")
@given(sizes=st.lists(st.integers(0, 25), max_size=12))
def test_the_file_keeps_the_beginning_and_the_end(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    path = tmp_path_factory.mktemp("stream") / "stdout"
    stream, printed = CappedStream(path, NOTHING), b""
    for number, size in enumerate(sizes):
        chunk = bytes([97 + number]) * size
        stream.feed(chunk)
        printed += chunk
    stream.finish()
    assert stream.printed == len(printed)
    left_out = len(printed) - 30
    if left_out <= 0:
        assert path.read_bytes() == printed
    else:
        line = b"\n[agentrunner: %d bytes left out]\n" % left_out
        assert path.read_bytes() == printed[:10] + line + printed[-20:]


@pytest.mark.usefixtures("small")
def test_a_reader_that_keeps_up_hears_everything_and_a_slow_one_the_end(tmp_path: Path) -> None:
    stream = CappedStream(tmp_path / "stdout", NOTHING)
    eager, late = Tail(tmp_path, "stdout"), Tail(tmp_path, "stdout")
    assert eager.read() == b""
    heard = b""
    for number in range(20):
        stream.feed(b"%02d " % number)
        count(tmp_path, stream.size)
        while data := eager.read():
            heard += data
    assert heard == b"".join(b"%02d " % number for number in range(20))
    heard = b""
    while data := late.read():
        heard += data
    assert heard == b"00 01 02 0" + b"".join(b"%02d " % number for number in range(20))[-20:]
    assert Tail(tmp_path, "stdout", from_end=True).read() == b""
    stream.finish()
    assert eager.read() == b""
    for tail in (eager, late):
        tail.close()


@pytest.mark.usefixtures("small")
def test_a_reader_that_comes_after_the_end_reads_the_file_as_it_is(tmp_path: Path) -> None:
    stream = CappedStream(tmp_path / "stdout", NOTHING)
    stream.feed(b"x" * 15 + b"y" * 15 + b"z" * 70)
    count(tmp_path, stream.size)
    stream.finish()
    tail, heard = Tail(tmp_path, "stdout"), b""
    while data := tail.read(limit=7):
        heard += data
    tail.close()
    assert heard == (tmp_path / "stdout").read_bytes()
    assert re.search(rb"\[agentrunner: 70 bytes left out\]", heard)


@pytest.mark.usefixtures("small")
def test_a_full_disk_loses_output_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "no space")

    stream = CappedStream(tmp_path / "stdout", NOTHING)
    stream.feed(b"0123456789" * 5)
    monkeypatch.setattr("os.sendfile", full)
    stream.finish()
    assert stream.lost and (tmp_path / "stdout").read_bytes() == b"0123456789"
    assert [path.name for path in tmp_path.iterdir()] == ["stdout"]

    broken = CappedStream(tmp_path / "stderr", NOTHING)
    monkeypatch.setattr("os.pwrite", full)
    broken.feed(b"hello")
    broken.feed(b"hello")
    broken.finish()
    assert broken.lost and broken.printed == 10
