"""Searches with a pattern that somebody else wrote, in bounded time.

A pattern such as `(a+)+$` runs practically for ever on the wrong text, and Python cannot interrupt
it. So another process does the search, and is killed when it takes too long.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

MOST_CHARS = 1_000_000
LIMIT_SEC = 5.0
SEARCH = """\
import json, re, sys
pattern, text = json.load(sys.stdin)
hit = re.search(pattern, text, re.MULTILINE)
print(hit.start() if hit else -1)
"""


class PatternError(ValueError):
    """The pattern cannot be read, or takes too long on this text."""


def search(pattern: str, text: str) -> int:
    """The position of the first match in the first million characters of `text`, else -1.

    Raises PatternError after 5 s, or where the pattern is invalid. Blocks.
    """
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"the pattern cannot be read: {error}") from error
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SEARCH],
            input=json.dumps([pattern, text[:MOST_CHARS]]).encode(),
            capture_output=True,
            timeout=LIMIT_SEC,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired as error:
        raise PatternError(f"the pattern takes longer than {LIMIT_SEC:g} s") from error
    if done.returncode != 0:
        raise PatternError("the search failed")
    return int(done.stdout)
