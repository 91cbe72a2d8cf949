"""A run in a terminal: a header, permanent lines, and one status line that is rewritten.

The status line is rewritten after a carriage return, without escape sequences, so nothing needs to
be restored when the process is killed. The only escape sequences that we send to a terminal are
colours, and the notification of `commands.console`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

from agentrunner.screens.layout import (
    MAX_WIDTH,
    PLAIN,
    Paint,
    cell,
    clock,
    count,
    flat,
    labelled,
    spread,
    tilde,
    wrap,
)
from agentrunner.screens.status_line import doing_words, fitted, minutes, spent_words, whole
from agentrunner.screens.story import Event, Story, StoryLine
from agentrunner.screens.worker_words import below_indent, live_lines
from agentrunner.state.budget import NAMES, amount_of
from agentrunner.text.cut import some_of
from agentrunner.text.terminal import cell_width
from agentrunner.text.times import moment

QUIET_SEC = 60
"""Seconds without an event after which the status line shows how long it has been quiet."""
_NAMED = 8
"""Most files that are named in the header."""
_TESTS_NAMED = 5
_UNSURE_NAMED = 2
_TEXT_AT = 20
"""Column where a line's text begins, after the time and the word."""


def _is_update(before: Event | None, event: Event) -> bool:
    """Whether an `awaiting` event only updates an earlier one, as from a streaming planner.

    A command that is awaited again has started anew.
    """
    keys = ("who", "what") if event.get("who") == "planner" else ("who", "what", "ts")
    return before is not None and all(before.get(key) == event.get(key) for key in keys)


