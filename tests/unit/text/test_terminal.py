"""Nothing that moves a cursor, sets a title or hides text reaches a terminal."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentrunner.text.terminal import (
    cell_width,
    escape,
    one_line,
    sanitize,
    shorten,
)

ESC = "\x1b"
SEQUENCES = {
    **{f"sgr {code}": f"{ESC}[{code}m" for code in ("0", "1;31", "38;5;196", "38;2;1;2;3", "4:3")},
    **{f"cursor {final}": f"{ESC}[2{final}" for final in "ABCDEFGHJKSTfnsu"},
    "clear": f"{ESC}[2J{ESC}[3J",
    "alternate screen": f"{ESC}[?1049h",
    "hide cursor": f"{ESC}[?25l",
    "bracketed paste": f"{ESC}[?2004h",
    "mouse": f"{ESC}[?1000;1006h",
    "soft reset": f"{ESC}[!p",
    "cursor style": f"{ESC}[4 q",
    "report": f"{ESC}[6n",
    "device attributes": f"{ESC}[>c",
    "key modifiers": f"{ESC}[>4;2m",
    "window": f"{ESC}[22;0;0t",
    "scroll region": f"{ESC}[1;5r",
    "csi 8 bit": "\x9b31m",
    "csi cut short": f"{ESC}[31",
    "title": f"{ESC}]0;owned\x07",
    "title st": f"{ESC}]2;owned{ESC}\\",
    "title 8 bit": "\x9d0;owned\x9c",
    "clipboard": f"{ESC}]52;c;b3duZWQ=\x07",
    "link": f"{ESC}]8;;http://owned.example\x07",
    "link end": f"{ESC}]8;;{ESC}\\",
    "palette": f"{ESC}]4;1;rgb:ff/00/00\x07",
    "notification": f"{ESC}]9;owned\x07",
    "iterm file": f"{ESC}]1337;File=inline=1:owned\x07",
    "prompt mark": f"{ESC}]133;A\x07",
    "working folder": f"{ESC}]7;file://owned/\x07",
    "osc unterminated": f"{ESC}]0;owned",
    "osc cancelled": f"{ESC}]0;owned\x18",
    "osc substituted": f"{ESC}]0;owned\x1a",
    "dcs": f"{ESC}Pq#0;2;0;0;0owned{ESC}\\",
    "dcs 8 bit": "\x90owned\x9c",
    "decrqss": f"{ESC}P$qm{ESC}\\",
    "tmux": f"{ESC}Ptmux;owned{ESC}\\",
    "apc": f"{ESC}_Gowned{ESC}\\",
    "apc 8 bit": "\x9fowned\x9c",
    "pm": f"{ESC}^owned{ESC}\\",
    "pm 8 bit": "\x9eowned\x9c",
    "sos": f"{ESC}Xowned{ESC}\\",
    "sos 8 bit": "\x98owned\x9c",
    "reset": f"{ESC}c",
    "save": f"{ESC}7",
    "restore": f"{ESC}8",
    "charset": f"{ESC}(0",
    "charset g1": f"{ESC})B",
    "double height": f"{ESC}#3",
    "utf-8 off": f"{ESC}%@",
    "index": f"{ESC}D",
    "reverse index": f"{ESC}M",
    "index 8 bit": "\x84",
    "keypad": f"{ESC}=",
    "lone esc": ESC,
    "two esc": ESC + ESC,
    "bell": "\x07",
    "backspaces": "\x08\x08\x08",
    "shift out": "\x0e",
    "enquiry": "\x05",
    "nul": "\x00",
    "delete": "\x7f",
    "vertical tab": "\x0b",
    "form feed": "\x0c",
}
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def test_the_corpus_is_large() -> None:
    assert len(SEQUENCES) >= 60


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_sequences_go_with_their_payload(sequence: str) -> None:
    # A line end follows: after a sequence that is cut short, a letter would be part of it.
    assert sanitize(f"a{sequence}\nb") == "a\nb"


PIECES = st.one_of(
    st.sampled_from(sorted(SEQUENCES.values())),
    st.sampled_from(["\r", "\n", "\r\n", "[", "]", "3", ";", " ", "\\", "m"]),
    st.text(max_size=5),
)


@settings(deadline=None)
@given(st.lists(PIECES))
@example(["\r", "\x00", "\r"])
def test_nothing_unsafe_is_left_of_anything(chunks: list[str]) -> None:
    safe = sanitize("".join(chunks))
    assert not UNSAFE.search(safe)
    assert sanitize(safe) == safe


def test_an_unterminated_sequence_does_not_hide_the_next_line() -> None:
    assert sanitize(f"echo hi {ESC}]0;\nrm -rf x") == "echo hi \nrm -rf x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50%\r100%\r\n", "50%\n100%\n"),
        ("a\r\r\nb", "a\nb"),
        ("\x74ab\tc\n", "tab\tc\n"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u200bb\ufeffc", "a\\u200bb\\ufeffc"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u2028b", "a\\u2028b"),
        ("\ud800", "\ufffd"),
        ("日本語 עברית é", "日本語 עברית é"),
    ],
)
def test_what_stays_and_what_is_shown(text: str, expected: str) -> None:
    assert sanitize(text) == expected


def test_for_approval_everything_is_shown() -> None:
    assert escape(f"ls {ESC}]0;\x07 \r\u202e\n") == "ls \\x1b]0;\\x07 \\x0d\\u202e\n"


@pytest.mark.parametrize(
    ("text", "cells"),
    [("", 0), ("abc", 3), ("日本", 4), ("ｶﾅ", 2), ("e\u0301", 1), ("（任意）", 8), ("…", 1)],
)
def test_width_is_counted_in_cells(text: str, cells: int) -> None:
    assert cell_width(text) == cells


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("short", 5, "short"),
        ("shorter", 5, "shor…"),
        ("日本語の題名", 5, "日本…"),
        ("日本語の題名", 6, "日本…"),
        ("日本", 4, "日本"),
        ("ab cd", 4, "ab…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_shortening(text: str, cells: int, expected: str) -> None:
    assert shorten(text, cells) == expected


@settings(deadline=None)
@given(st.text(), st.integers(0, 40))
def test_one_line_fits(text: str, width: int) -> None:
    shown = one_line(text, width)
    assert cell_width(shown) <= width
    assert "\n" not in shown and not UNSAFE.search(shown)


@pytest.mark.series(3)
@pytest.mark.parametrize(
    "unit", [ESC, f"{ESC}]", f"{ESC}[", "\x9d", "\r", "\x9b1", f"{ESC}[1;", f"{ESC} ", "\u202e"]
)
def test_a_megabyte_of_anything_is_quick(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    begun = time.process_time()
    sanitize(text)
    assert time.process_time() - begun < 2  # of CPU; a square would take minutes
