"""Text that can be stored anywhere."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.text.unicode import clean


def test_surrogates_and_nul_are_replaced() -> None:
    assert clean("a\ud83d\x00b\udcffc\U0001f600") == "a\ufffd\ufffdb\ufffdc\U0001f600"


@settings(deadline=None)
@given(st.text(st.characters(categories=None)))
def test_the_result_encodes(text: str) -> None:
    assert "\0" not in clean(text)
    clean(text).encode("utf-8")
