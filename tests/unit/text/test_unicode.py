"""Text that can be stored anywhere."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.text.unicode import clean, to_bytes, to_text


def test_surrogates_and_nul_are_replaced() -> None:
    assert clean("a\ud83d\x00b\udcffc\U0001f600") == "a\ufffd\ufffdb\ufffdc\U0001f600"


@settings(deadline=None)
@given(st.text(st.characters(categories=None)))
def test_the_result_encodes(text: str) -> None:
    assert "\0" not in clean(text)
    clean(text).encode("utf-8")


@settings(deadline=None)
@given(st.binary())
def test_bytes_come_back_from_their_text(data: bytes) -> None:
    assert to_bytes(to_text(data)) == data


@settings(deadline=None)
@given(st.text(st.characters(categories=None)))
def test_any_text_becomes_bytes(text: str) -> None:
    assert to_bytes(text) == to_bytes(to_text(to_bytes(text)))


def test_a_surrogate_that_stands_for_no_byte_is_replaced() -> None:
    assert to_bytes("caf\udce9 \ud800") == b"caf\xe9 \xef\xbf\xbd"
