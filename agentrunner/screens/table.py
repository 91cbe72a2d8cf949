"""Tables: the runs of a repository, and what `validate` found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from agentrunner.screens.layout import (
    PLAIN,
    WIDTH,
    Paint,
    cell,
    clock,
    count,
    fit,
    flat,
    labelled,
    wrap,
)
from agentrunner.text.terminal import cell_width

Row = Mapping[str, Any]

_STATES = {"NEEDS_REVIEW": "needs review", "COMPLETE": "complete", "FAILED": "failed"}


_TITLED = 58
"""Cells beside the id from which on a title fits in, too: the id is what commands are given."""


def runs_table(
    rows: Sequence[Row],
    now: datetime,
    *,
    width: int = WIDTH,
    paint: Paint = PLAIN,
    all_repositories: bool = False,
) -> str:
    """The runs, newest first as they come. `now` is in the time zone to show."""
    if not rows:
        return "No runs yet" + ("." if all_repositories else " in this repository.")
    id_width = max(3, *(cell_width(flat(str(row["run_id"]))) for row in rows))
    id_width = min(id_width, width - 48)
    head = f"  {fit('RUN', id_width)}  {'STATE':<15}  {'LAST':<10}  ROUNDS  {'TIME':>7}"
    head += "  TASK" * (width - id_width >= _TITLED)
    lines = [paint.bold(head), *(_run_row(row, now, id_width, width, paint) for row in rows)]
    waiting = [row for row in rows if row.get("waiting")]
    foot = []
    if waiting:
        one = len(waiting) == 1
        name = flat(str(waiting[0]["run_id"]))
        foot.append(
            f"{count(len(waiting), 'run')} {'waits' if one else 'wait'} for you: "
            f"agentrunner show {name}"
        )
    foot += [_wait_of(row, now) for row in rows if state_word(row) == "waiting"]
    if planned := sum(row.get("part_of") == "plan" for row in rows):
        tasks = "is a task" if planned == 1 else "are tasks"
        foot.append(f"{planned} of them {tasks} of a plan: agentrunner plan status")
    if not all_repositories:
        foot.append("other repositories: agentrunner list --all")
    return "\n".join([*lines, "", *foot] if foot else lines)


def _run_row(row: Row, now: datetime, id_width: int, width: int, paint: Paint) -> str:
    state = state_word(row)
    colours: dict[str, Callable[[str], str]]
    colours = {"complete": paint.good, "failed": paint.bad, "running": str}
    colour = colours.get(state, paint.warn)
    started, finished = _moment(row.get("started_at")), _moment(row.get("finished_at"))
    goes_on = state in ("running", "waiting")
    until = finished or (now if goes_on else None)
    took = clock((until - started).total_seconds()) if started and until else ""
    last = ago(finished, now) if finished else "now" if goes_on else ago(started, now)
    rounds, most = row.get("rounds") or "", row.get("rounds_at_most")
    if goes_on and rounds and most:
        rounds = f"{rounds} of {most}"
    room = width - id_width
    title = cell(str(row.get("title") or ""), room - 50).rstrip() if room >= _TITLED else ""
    return (
        f"  {cell(str(row['run_id']), id_width)}  {colour(fit(state, 15))}  {fit(last, 10)}  "
        f"{rounds:>6}  {took:>7}  {title}"
    ).rstrip()


def state_word(row: Row) -> str:
    """The state as people say it: what matters first is whether it waits for them."""
    if row.get("waiting"):
        return "waiting for you"
    state = str(row.get("state"))
    if state in _STATES:
        return _STATES[state]
    if not row.get("running", True):
        return "stopped"
    return "waiting" if row.get("waiting_until") else "running"


def _wait_of(row: Row, now: datetime) -> str:
    """What a run waits for that needs no person: a time."""
    until = _moment(row.get("waiting_until"))
    assert until is not None
    local = until.astimezone(now.tzinfo)
    day = "" if local.date() == now.date() else f"{local:%Y-%m-%d} "
    return (
        f"{flat(str(row['run_id']))} is waiting until {day}{local:%H:%M:%S} and goes on by itself"
    )


def ago(moment: datetime | None, now: datetime) -> str:
    """`4 min ago`, `yesterday`, `Thu 18:20`, `2026-11-02`; empty for no time."""
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
"""English whatever the locale, like everything else on the screen."""


def _moment(text: Any) -> datetime | None:
    return datetime.fromisoformat(str(text)) if text else None


def criteria_table(
    name: str, rows: Sequence[Row], *, strict: bool, has_test: bool, width: int = WIDTH
) -> str:
    """What `validate` says: each criterion with its line and what will be executed for it.

    A row has `id`, `critical`, `line` (or None) and `runs` ("" where nothing can be executed).
    """
    if not rows:
        return "\n".join(_no_criteria(name, has_test, width))
    runnable = sum(1 for row in rows if row["runs"])
    noun = count(len(rows), "criterion", "criteria")
    lines = [f"{flat(name)} is valid. {noun}, {runnable} can be executed:"]
    id_width = max((cell_width(flat(str(row["id"]))) for row in rows), default=0)
    digits = max((len(str(row["line"] or "")) for row in rows), default=0)
    for row in rows:
        line = f"  line {row['line']:>{digits}}" if row["line"] else ""
        rank = "critical" if row["critical"] else "optional"
        lead = f"  {cell(str(row['id']), id_width)}  {rank}{line}  "
        text = flat(str(row["runs"])) or _nothing(row, strict, has_test)
        first, *rest = wrap(text, max(width - cell_width(lead), 20))
        lines += [lead + first, *(" " * cell_width(lead) + more for more in rest)]
    return "\n".join(lines)


NO_CRITERIA = "It has no criteria: nothing in it says when it is done."
"""Also among the warnings of `validate --json`."""


def _no_criteria(name: str, has_test: bool, width: int) -> list[str]:
    """A task that can be read, and says nothing of its end, is never just valid."""
    decides = "The test command alone decides." if has_test else "The model's word alone decides."
    remedy = "List what must be true under the heading of the first line (受け入れ条件, too):"
    return [
        *wrap(f"{flat(name)} can be read. {NO_CRITERIA} {decides}", width),
        *wrap(remedy, width, "  "),
        "    ## Acceptance criteria",
        "    - [ ] A taken e-mail returns 409",
        "          check: `COMMAND`",
    ]


def _nothing(row: Row, strict: bool, has_test: bool) -> str:
    if not row["critical"]:
        return "nothing to execute"
    if strict:
        return "nothing to execute: a person must accept it"
    alone = "the model's word" + (", besides the tests" if has_test else " only")
    return f"nothing to execute: {alone} (--strict: a person must accept)"


def dry_run_screen(
    header: Sequence[tuple[str, str]],
    criteria: str,
    worker_command: Sequence[str],
    mounts: Sequence[str],
    reach: Mapping[str, str],
    missing: Sequence[Row] = (),
    width: int = WIDTH,
) -> str:
    """What `run --dry-run` says: everything that is known before a model is asked.

    `reach` says what each kind of command reaches. `missing` has `message` and `remedy` of
    whatever would keep the run from starting.
    """
    lines = [row for label, text in header for row in labelled(label, text, width)]
    lines += ["", criteria, "", "The worker's command:"]
    lines += [f"  {flat(word)}" for word in worker_command]
    lines += ["", "Visible in the box:", *(f"  {flat(mount)}" for mount in mounts)]
    lines += ["", "Reachable from the box:"]
    lines += [row for who, hosts in reach.items() for row in labelled(who, hosts, width)]
    lines.append("")
    for error in missing:
        lines += labelled("missing", str(error["message"]), width)
        lines += labelled("", f"try: {error['remedy']}", width) if error["remedy"] else []
    return "\n".join([*lines, *[""] * bool(missing), "Nothing was started."])
