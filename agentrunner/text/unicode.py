"""Text that every store and encoding accepts."""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex

_UNSTORABLE = lazy_regex("[\x00\ud800-\udfff]")
_NO_BYTE = lazy_regex("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that stand for no byte: `to_text` gives none, an escape in JSON may."""


def clean(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD.

    JSON replies may contain them; SQLite, UTF-8 files and checkpoints cannot.
    """
    if text.isascii() and "\0" not in text:  # at once, where a prompt takes the pattern 0.3 ms
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def to_text(data: bytes) -> str:
    """Return bytes, such as the name of a file, as text that can be converted back."""
    return data.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """Return the bytes of any text: those of `to_text` as they were.

    Names of files and tests may hold surrogates, on which a plain `encode` fails.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _NO_BYTE.sub("\ufffd", text).encode("utf-8", "surrogateescape")
