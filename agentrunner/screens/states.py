"""States and times as people read them."""

from __future__ import annotations

from datetime import datetime, timedelta

from agentrunner.screens.layout import Paint
from agentrunner.state.lifecycle import END_STATES, UNDONE

_NEEDS_A_LOOK = ("waiting", "stopped", UNDONE)


def coloured(text: str, paint: Paint) -> str:
    """Colour a text that begins with the state of a run or a task, in the word of all screens."""
    for end in END_STATES.values():
        if text.startswith(end.word):
            return paint.toned(end.tone, text)
    if text.startswith(_NEEDS_A_LOOK):
        return paint.warn(text)
    return text if not text or text.startswith("running") else paint.dim(text)


def ago(moment: datetime | None, now: datetime) -> str:
    """Format a past time: `4 min ago`, `yesterday`, `Thu 18:20`, `2026-11-02`; "" for none."""
    if moment is None:
        return ""
    local, passed = moment.astimezone(now.tzinfo), now - moment
    if passed < timedelta(minutes=1):
        return "now"
    if passed < timedelta(hours=1):
        return f"{int(passed.total_seconds() // 60)} min ago"
    days = (now.date() - local.date()).days
    if days == 0:
        return local.strftime("%H:%M")
    if days == 1:
        return "yesterday"
    return f"{_DAYS[local.weekday()]} {local:%H:%M}" if days < 7 else local.strftime("%Y-%m-%d")


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""English in any locale, like everything else on the screen."""
