"""Where a test failed: the lines of its own file that the failure's message names. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from agentrunner.verification.results.model import ReadFile, Results

RedLines = Mapping[str, frozenset[str]]
"""The text of such lines by test name, without the space around it."""
MOST_LINES = 20


def red_lines(
    before: Results | None, places: Mapping[str, Sequence[str]], read: ReadFile
) -> RedLines:
    """The text of the lines that were red, by test, in files of the tree that `read` reads.

    `places` are the names of tests by file. A test whose tool reports no line is left out.
    """
    found: dict[str, frozenset[str]] = {}
    for path, names in places.items() if before is not None else ():
        lines = (read(path) or b"").decode("utf-8", "replace").splitlines()
        for name in names:
            messages = [one.message for one in (before.named(name) if before else []) if one.red]
            numbers = {number for text in messages for number in _numbers(text, path)}
            texts = {lines[number - 1].strip() for number in numbers if 0 < number <= len(lines)}
            if texts := texts - {""}:
                found[name] = frozenset(texts)
    return found


def _numbers(message: str, path: str) -> list[int]:
    """Line numbers of a file in a message: `test_a.py:7`, `File "test_a.py", line 7`."""
    name = re.escape(posixpath.basename(path))
    hits = re.findall(rf"(?<![\w-]){name}[\"']?(?::|, line |\()(\d{{1,7}})", message)
    return [int(hit) for hit in hits[-MOST_LINES:]]
