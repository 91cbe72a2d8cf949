"""Make untrusted text safe to show in a terminal, and measure its cells."""

from __future__ import annotations

import re
import unicodedata

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import clean

# ECMA-48 and xterm. A control string (OSC, DCS, APC, PM, SOS) ends at its terminator, at anything
# that cancels it, and at a line end: an unterminated one must not hide what follows.
_STRING_OPENER = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"
_PAYLOAD = r"[^\x07\n\r\x18\x1a\x1b\x80-\x9f]*+"
_CSI_OPENER = r"(?:\x1b\[|\x9b)"

_SEQUENCE = lazy_regex(
    rf"{_STRING_OPENER}{_PAYLOAD}(?:\x07|\x1b\\|[\x18\x1a\x9c])?"
    rf"|{_CSI_OPENER}[0-?]*+[ -/]*+[@-~]?"
    r"|\x1b[ -/]*+[0-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
)
_LINE_END = lazy_regex(r"\r++\n?")
_HIDDEN = lazy_regex(
    "[\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)
_CONTROL = lazy_regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def sanitize(text: str) -> str:
    r"""`text` that moves no cursor, sets no title and hides nothing.

    Escape sequences go, with their payload; of the control characters only newline and tab stay,
    and a carriage return becomes a line end. Bidi and zero-width characters are shown as
    ``\u202e``, lone surrogates as U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", _LINE_END.sub("\n", text))
    return clean(_HIDDEN.sub(_escaped, text))


def escape(text: str) -> str:
    r"""`text` with every control character visible (``\x1b``) and nothing removed.

    For what a person is asked to approve: what is shown must be all that will run.
    """
    return clean(_HIDDEN.sub(_escaped, _CONTROL.sub(_escaped, text)))


def cell_width(text: str) -> int:
    """Return the columns of sanitised text: East Asian wide characters two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def shorten(text: str, cells: int) -> str:
    """Cut `text` to `cells` columns, with an ellipsis if something is left out."""
    if cell_width(text) <= cells:
        return text
    used = 0
    for index, character in enumerate(text):
        used += _cells(character)
        if used > cells - 1:
            return text[:index].rstrip() + "…" if cells > 0 else ""
    return text


def one_line(text: str, width: int) -> str:
    """Return `text` sanitised, on one line of at most `width` columns."""
    return shorten(" ".join(sanitize(text).split()), width)


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
