"""The runs of a repository: the table of `list`, and the screen of `agentrunner` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
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
    hung,
    labelled,
    sentence_lines,
    wrap,
)
from agentrunner.screens.states import ago, coloured
from agentrunner.state.lifecycle import NOT_STARTED, UNDONE, state_word
from agentrunner.text.terminal import cell_width
from agentrunner.text.times import moment

Row = Mapping[str, Any]

_LEAST_TITLE = 14
"""Fewest cells in which a title is still useful."""
_COLUMNS = (("STATE", 15), ("LAST", 10), ("ROUNDS", 6), ("WORKED", 7))
_DROPPED_FIRST = ("ROUNDS", "WORKED", "LAST")
"""Columns that are dropped in a narrow window, in this order; run and task stay."""
_REPOSITORY = "REPOSITORY"
"""A further column where runs of all repositories are shown; it is never dropped."""
_RIGHT = ("ROUNDS", "WORKED")
_OTHERS = "other repositories:  agentrunner list --all"
ENDED = 3
"""Most ended runs that `agentrunner` alone shows."""


def runs_table(
    rows: Sequence[Row],
    now: datetime,
    *,
    width: int = WIDTH,
    paint: Paint = PLAIN,
    all_repositories: bool = False,
    left_out: int = 0,
    state: str = "",
) -> str:
    """Format the runs in the given order, newest first. `now` is in the time zone to show.

    `left_out` is the number of older runs not shown; `state` is the filter, if any.
    """
    if not rows:
        stand = "need a review" if state == "review" else f"are {state}"
        which = f"No runs {stand}" if state else "No runs yet"
        which += "." if all_repositories else " in this repository."
        steps = [] if state else ["Next:  agentrunner init, then agentrunner run FILE.md"]
        return "\n".join([which, *steps, *([] if all_repositories else [_OTHERS])])
    repos = _repositories(rows) if all_repositories else {}
    lines = _table(rows, now, width, paint, repos)
    foot = [f"{count(left_out, 'older run')} not shown: list -n N"] * bool(left_out)
    waiting = [row for row in rows if row.get("waiting")]
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        name = flat(str(waiting[0]["run_id"]))
        runs = f"{count(len(waiting), 'run')} {verb} for you:"
        foot.append(f"{runs}  agentrunner answer {name}  shows what is asked")
    foot += [_wait_of(row, now) for row in rows if state_word(row) == "waiting"]
    if planned := sum(row.get("part_of") == "plan" for row in rows):
        tasks = "is a task" if planned == 1 else "are tasks"
        foot.append(f"{planned} of them {tasks} of a plan:  agentrunner plan status")
    if not all_repositories:
        foot.append(_OTHERS)
    foot = [line for text in foot for line in sentence_lines(text, width)]
    return "\n".join([*lines, "", *foot] if foot else lines)


def _repositories(rows: Sequence[Row]) -> dict[str, str]:
    """Return a short name of each repository: its folder, and those above it where two share it."""
    paths = {repo: repo.rstrip("/").split("/") for repo in {str(row["repo"]) for row in rows}}
    names = {}
    for repo, parts in paths.items():
        others = [other for other in paths.values() if other is not parts]
        depth = next(
            (n for n in range(1, len(parts)) if all(o[-n:] != parts[-n:] for o in others)),
            len(parts),
        )
        names[repo] = flat("/".join(parts[-depth:])) or "/"
    return names


def _table(
    rows: Sequence[Row], now: datetime, width: int, paint: Paint, repos: Mapping[str, str]
) -> list[str]:
    """Format a line per run; with `repos`, names by path, also where it was."""
    id_width = max(3, *(cell_width(flat(str(row["run_id"]))) for row in rows))
    id_width = min(id_width, width - 2)
    columns = dict(_COLUMNS)
    if repos:
        columns[_REPOSITORY] = max(map(cell_width, [_REPOSITORY, *repos.values()]))
    for name in ("", *_DROPPED_FIRST):
        columns.pop(name, None)
        room = width - 2 - id_width - sum(cells + 2 for cells in columns.values()) - 2
        if room >= _LEAST_TITLE:
            break
    under = room < _LEAST_TITLE
    if under:  # the title is below
        return _narrow(rows, now, width, paint, repos)
    head = f"  {cell('RUN', id_width)}" + "".join(
        f"  {name:>{cells}}" if name in _RIGHT else f"  {name:<{cells}}"
        for name, cells in columns.items()
    )
    lines = [paint.bold(f"{head}  TASK")]
    for row in rows:
        facts = {**facts_of(row, now), _REPOSITORY: repos.get(str(row.get("repo")), "")}
        cells_of = [
            f"{facts[name]:>{cells}}" if name in _RIGHT else cell(facts[name], cells)
            for name, cells in columns.items()
        ]
        cells_of[0] = coloured(cells_of[0], paint)
        title = cell(str(row.get("title") or ""), room).rstrip()
        line = "  ".join([cell(str(row["run_id"]), id_width), *cells_of, title])
        lines.append(f"  {line}".rstrip())
    return lines


def _narrow(
    rows: Sequence[Row], now: datetime, width: int, paint: Paint, repos: Mapping[str, str]
) -> list[str]:
    """Format two lines per run: name and state, and the task below; with `repos` a third."""
    lines = []
    for row in rows:
        state = facts_of(row, now)["STATE"]
        name = flat(str(row["run_id"]))
        if 4 + cell_width(name) + cell_width(state) > width:
            lines += [
                f"  {cell(name, width - 2).rstrip()}",
                f"    {coloured(state, paint)}",
            ]
        else:
            lines.append(f"  {name}  {coloured(state, paint)}")
        below = (repos.get(str(row.get("repo")), ""), str(row.get("title") or ""))
        lines += [f"    {cell(text, width - 4).rstrip()}" for text in below if text]
    return lines


def facts_of(row: Row, now: datetime) -> dict[str, str]:
    """Return the values of the columns for a run, by column name."""
    state = state_word(row)
    finished, goes_on = moment(row.get("finished_at")), state in ("running", "waiting")
    rounds, most = row.get("rounds") or "", row.get("rounds_at_most")
    if goes_on and rounds and most:
        rounds = f"{rounds} of {most}"
    last = ago(finished, now) if finished else "now" if goes_on else ""
    worked = worked_of(row, now)
    latest = row.get("latest_at") or row.get("driven_at") or row.get("started_at")
    return {
        "STATE": state,
        "LAST": last or ago(moment(latest), now),
        "ROUNDS": str(rounds),
        "WORKED": clock(worked) if worked >= 1 else "",
    }


def worked_of(row: Row, now: datetime) -> float:
    """Return the seconds that a run was at work, without the time that it waited for a person."""
    worked = float(row.get("worked_sec") or 0)
    since = moment(row.get("driven_at"))
    if since and state_word(row) == "running":
        worked += max((now - since).total_seconds(), 0)
    return worked


def _wait_of(row: Row, now: datetime) -> str:
    """Return a sentence for a run that only waits for a time."""
    until = moment(row.get("waiting_until"))
    assert until is not None
    local = until.astimezone(now.tzinfo)
    day = "" if local.date() == now.date() else f"{local:%Y-%m-%d} "
    waits = f"{flat(str(row['run_id']))} is waiting until {day}{local:%H:%M:%S}"
    return f"{waits} and then continues by itself"


_NEXT_COMMAND = {
    "waiting for you": ("answer", "shows what is asked"),
    "needs review": ("show", "what is missing, and next steps"),
    "stopped": ("resume", "continues it"),
    NOT_STARTED: ("resume", "tries it again"),
    "running": ("watch", "see it work"),
    "waiting": ("watch", "it continues by itself"),
    "complete": ("diff", "what it changed"),
    "failed": ("show", "what is missing"),
    UNDONE: ("undo", "brings its files again"),
}
"""By state: the next command, and what it does."""
_OF_A_PLAN = {
    "stopped": ("plan run", "continues the plan"),
    NOT_STARTED: ("plan run", "tries it again"),
    "failed": ("plan status", "how its task stands"),
}
"""The same for a task of a plan, which its plan continues."""
_NEEDS_YOU = ("waiting for you", "needs review", "stopped")
_AT_WORK = ("running", "waiting")
_OVER = ("complete", "failed", UNDONE, NOT_STARTED)


def overview_screen(
    rows: Sequence[Row],
    now: datetime,
    *,
    plan: str = "",
    asked: Sequence[tuple[int, str]] = (),
    width: int = WIDTH,
    paint: Paint = PLAIN,
    left_out: int = 0,
) -> str:
    """Show what needs a person, what runs and what has ended, with the next command for each.

    `plan` describes the state of this repository's plan, "" if there is none. A row with a
    `question` is of a task about which the plan asks that; `asked` are number and text of its other
    open questions. `left_out` runs are of plans that are not the current one.
    """
    if not rows and not plan:
        nothing = "No runs yet in this repository."
        if left_out:
            runs = count(left_out, "run")
            nothing = f"Nothing but {runs} of plans that were put away: agentrunner list"
        return "\n".join([nothing, "", *_first_steps(width)])
    words = [(row, state_word(row)) for row in rows]
    groups = (
        ("Needs you", [row for row, word in words if word in _NEEDS_YOU or row.get("question")]),
        ("At work", [row for row, word in words if word in _AT_WORK]),
        ("Ended", [row for row, word in words if word in _OVER and not row.get("question")]),
    )
    lines: list[str] = []
    for title, found in groups:
        shown = found[:ENDED] if title == "Ended" else found[:9]
        questions = asked if title == "Needs you" else ()
        if not shown and not questions:
            continue
        lines.append(paint.bold(title))
        for number, text in questions:
            lines.append(f"  {cell(f'The plan asks: {text}', width - 2)}".rstrip())
            lines += _step(f"agentrunner plan answer {number}", "shows it whole", width)
        for row in shown:
            lines += _row_lines(row, now, width, paint)
        if more := len(found) - len(shown):
            lines.append(f"  {count(more, 'more', 'more')}: agentrunner list")
        lines.append("")
    if plan:
        lines += [paint.bold("Plan"), *_plan_lines(plan, width),
                  "    agentrunner plan status", ""]  # fmt: skip
    return "\n".join([*lines, *_closing_lines(width)])


def _plan_lines(text: str, width: int) -> list[str]:
    """Return how the plan stands in at most two lines: its goal, at the end, may be cut."""
    first, *rest = wrap(flat(text), width, "  ")
    return [first, fit(f"  {' '.join(map(str.strip, rest))}", width).rstrip()] if rest else [first]


def plans_table(rows: Sequence[Row], *, width: int) -> str:
    """Format the plans of a repository, the goal of each below it where a name would be cut."""
    most = max(cell_width(row["name"]) for row in rows)
    lines = []
    for row in rows:
        progress = f"{row['done']} of {row['tasks']} done" + ", archived" * row["archived"]
        mark, name = "*" if row["current"] else " ", cell(row["name"], most)
        if 4 + most + len(progress) + 2 + _LEAST_TITLE <= width:
            lines.append(fit(f"{mark} {name}  {progress:<16}  {flat(row['goal'])}".rstrip(), width))
            continue
        lines += [f"{mark} {row['name']}", f"    {progress}"]
        lines.append(fit(f"    {flat(row['goal'])}".rstrip(), width))
    return "\n".join(filter(str.strip, lines))


def _row_lines(row: Row, now: datetime, width: int, paint: Paint) -> list[str]:
    state, name = state_word(row), flat(str(row["run_id"]))
    facts = facts_of(row, now)
    head = f"  {name}  {coloured(state, paint)}"
    cells = 4 + cell_width(name) + cell_width(state)
    more = (
        facts["LAST"] if state not in _AT_WORK else facts["ROUNDS"] and f"round {facts['ROUNDS']}"
    )
    lines = []
    if cells > width:
        lines, head = [f"  {name}"], f"    {coloured(state, paint)}"
        cells = 4 + cell_width(state)
    if more and cells + 2 + cell_width(more) <= width:
        head, cells = f"{head}  {more}", cells + 2 + cell_width(more)
    title = flat(str(row.get("title") or ""))
    lines.append(head)
    if title and width - cells - 2 >= cell_width(title):
        lines[-1] += f"  {title}"
    elif title:
        lines.append(f"    {cell(title, width - 4)}".rstrip())
    if state == NOT_STARTED:
        lines.append(f"    {cell(flat(str(row['start_error'])), width - 4)}".rstrip())
    return [*lines, *_step(*_next_command(row, state, name), width)]


def _next_command(row: Row, state: str, name: str) -> tuple[str, str]:
    """Return the next command for a run, and what it does."""
    if number := row.get("question"):
        return f"agentrunner plan answer {number}", "shows what the plan asks about it"
    if row.get("part_of") == "plan" and state in _OF_A_PLAN:
        verb, what = _OF_A_PLAN[state]
        return f"agentrunner {verb}", what
    verb, what = _NEXT_COMMAND.get(state, ("show", ""))
    return f"agentrunner {verb} {name}", what


def _step(command: str, what: str, width: int) -> list[str]:
    """Return a command and its purpose: beside it, or below where there is no room."""
    line = f"    {command}"
    whole = f"{line:<43}  {what}"
    fitting = [one for one in (whole, f"{line}  {what}") if cell_width(one) < width]
    if fitting or not what:
        return [fitting[0] if what else line]
    return [line, f"      {what}"]


def _first_steps(width: int) -> list[str]:
    steps = (
        ("agentrunner init", "write a task for this repository"),
        ("agentrunner run FILE.md", "work on it"),
        ('agentrunner "what you want"', "the same, from a sentence"),
        ("agentrunner doctor", "what is ready on this machine"),
        ("agentrunner help", "all commands"),
    )
    return [line.removeprefix("  ") for step in steps for line in _step(*step, width)]


def _closing_lines(width: int) -> list[str]:
    steps = (('agentrunner "what you want"', "the next task"), ("agentrunner help", "all commands"))
    return [line.removeprefix("  ") for step in steps for line in _step(*step, width)]


def criteria_table(
    name: str,
    rows: Sequence[Row],
    *,
    strict: bool,
    has_test: bool,
    width: int = WIDTH,
    by_code: bool | None = False,
) -> str:
    """Show the result of `validate`: each criterion with its line and what is executed for it.

    A row has `id`, `critical`, `line` (or None) and `runs` ("" if nothing can be executed).
    `by_code` is for a planner without a model: it asks a person about what nothing decides. It is
    None where the planner is still to be chosen.
    """
    if not rows:
        return "\n".join(_no_criteria(name, has_test, width, by_code))
    runnable = sum(1 for row in rows if row["runs"])
    noun = count(len(rows), "criterion", "criteria")
    lines = wrap(f"{flat(name)} is valid. {noun}, {runnable} can be executed:", width)
    id_width = max((cell_width(flat(str(row["id"]))) for row in rows), default=0)
    digits = max((len(str(row["line"] or "")) for row in rows), default=0)
    for row in rows:
        line = f"  line {row['line']:>{digits}}" if row["line"] else ""
        rank = "critical" if row["critical"] else "optional"
        lead = f"  {cell(str(row['id']), id_width)}  {rank}{line}  "
        text = flat(str(row["runs"])) or _nothing(row, strict, has_test, by_code)
        lines += hung(lead, text, width)
    return "\n".join(lines)


_NONE = "has no criteria: nothing in it says when it is done."
NO_CRITERIA = f"It {_NONE}"
"""Also among the warnings of `validate --json`."""


def _no_criteria(name: str, has_test: bool, width: int, by_code: bool | None) -> list[str]:
    """Explain that a readable task without criteria is never simply valid."""
    alone = "A person" if by_code else "The planner's word"
    if by_code is None:
        alone += ", or without a model a person,"
    decides = f"{'The test command' if has_test else alone} alone decides."
    remedy = "List what must be true under a heading like this one (or 「受け入れ条件」):"
    return [
        *wrap(f"{flat(name)} {_NONE} {decides}", width),
        *wrap(remedy, width, "  "),
        "    ## Acceptance criteria",
        "    - [ ] A taken e-mail returns 409",
        "          check: `COMMAND`",
    ]


def _nothing(row: Row, strict: bool, has_test: bool, by_code: bool | None) -> str:
    if not row["critical"]:
        return "nothing to execute"
    if strict or by_code:
        return "nothing to execute: a person must accept it"
    alone = "the planner's word" + (", besides the tests" if has_test else " only")
    when = "--strict, or no model plans" if by_code is None else "--strict"
    return f"nothing to execute: {alone} ({when}: a person must accept)"


def dry_run_screen(
    header: Sequence[tuple[str, str]],
    criteria: str,
    worker_command: Sequence[str],
    mounts: Sequence[str],
    reach: Mapping[str, str],
    missing: Sequence[Row] = (),
    width: int = WIDTH,
) -> str:
    """Show the result of `run --dry-run`: everything that is known before a model is called.

    `reach` says what each kind of command can reach. `missing` has `message` and `remedy` of
    everything that would prevent the start.
    """
    lines = [row for label, text in header for row in labelled(label, text, width)]
    lines += ["", criteria, "", "The worker's command:"]
    lines += [f"  {flat(word)}" for word in worker_command]
    lines += ["", "Visible in the sandbox:", *(f"  {flat(mount)}" for mount in mounts)]
    lines += ["", "Reachable from the sandbox:"]
    lines += [row for who, hosts in reach.items() for row in labelled(who, hosts, width)]
    lines.append("")
    for error in missing:
        lines += labelled("missing", str(error["message"]), width)
        lines += labelled("", f"try: {error['remedy']}", width) if error["remedy"] else []
    return "\n".join([*lines, *[""] * bool(missing), "Nothing was started."])
