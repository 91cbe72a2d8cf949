"""The line at the bottom of a run's live view, in as many cells as there are.

What is least needed goes first where the terminal is narrow: what the limits are, then what was
spent, then how long it has taken. Where the run is and who is awaited stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentrunner.screens.layout import duration, flat
from agentrunner.screens.story import Story
from agentrunner.text.terminal import cell_width, shorten

LEAST_DOING = 34
"""Cells of what is being done that are worth more than any other part."""
NEWEST = 40
"""Characters of an answer that are shown while it is written: the last ones."""
_WHO = {"tests": "your tests", "setup": "set-up"}


def fitted(parts: Sequence[Sequence[str]], cells: int) -> str:
    """`-- one -- two --` in at most `cells`; each part is given in wordings, the longest first.

    The last part is cut where the others, worded as short as they can be, leave too little.
    """
    chosen = [0] * len(parts)

    def line() -> str:
        words = [part[at] for part, at in zip(parts, chosen, strict=True)]
        return f"-- {' -- '.join(word for word in words if word)} --"

    last = len(parts) - 1
    room = min(LEAST_DOING, cell_width(parts[last][0]))
    for index in _order(parts):
        rest = cell_width(line()) - cell_width(parts[last][chosen[last]]) + room
        if rest <= cells:
            break
        chosen[index] += 1
    return shorten(line(), cells)


def _order(parts: Sequence[Sequence[str]]) -> list[int]:
    """Which part is worded shorter next: all once, then all twice; never the last one."""
    most = max(map(len, parts))
    before = range(len(parts) - 2, -1, -1)
    return [index for level in range(1, most) for index in before if level < len(parts[index])]


def spent_words(story: Story) -> str:
    """`43k tokens, $0.12`; "" before anything was spent."""
    tokens = amount(story.tokens) if story.tokens else ""
    money = f"${story.usd:.2f}" if story.usd else ""
    return ", ".join(filter(None, (tokens, money)))


def amount(tokens: int) -> str:
    """`812 tokens`, `43k tokens`, `1.2M tokens`."""
    if tokens < 1000:
        return f"{tokens} tokens"
    return f"{tokens / 1000:.0f}k tokens" if tokens < 999_500 else f"{tokens / 1e6:.1f}M tokens"


def awaited_words(awaited: Mapping[str, object], seconds: float) -> str:
    """`planner: thinking, 12 s`, `your tests, 40 s of at most 10 min, once more: make test`."""
    who, what = str(awaited.get("who")), flat(str(awaited.get("what") or ""))
    if who == "planner":
        return _planner_words(awaited, seconds)
    limit = awaited.get("at_most_sec")
    most = f" of at most {minutes(limit)}" if isinstance(limit, int | float) else ""
    why = f", {flat(str(awaited['why']))}" if awaited.get("why") else ""
    return f"{_WHO.get(who, flat(who))}, {whole(seconds)}{most}{why}: {what}"


def doing_words(story: Story, silent: float, awaited: float) -> str:
    """What is being done, and by whom.

    `silent` are seconds since the last event, `awaited` those since somebody is awaited.
    """
    if story.awaited is not None:
        return awaited_words(story.awaited, awaited)
    if story.doing:
        return f"{flat(story.worker)}, {whole(silent)} ago: {flat(story.doing)}"
    return f"last sign of life {whole(silent)} ago"


def _planner_words(awaited: Mapping[str, object], seconds: float) -> str:
    """`planner: thinking, 12 s`; of one that streams `planner: reading 3k tokens, 12 s`, then
    `planner: writing, 120 tokens, 14 s: …`.
    """
    written, text = awaited.get("written_tokens"), flat(str(awaited.get("text") or ""))
    reads = awaited.get("prompt_tokens")
    if not isinstance(written, int) and isinstance(reads, int):
        return f"planner: reading {amount(reads)}, {whole(seconds)}"
    if not isinstance(written, int):
        return f"planner: thinking, {whole(seconds)}"
    if not text:
        return f"planner: thinking, {amount(written)}, {whole(seconds)}"
    end = text if len(text) <= NEWEST else f"…{text[1 - NEWEST :]}"
    return f"planner: writing, {amount(written)}, {whole(seconds)}: {end}"


def minutes(seconds: float) -> str:
    """Limits are set in minutes mostly; `90 s` where one is not."""
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 30 == 0 else f"{seconds:g} s"


def whole(seconds: float) -> str:
    """Seconds without a fraction, and minutes from the first one on."""
    return f"{round(seconds)} s" if seconds < 59.5 else duration(seconds)
