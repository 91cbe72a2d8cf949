"""The note of a plan: the state of its tasks, what was merged, what is open, what it cost.

`plan_note` is pure: facts in, Markdown out. The executor calls `write_plan_note` after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentrunner.config.markdown import Language
from agentrunner.notes.markdown import flat
from agentrunner.notes.note_model import BillLine
from agentrunner.notes.render import marker, render_plan
from agentrunner.notes.sources import local_time, period
from agentrunner.notes.view import map_texts, sum_of
from agentrunner.notes.writer import WrittenNote, write_marked
from agentrunner.results import BillEntry
from agentrunner.state.lifecycle import END_STATES, Tone
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import sanitize
from agentrunner.text.times import moment

MAX_DRAWN = 120
"""Most tasks in a diagram: renderers give up on larger ones."""
MAX_EVENTS = 200
DAY_SEC = 86_400
MAX_LABEL = 40
"""Most characters of a title in a diagram."""

EventKind = Literal[
    "changed",
    "undone",
    "started",
    "ended",
    "merged",
    "done",
    "conflict",
    "asked",
    "answered",
    "notice",
]

_TONES: Mapping[Tone, str] = {"good": "done", "warn": "crit", "bad": "crit"}
_STYLES: Mapping[str, str] = {
    **{str(state): _TONES[end.tone] for state, end in END_STATES.items()},
    "RUNNING": "active",
    "PLANNING": "active",
    "VALIDATING": "active",
    "FIXING": "active",
}
"""How a diagram marks a task; other states are not marked."""
_UNDRAWABLE = lazy_regex(r"[^\w \-.,/+…\u3001-\u303f\u30fb\uff01-\uff5e]+")
"""Other characters end labels, nodes or comments in Mermaid, whose own syntax is ASCII."""


class PlanRow(Struct, frozen=True):
    """A phase or task of the plan, in the order of the tree."""

    title: str
    depth: int = 0
    """0 for entries directly below the root."""
    task_id: str = ""
    """"" for a phase."""
    status: str = ""
    """As people see it."""
    detail: str = ""
    """The outcome of its latest run, in one sentence."""
    depends_on: tuple[str, ...] = ()
    run_id: str = ""
    started_at: str = ""
    """Start of its first run; UTC, ISO 8601."""
    ended_at: str = ""
    """"" while it is worked on."""
    commit: str = ""
    """The commit merged into the plan's branch."""
    files: tuple[str, ...] = ()
    """Files that the commit changes."""
    notes: tuple[str, ...] = ()
    """File names of its runs' notes beside this one, in the order of the runs."""


class PlanQuestion(Struct, frozen=True):
    """A question that only a person can answer."""

    number: int
    text: str
    task_id: str = ""


class NotedEvent(Struct, frozen=True):
    """An event for the note."""

    at: str
    """UTC, ISO 8601."""
    kind: EventKind
    task_id: str = ""
    text: str = ""


class PlanFacts(Struct, frozen=True):
    """Everything that the note of a plan shows."""

    plan_id: str
    """Safe as part of a file name."""
    goal: str
    version: int
    branch: str
    """The branch of the user's repository into which everything is merged."""
    rows: tuple[PlanRow, ...] = ()
    questions: tuple[PlanQuestion, ...] = ()
    """Open questions."""
    events: tuple[NotedEvent, ...] = ()
    """In order."""
    bills: Mapping[str, Sequence[BillEntry]] | None = None
    """By task id, or "" for the planning: rows as `money.bill.bill_of` returns them."""
    pull_request: str = ""
    """Its URL."""


def plan_note(
    facts: PlanFacts, language: Language, *, now: datetime, redact: Callable[[str], str] = str
) -> str:
    """Return the note as Markdown, under 1 MiB.

    `now` is an aware time; all times are shown in its zone. Terminal controls are removed from all
    texts, which then pass through `redact`.
    """
    plan: PlanFacts = map_texts(replace(facts, bills=None), lambda text: redact(sanitize(text)))
    tasks = [row for row in plan.rows if row.task_id]
    lines = _bill(facts.bills or {})
    text = render_plan(
        language,
        plan=plan,
        tasks=tasks,
        done=sum(row.status == "COMPLETE" for row in tasks),
        merged=[row for row in tasks if row.commit],
        period=period(min((row.started_at for row in tasks if row.started_at), default=""), now),
        now=local_time(now.isoformat(), now),
        events=[(local_time(one.at, now), one) for one in plan.events[-MAX_EVENTS:]],
        events_omitted=max(0, len(plan.events) - MAX_EVENTS),
        bill=map_texts(lines, lambda text: redact(sanitize(text))),
        gantt=gantt(plan.rows, now),
        graph=dependency_graph(tasks),
        undrawn=max(0, len(tasks) - MAX_DRAWN),
    )
    return f"{marker({'plan_id': plan.plan_id})}\n{text}"


