"""Text that every store and encoding takes."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD.

    JSON replies may carry them; SQLite, UTF-8 files and checkpoints do not.
    """
    return _UNSTORABLE.sub("\ufffd", text)