class LiveView:
    """Takes events and returns permanent lines. Times are seconds of one monotonic clock."""

    def __init__(
        self,
        *,
        width: int = MAX_WIDTH,
        paint: Paint = PLAIN,
        home: str = "",
        timezone: tzinfo | None = None,
        words: bool = False,
        watched: bool = False,
    ) -> None:
        """With `words`, the worker's texts and finished commands become lines, too.

        `watched` is for a run that another process drives.
        """
        self.story = Story()
        self._width = min(width, MAX_WIDTH)
        self._paint = paint
        self._home = home
        self._timezone = timezone
        self._started: float | None = None
        self._last_event = 0.0
        self._words = words
        self._watched = watched
        self._awaited_since = 0.0
        self._wait_ends = 0.0
        """End of the present wait, on a clock that stops while the machine sleeps."""

    def fit(self, width: int) -> None:
        """Set the terminal's present width."""
        self._width = min(width, MAX_WIDTH)

    def feed(self, event: Event, now: float) -> list[str]:
        """Return lines; a question has none, as the prompt or the paused screen says it whole."""
        return self._fed(event, now, without=("question",))

    def _fed(self, event: Event, now: float, without: tuple[str, ...] = ()) -> list[str]:
        self._started = now if self._started is None else self._started
        self._last_event = now
        if event.get("event") == "run_resumed":  # a resumed run counts its time anew
            self._started = now
        before = self.story.awaited
        shown = [line for line in self.story.feed(event) if line.word not in without]
        lines = [text for line in shown for text in self._format(line)]
        if event.get("event") == "awaiting" and not _is_update(before, event):
            self._awaited_since = now
        if self._words and event.get("event") == "worker_event":
            lines += live_lines(event, self._width, self._paint)
        self._count_down(now, moment(event.get("ts")))
        if event.get("event") == "run_started":
            lines += self.head()
        return lines

    def head(self) -> list[str]:
        """Return the header; [] before the run has begun."""
        if not self.story.header:
            return []
        return header_lines(self.story, self._width, self._paint, self._home, self._watched)

    def replay(self, event: Event, now: float, wall: datetime) -> list[str]:
        at = moment(event.get("ts"))
        passed = (wall - at).total_seconds() if at is not None else 0.0
        words, self._words = self._words, False
        lines = self._fed(event, now - passed)
        self._words = words
        return [] if event.get("event") == "run_started" else lines

    def tick(self, now: float, wall: datetime) -> list[str]:
        """Return []: the status line itself is the sign of life."""
        self._count_down(now, wall)
        return []

    def _count_down(self, now: float, wall: datetime | None) -> None:
        """Update the end of the wait, a time of day that comes closer while the machine sleeps."""
        if self.story.waits_until is not None and wall is not None:
            self._wait_ends = now + (self.story.waits_until - wall).total_seconds()

    def flush(self, now: float) -> list[str]:
        return [text for line in self.story.flush() for text in self._format(line)]

    def status(self, now: float) -> str:
        """Return the status line; "" before the first event."""
        if self._started is None:
            return ""
        # One cell stays free, as some terminals wrap once the last one is written, and two for the
        # ^C that the terminal writes behind the line.
        return fitted(self._parts(now - self._started, now), self._width - 3)

    def _parts(self, elapsed: float, now: float) -> list[tuple[str, ...]]:
        """Return the status line's parts, each as alternatives from the longest to the shortest."""
        story, silent = self.story, now - self._last_event
        if story.waits_until is not None:
            ends = story.waits_until.astimezone(self._timezone)
            left = f"continues at {ends:%H:%M:%S}, in {clock(self._wait_ends - now)}"
            return [self._round_alternatives(), (left,), (flat(story.waits_for),)]
        if story.asks:
            asked = f"waits for you: {flat(story.asks)}"
            return [self._round_alternatives(), (whole(elapsed), ""), (asked,)]
        if silent >= QUIET_SEC and story.awaited is None:
            times = (whole(elapsed), clock(elapsed))
            return [self._round_alternatives(), times, (self._quiet(silent),)]
        doing = doing_words(story, silent, now - self._awaited_since)
        spent = spent_words(story)
        return [
            self._round_alternatives(),
            self._time_alternatives(elapsed),
            (spent, spent, "") if spent else ("",),
            (doing,),
        ]

    def _round_alternatives(self) -> tuple[str, ...]:
        if not self.story.round:
            return ((self.story.state or "starting").lower(),)
        short, most = f"round {self.story.round}", self.story.rounds_at_most
        return (f"{short} of at most {most}", short) if most else (short,)

    def _time_alternatives(self, elapsed: float) -> tuple[str, ...]:
        limit = (self.story.header.get("limits") or {}).get("wall_sec")
        taken = whole(elapsed)
        short = clock(elapsed)
        return (f"{taken} of {minutes(limit)}", taken, short) if limit else (taken, short)

    def _quiet(self, silent: float) -> str:
        limit = (self.story.header.get("limits") or {}).get("idle_timeout_sec")
        stop = f", stopped at {minutes(limit)}" if limit and self.story.round else ""
        who = f"{flat(self.story.worker)}: silent" if self.story.at_work else "no sign of life"
        return f"{who} for {whole(silent)}{stop}"

    def _format(self, line: StoryLine) -> list[str]:
        if line.quiet:
            return []
        stamp = _time_of_day(line.ts, self._timezone)
        lead = f"{stamp if line.word else '':<8}  {cell(line.word, 8)}  "
        indent = below_indent(self._width)
        below = [text for more in line.more for text in wrap(more, self._width, indent)]
        if len(indent) < _TEXT_AT:
            shown = self._narrow(lead if line.word else indent, line, indent)
        else:
            room = self._width - _TEXT_AT - (cell_width(line.aside) + 2 if line.aside else 0)
            first, *rest = wrap(line.text, room)
            top = spread(lead + first, line.aside, self._width)
            shown = [top.rstrip(), *(indent + text for text in rest)]
        shown += below
        return [self._coloured(text, line.word) for text in shown]

    def _narrow(self, lead: str, line: StoryLine, indent: str) -> list[str]:
        """Return a text that goes on below its own time and word, as what is below it does."""
        at = len(indent)
        first, *rest = wrap(lead[at:] + line.text, self._width, indent)
        lines = [lead[:at] + first[at:], *rest]
        if line.aside:
            beside = cell_width(f"{lines[-1]}  {line.aside}") <= self._width
            lines.append(spread(lines.pop() if beside else "", line.aside, self._width))
        return lines

    def _coloured(self, text: str, word: str) -> str:
        if word == "warning":
            return text.replace(word, self._paint.warn(word), 1)
        if word not in ("check", "baseline"):
            return text
        text = re.sub(r"\bFAIL\b", lambda match: self._paint.bad(match[0]), text)
        return re.sub(r"\bpass\b", lambda match: self._paint.good(match[0]), text)


def header_lines(
    story: Story, width: int, paint: Paint, home: str, watched: bool = False
) -> list[str]:
    """Return what will be done, where, by whom and in which limits, before anything is spent."""
    title = " · ".join(flat(part) for part in (story.task_id, story.title) if part)
    run = f"run {flat(story.run_id)}"
    if cell_width(f"{title}  {run}") > width and flat(story.run_id).startswith(story.task_id):
        title = flat(story.title)  # the run's id has that of the task in it
    beside = cell_width(f"{title}  {run}") <= width
    top = [spread(title, run, width)] if beside else [*wrap(title, width), run]
    lines = ["", *map(paint.bold, top)]
    for label, text in header_rows(story.header, home):
        lines += labelled(label, text, width)
    where = _where_edits_appear(story.header.get("landing") or {}) + " Undo: agentrunner undo"
    if story.header.get("part_of"):
        where = "It is a task of a plan: agentrunner plan run continues with what comes of it."
    keys = "Ctrl-C stops the worker, keeps the run; in another window: agentrunner watch"
    if watched:
        keys = "Another process drives it. Ctrl-C ends this view, not the run."
    foot = f"{where}\n{keys}"
    return [*lines, *wrap(foot, width, "  "), ""]