def write_plan_note(
    repo: Path,
    note_dir: str,
    facts: PlanFacts,
    language: Language,
    *,
    now: datetime,
    fallback: Path,
    redact: Callable[[str], str] = str,
) -> WrittenNote:
    """Write the note to `repo/note_dir/plan-<id>.md`, or else to the file `fallback`.

    Raises UsageError for an id that is no file name, InfraError if neither place can be written.
    Blocks.
    """
    text = plan_note(facts, language, now=now, redact=redact)
    return write_marked(
        repo, note_dir, ("plan", facts.plan_id), facts.plan_id, text, fallback=fallback
    )


def gantt(rows: Sequence[PlanRow], now: datetime) -> str:
    """Return a Mermaid Gantt chart of the tasks that have begun; "" if there are none."""
    lines = []
    section, shown, drawn = "", "", 0
    for row in rows:
        if not row.task_id:
            section = row.title
        elif row.started_at and drawn < MAX_DRAWN:
            if section and section != shown:
                lines.append(f"    section {label(section)}")
                shown = section
            lines.append(f"    {_bar(row, now)}")
            drawn += 1
    if not drawn:
        return ""
    spans = [_span(row, now) for row in rows if row.task_id and row.started_at]
    several_days = max(ended for _, ended in spans) - min(begun for begun, _ in spans) > DAY_SEC
    axis = "%m-%d %H:%M" if several_days else "%H:%M"
    return "\n".join(["gantt", "    dateFormat X", f"    axisFormat {axis}", *lines])


def _span(row: PlanRow, now: datetime) -> tuple[int, int]:
    """Return start and end of a task in seconds; now, if it has not ended."""
    begun, ended = (
        int((moment(text) or now).timestamp()) for text in (row.started_at, row.ended_at)
    )
    return begun, max(ended, begun + 1)  # Mermaid would draw a zero length as a day


def _bar(row: PlanRow, now: datetime) -> str:
    begun, ended = _span(row, now)
    style = f"{_STYLES[row.status]}, " if row.status in _STYLES else ""
    return f"{label(f'{row.task_id} {row.title}')} :{style}{begun}, {ended}"


def dependency_graph(tasks: Sequence[PlanRow]) -> str:
    """Return a Mermaid graph of the tasks' dependencies; "" for no tasks."""
    drawn = tasks[:MAX_DRAWN]
    names = {row.task_id: f"t{number}" for number, row in enumerate(drawn, 1)}
    if not names:
        return ""
    return "\n".join(["graph TD", *(f"    {line}" for line in _graph_lines(drawn, names))])


def _graph_lines(tasks: Sequence[PlanRow], names: Mapping[str, str]) -> Iterator[str]:
    for row in tasks:
        style = _STYLES.get(row.status, "")
        mark = f":::{style}" if style else ""
        yield f'{names[row.task_id]}["{label(f"{row.task_id} {row.title}")}"]{mark}'
    for row in tasks:
        for other in row.depends_on:
            if other in names:
                yield f"{names[other]} --> {names[row.task_id]}"
    yield "classDef done fill:#d5f5d5,stroke:#2e7d32"
    yield "classDef crit fill:#fbd9d9,stroke:#c62828"
    yield "classDef active fill:#fdf3cf,stroke:#b28704"


def label(text: str) -> str:
    """Return a text as a diagram label: words only, so that nothing is read as syntax."""
    return flat(_UNDRAWABLE.sub(" ", text), MAX_LABEL) or "-"


def _bill(bills: Mapping[str, Sequence[BillEntry]]) -> tuple[BillLine, ...]:
    """Return a line for each task, then their sum if there are several."""
    lines = []
    for task_id, rows in bills.items():
        if rows:
            models = ", ".join(dict.fromkeys(row.model for row in rows if row.model))
            lines.append(replace(sum_of(rows), who=task_id, model=models))
    whole = [row for rows in bills.values() for row in rows]
    return (*lines, sum_of(whole)) if len(lines) > 1 else tuple(lines)
