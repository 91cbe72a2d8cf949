"""A run as a log: one line per event with its time, for CI and for pipes."""

from __future__ import annotations

import json
from datetime import datetime, tzinfo

from agentrunner.screens.layout import duration, flat
from agentrunner.screens.story import Event, Story, StoryLine
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.times import moment

HEARTBEAT_SEC = 60
_BARE = lazy_regex(r"[^\s\"'=]+")


class PlainView:
    """Takes events and returns lines of text. Times are seconds of one monotonic clock."""

    def __init__(self, timezone: tzinfo | None = None) -> None:
        self.story = Story()
        self._timezone = timezone
        self._started: float | None = None
        self._last_event = 0.0
        self._last_line = 0.0

    def fit(self, width: int) -> None:
        """Do nothing: a log has no width."""

    def feed(self, event: Event, now: float) -> list[str]:
        self._started = now if self._started is None else self._started
        self._last_event = now
        return self._format_all(self.story.feed(event), now)

    def head(self) -> list[str]:
        """Return []: the first line of a log already holds the header."""
        return []

    def replay(self, event: Event, now: float, wall: datetime) -> list[str]:
        return self.feed(event, now)

    def tick(self, now: float, wall: datetime) -> list[str]:
        """Return a sign of life once a minute while nothing else is printed."""
        if self._started is None or now - self._last_line < HEARTBEAT_SEC:
            return []
        awaited = self.story.awaited or {}
        fields = {
            "round": self.story.round,
            "elapsed": duration(now - self._started).replace(" ", ""),
            "last": duration(now - self._last_event).replace(" ", ""),
            "awaits": awaited.get("who"),
            "what": awaited.get("what"),
            "why": awaited.get("why"),
            "cmd": self.story.doing,
            "until": self.story.waits_until and self.story.waits_until.isoformat(),
        }
        return self._format_all([StoryLine(wall.isoformat(), "alive", "", fields=fields)], now)

    def status(self, now: float) -> str:
        """Return "": a log has no line that is rewritten."""
        return ""

    def flush(self, now: float) -> list[str]:
        return self._format_all(self.story.flush(), now)

    def _format_all(self, lines: list[StoryLine], now: float) -> list[str]:
        if lines:
            self._last_line = now
        return [text for line in lines for text in self._format(line)]

    def _format(self, line: StoryLine) -> list[str]:
        word = line.word.split(" ")[0] or "worker"
        facts = " ".join(
            f"{flat(key)}={_value(value)}"
            for key, value in line.fields.items()
            if value not in (None, "")
        )
        stamp = _local(line.ts, self._timezone)
        first = f"{stamp} {word:<8} {facts}".rstrip()
        return [first, *(f"{stamp} {'':<8} {flat(more)}" for more in line.more)]


def _value(value: object) -> str:
    """Format a value bare if it is one plain word, else quoted, so that shlex splits the line."""
    text = flat(str(value).lower() if isinstance(value, bool) else str(value))
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _local(ts: str, timezone: tzinfo | None) -> str:
    """Format as `2026-11-21T14:10:05+09:00`; an unreadable time stays as it is."""
    found = moment(ts)
    return found.astimezone(timezone).isoformat(timespec="seconds") if found else flat(ts)
