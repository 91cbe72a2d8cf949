"""Recognises from a worker's output that it has finished, retries endlessly, or wants a login.

Standard library only, for the supervisor.
"""

from __future__ import annotations

import re
from math import inf
from typing import Literal, NamedTuple

ProcessOutcome = Literal[
    "exited", "lingered", "timeout", "idle_timeout", "retry_storm", "login_prompt", "output_limit",
    "disk_limit", "oom", "egress", "interrupted", "lost", "infra",
]  # fmt: skip
"""How a worker's process ended, as the supervisor saw it.

`lingered`: it had printed its last event, did not exit, and was ended. `retry_storm`,
`login_prompt`: it was ended for what its `OutputWatch` looks for.
"""

LINES = 50
"""Only the last lines of one read are checked, this many: what matters is printed slowly, or last.

This keeps a flood cheap. A read is at most 64 KiB.
"""
LINE_LIMIT = 1 << 13
"""The checked bytes of a line: not more, because a careless pattern takes quadratic time."""
PROMPT_LIMIT = 400
"""A longer line is not a prompt."""


class OutputWatch(NamedTuple):
    """What the supervisor looks for in each line of output, to stop a worker that is stuck.

    Patterns are regular expressions over bytes, searched in the first 8 KiB of one line; "" looks
    for nothing. Blank lines are ignored.
    """

    final: str = ""
    """A line of stdout after which nothing comes there: its last event."""
    final_grace_sec: float = 10
    """Seconds in which it must exit after that; another line on stdout cancels this."""
    retry: str = ""
    """A line of either stream that reports another try at the model."""
    retries: int = 8
    """This many of them, with no other line of stdout between, are a storm."""
    login: str = ""
    """A line of either stream that asks somebody to log in; nobody is there to do it.

    It may be unfinished, and is at most 400 bytes long.
    """


class Watcher:
    """Reads both streams along, and decides when the worker must be stopped."""

    def __init__(self, watch: OutputWatch) -> None:
        self._final = _pattern(watch.final)
        self._retry = _pattern(watch.retry)
        self._login = _pattern(watch.login)
        self._grace = watch.final_grace_sec
        self._max_retries = watch.retries
        self._looks_for_nothing = not (watch.final or watch.retry or watch.login)
        self._unfinished = {True: b"", False: b""}
        """The unfinished line of stdout and of stderr."""
        self._retries = 0
        self._seen = ""
        self.limit = inf
        """When the grace period of a worker that has printed its last event ends."""

    def feed(self, data: bytes, now: float, *, stdout: bool) -> None:
        """Process what was read from one stream at the time `now`, in seconds."""
        if self._looks_for_nothing:
            return
        parts = (self._unfinished[stdout] + data).rsplit(b"\n", LINES)
        rest = parts.pop()
        if len(parts) == LINES:
            del parts[0]  # all lines before the last ones
            if stdout:
                self._note_other_line(inf)
        for part in parts:
            line = part[:LINE_LIMIT]
            if line and not line.isspace():
                self._check_line(line, now, stdout)
        self._check_for_login_prompt(rest)
        self._unfinished[stdout] = rest[:LINE_LIMIT]

    def _check_line(self, line: bytes, now: float, stdout: bool) -> None:
        if self._retry is not None and self._retry.search(line):
            self._retries += 1
            self.limit = inf
            if self._retries >= self._max_retries and not self._seen:
                self._seen = "retry_storm"
        elif stdout:
            final = self._final is not None and self._final.search(line)
            self._note_other_line(now + self._grace if final else inf)
        self._check_for_login_prompt(line)

    def _note_other_line(self, limit: float) -> None:
        """Record a line that is not about another try."""
        self._retries = 0
        self.limit = limit

    def _check_for_login_prompt(self, line: bytes) -> None:
        short = self._login is not None and len(line) <= PROMPT_LIMIT
        if short and self._login is not None and self._login.search(line) and not self._seen:
            self._seen = "login_prompt"

    @property
    def finished(self) -> bool:
        """Whether its last event is the last thing it printed: its silence then means nothing."""
        return self.limit < inf

    def reason(self, now: float) -> str:
        """Return why it must be stopped at the time `now`, or ""."""
        return self._seen or ("lingered" if now >= self.limit else "")


def _pattern(text: str) -> re.Pattern[bytes] | None:
    return re.compile(text.encode()) if text else None
