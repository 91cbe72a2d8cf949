from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentrunner.sandboxes.command_record import HEAD_BYTES, Spool


@given(st.lists(st.binary(max_size=50)), st.integers(0, 5000))
def test_what_fits_is_kept_as_it_is(pieces: list[bytes], keep: int) -> None:
    spool = Spool(keep)
    for piece in pieces:
        spool.feed(piece)
    assert spool.value() == b"".join(pieces)
    assert spool.total == len(b"".join(pieces))


@given(st.integers(1, 3 * HEAD_BYTES), st.integers(1, 30), st.integers(0, 100_000))
def test_head_and_tail_of_what_does_not_fit(size: int, count: int, keep: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    spool = Spool(keep)
    for _ in range(count):
        spool.feed(data)
    whole = data * count
    kept = spool.value()
    lost = len(whole) - HEAD_BYTES - keep
    if lost <= 0:
        assert kept == whole
    else:
        gap = f"\n[... {lost} bytes left out ...]\n".encode()
        assert kept == whole[:HEAD_BYTES] + gap + (whole[-keep:] if keep else b"")
