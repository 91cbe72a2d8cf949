"""`logs`: the run's events with the workers' texts and commands in between."""

from __future__ import annotations

from datetime import tzinfo

from agentrunner.screens.layout import PLAIN, WIDTH, Paint
from agentrunner.screens.live import LiveView
from agentrunner.screens.story import Event
from agentrunner.screens.worker_words import log_lines

_TIMELESS = 0.0
"""A log is read afterwards; nothing in it depends on the reader's clock."""


class LogView:
    """Takes events and returns lines."""

    def __init__(
        self,
        *,
        width: int = WIDTH,
        paint: Paint = PLAIN,
        timezone: tzinfo | None = None,
        only_round: int | None = None,
    ) -> None:
        self._view = LiveView(width=width, paint=paint, timezone=timezone)
        self._width = width
        self._paint = paint
        self._only_round = only_round

    def feed(self, event: Event) -> list[str]:
        """Return the lines that `event` completes; [] if it belongs to another round."""
        lines = self._view.feed(event, _TIMELESS)
        if event.get("event") == "worker_event":
            lines += log_lines(event, self._width, self._paint)
        return lines if self._only_round in (None, self._view.story.round) else []

    def flush(self) -> list[str]:
        lines = self._view.flush(_TIMELESS)
        return lines if self._only_round in (None, self._view.story.round) else []

    @property
    def rounds(self) -> int:
        """Number of rounds in the events so far."""
        return self._view.story.round
