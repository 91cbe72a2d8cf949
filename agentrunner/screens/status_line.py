"""The status line of a run's live view, for any width.

In a narrow terminal the least needed goes first: the limits, then the spending. The round, the time
taken and who is awaited stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentrunner.screens.layout import count, duration, flat, thousands
from agentrunner.screens.story import Story
from agentrunner.text.terminal import cell_width, shorten

LEAST_DOING = 34
"""Cells of the current activity that outweigh any other part."""
NEWEST = 40
"""Characters shown of an answer while it is written: the last ones."""
_WHO = {"tests": "your tests", "setup": "set-up"}


def fitted(parts: Sequence[Sequence[str]], cells: int) -> str:
    """Format `-- one -- two --` in at most `cells`; each part has alternatives, longest first.

    The last part is cut if the others, in their shortest form, leave too little room.
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
    """Return which part to shorten next: all once, then all twice; never the last one."""
    most = max(map(len, parts))
    before = range(len(parts) - 2, -1, -1)
    return [index for level in range(1, most) for index in before if level < len(parts[index])]


def spent_words(story: Story) -> str:
    """Return `43k tokens, $0.12`; "" before anything was spent."""
    tokens = amount(story.tokens) if story.tokens else ""
    money = f"${story.usd:.2f}" if story.usd else ""
    return ", ".join(filter(None, (tokens, money)))


def amount(tokens: int) -> str:
    """Format `812 tokens`, `43k tokens`, `1.2M tokens`."""
    return f"{thousands(tokens)} tokens"


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
    """Return what is being done, and by whom.

    `silent` is the number of seconds since the last event, `awaited` those of the present wait.
    """
    if story.awaited is not None:
        return awaited_words(story.awaited, awaited)
    if story.doing:
        return f"{flat(story.worker)}, {whole(silent)} ago: {flat(story.doing)}"
    if story.at_work:
        return f"{flat(story.worker)}, silent {whole(silent)}"
    return f"AgentRunner, {whole(silent)}"


def _planner_words(awaited: Mapping[str, object], seconds: float) -> str:
    """Return `planner: thinking, 12 s`; for one that streams `planner: reading 3k tokens, 12 s`,
    then `planner: writing, 120 tokens, 14 s: …`.
    """
    written, text = awaited.get("written_tokens"), flat(str(awaited.get("text") or ""))
    reads, failed = awaited.get("prompt_tokens"), awaited.get("failed_tries")
    if isinstance(failed, int):
        return f"planner: {count(failed, 'try', 'tries')} without an answer, {whole(seconds)}"
    if not isinstance(written, int) and isinstance(reads, int):
        return f"planner: reading {amount(reads)}, {whole(seconds)}"
    if not isinstance(written, int):
        return f"planner: thinking, {whole(seconds)}"
    if not text:
        return f"planner: thinking, {amount(written)}, {whole(seconds)}"
    end = text if len(text) <= NEWEST else f"…{text[1 - NEWEST :]}"
    return f"planner: writing, {amount(written)}, {whole(seconds)}: {end}"


def minutes(seconds: float) -> str:
    """Format a limit in minutes, as most are set; `100 s` if it is no such number.

    One that was calculated is not told more precisely than anybody could wait.
    """
    if seconds >= 60 and seconds % 30 == 0:
        return f"{seconds / 60:g} min"
    return f"{round(seconds, 1 if seconds < 10 else None):g} s"


def whole(seconds: float) -> str:
    """Format seconds without a fraction, and with minutes from the first one on."""
    return f"{round(seconds)} s" if seconds < 59.5 else duration(seconds)
