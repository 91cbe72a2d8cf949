"""Text that every store and encoding accepts."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD.

    JSON replies may contain them; SQLite, UTF-8 files and checkpoints cannot.
    """
    return _UNSTORABLE.sub("\ufffd", text)