def _where_edits_appear(landing: Mapping[str, Any]) -> str:
    if not landing:
        return "Edits appear in this checkout. Nothing is committed."
    if landing.get("worktree"):
        return "Edits appear in a work tree of their own, and on a branch when it is COMPLETE."
    return "Edits appear in this checkout, and are committed when it is COMPLETE."


def header_rows(header: Mapping[str, Any], home: str) -> list[tuple[str, str]]:
    """Return the header as label and text; also the top of --dry-run."""
    branch = header.get("branch")
    repo = tilde(str(header.get("repo") or "?"), home) + (f", branch {branch}" if branch else "")
    tests, where = header.get("tests") or "none", header.get("tests_where")
    rows = [
        ("repo", repo),
        *_landing_rows(header.get("landing") or {}, home),
        ("planner", str(header.get("planner") or "?")),
        ("worker", "; ".join([str(header.get("worker") or "?"), *_named(header, "key")])),
        ("sandbox", str(header.get("box") or "?")),
        ("reaches", "; ".join(_named(header, "reach") or _named(header, "network")) or "none"),
        *(("set-up", text) for text in _named(header, "setup")),
        ("tests", f"{tests}  ({where})" if where else str(tests)),
        *_env_rows(header.get("env") or {}),
        *(("counts", text) for text in counts_lines(header.get("inputs"))),
        ("limits", _limits(header.get("limits") or {})),
    ]
    if header.get("completion"):
        rows.append(("mode", str(header["completion"])))
    rows += [("policy", tilde(str(one["path"]), home)) for one in header.get("policies") or []]
    return rows + [("note", str(notice)) for notice in header.get("notices") or []]


def _env_rows(env: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [("env", ", ".join(f"{name}={value}" for name, value in env.items()))] if env else []


def counts_lines(inputs: Mapping[str, Any] | None) -> list[str]:
    """Return what counts as tests, as product and as unsure, each list cut after a few.

    Last comes a test command of which no test tool reports names.
    """
    if not inputs:
        return []
    parts = []
    for name, most in (("tests", _TESTS_NAMED), ("product", _NAMED)):
        entries = [flat(str(one["path"])) for one in inputs.get(name) or []]
        if entries:
            total = len(entries) + int(inputs.get(f"{name}_more") or 0)
            parts.append(f"as {name}: {some_of(entries, most, total)}")
    unsure = inputs.get("unsure") or []
    parts += [f"unsure: {flat(one['path'])}, {flat(one['why'])}" for one in unsure[:_UNSURE_NAMED]]
    more = len(unsure) - _UNSURE_NAMED + int(inputs.get("unsure_more") or 0)
    if more > 0:
        parts.append(f"{more} more unsure")
    if nameless := inputs.get("nameless"):
        parts.append(f"by its exit code, as it reports no test names: {flat(str(nameless))}")
    return [" · ".join(parts)] if parts else []


def _landing_rows(landing: Mapping[str, Any], home: str) -> list[tuple[str, str]]:
    """Return where the work goes, and what was and was not taken along."""
    if not landing:
        return []
    branch = flat(str(landing.get("branch") or "the one checked out"))
    base = f", from {str(landing['base'])[:10]}" if landing.get("base") else ""
    place = landing.get("worktree")
    rows = [("commit", f"on {branch}{base}{'' if place else ', in this checkout'}")]
    if place and landing.get("base"):
        rows.append(("works in", tilde(str(place), home)))
    carried = [flat(str(name)) for name in landing.get("carried") or []]
    if carried:
        number = len(carried) + int(landing.get("carried_more") or 0)
        shown = " ".join(carried[:_NAMED]) + (" …" if number > _NAMED else "")
        rows.append(("takes", f"{count(number, 'uncommitted file')}: {shown}"))
    if left := landing.get("left"):
        names = " ".join(flat(str(name)) for name in left[:_NAMED])
        rows.append(("leaves", f"repositories of their own, not taken along: {names}"))
    return rows


def _named(header: Mapping[str, Any], key: str) -> list[str]:
    return [str(header[key])] if header.get(key) else []


def _limits(limits: Mapping[str, Any]) -> str:
    parts = []
    if most := limits.get("rounds_at_most"):
        parts.append(f"at most {count(int(most), 'round')}")
    if limits.get("run_time_sec"):
        parts.append(f"{minutes(limits['run_time_sec'])} each")
    if limits.get("wall_sec") is not None:
        parts.append(f"{minutes(limits['wall_sec'])} in all")
    counted = [name for name in NAMES if name != "wall_sec" and limits.get(name) is not None]
    parts += [amount_of(name, float(limits[name])) for name in counted]
    return ", ".join(parts) or "none"


def _time_of_day(ts: str, timezone: tzinfo | None) -> str:
    found = moment(ts)
    return f"{found.astimezone(timezone):%H:%M:%S}" if found else ""
