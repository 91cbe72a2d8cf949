"""What a worker's own lines tell of where it is: at its end, in a storm, before a login.

Standard library only, for the supervisor.
"""

from __future__ import annotations

import re
from math import inf
from typing import NamedTuple

LINES = 50
"""Of one read only the last so many lines are looked at: what counts here is said slowly, or last.

It makes a flood cheap. A read is at most 64 KiB.
"""
LINE_LIMIT = 1 << 13
"""Bytes of a line that are looked at: no more, as a careless pattern takes time by their square."""
PROMPT_LIMIT = 400
"""A longer line is no prompt to anybody."""


class OutputWatch(NamedTuple):
    """What the supervisor looks for in each line of output, to stop a worker that leads nowhere.

    Patterns are regular expressions over bytes, searched in the first 8 KiB of one line; "" looks
    for nothing. Lines of nothing but blanks are none.
    """

    final: str = ""
    """A line of stdout after which nothing comes there: its last event."""
    final_grace_sec: float = 10
    """Seconds in which it must exit after that; another line on stdout undoes it."""
    retry: str = ""
    """A line of either stream that tells of one more try at the model."""
    retries: int = 8
    """So many of them, with no other line of stdout between, are a storm."""
    login: str = ""
    """A line of either stream that asks somebody to log in, who is not there.

    It need not have ended, and is not longer than 400 bytes.
    """


class Watcher:
    """Reads along with both streams, and says when the worker is to be stopped."""

    def __init__(self, watch: OutputWatch) -> None:
        self._final = _pattern(watch.final)
        self._retry = _pattern(watch.retry)
        self._login = _pattern(watch.login)
        self._grace = watch.final_grace_sec
        self._most = watch.retries
        self._blind = not (watch.final or watch.retry or watch.login)
        self._held = {True: b"", False: b""}
        """The line that has not ended yet, of stdout and of stderr."""
        self._retries = 0
        self._seen = ""
        self.limit = inf
        """When a worker that has told its last event is past its grace."""

    def feed(self, data: bytes, now: float, *, stdout: bool) -> None:
        """Take a read of one stream at the time `now`, in seconds."""
        if self._blind:
            return
        parts = (self._held[stdout] + data).rsplit(b"\n", LINES)
        rest = parts.pop()
        if len(parts) == LINES:
            del parts[0]  # all lines before the last ones
            if stdout:
                self._say_other(inf)
        for part in parts:
            line = part[:LINE_LIMIT]
            if line and not line.isspace():
                self._hear(line, now, stdout)
        self._ask(rest)
        self._held[stdout] = rest[:LINE_LIMIT]

    def _hear(self, line: bytes, now: float, stdout: bool) -> None:
        if self._retry is not None and self._retry.search(line):
            self._retries += 1
            self.limit = inf
            if self._retries >= self._most and not self._seen:
                self._seen = "retry_storm"
        elif stdout:
            final = self._final is not None and self._final.search(line)
            self._say_other(now + self._grace if final else inf)
        self._ask(line)

    def _say_other(self, limit: float) -> None:
        """It says something else than that it tries again."""
        self._retries = 0
        self.limit = limit

    def _ask(self, line: bytes) -> None:
        short = self._login is not None and len(line) <= PROMPT_LIMIT
        if short and self._login is not None and self._login.search(line) and not self._seen:
            self._seen = "login_prompt"

    @property
    def finished(self) -> bool:
        """Whether its last event is what it said last, so that its silence means nothing."""
        return self.limit < inf

    def reason(self, now: float) -> str:
        """Why it is to be stopped at the time `now`, "" if it is not."""
        return self._seen or ("lingered" if now >= self.limit else "")


def _pattern(text: str) -> re.Pattern[bytes] | None:
    return re.compile(text.encode()) if text else None
