"""`planners` and `planners try`: which planners are available, and how reliable one is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentrunner.screens.layout import (
    PLAIN,
    WIDTH,
    Paint,
    cell,
    count,
    duration,
    flat,
    thousands,
    ways_lines,
    wrap,
)
from agentrunner.text.terminal import cell_width

Row = Mapping[str, Any]
COLUMNS = ("right", "acceptable", "wrong", "unusable")
MOST_WRONG = 20
"""Most scenes that are named below the table."""


def planners_screen(rows: Sequence[Row], width: int = WIDTH, paint: Paint = PLAIN) -> str:
    """Show a paragraph per kind; rows as `agentrunner planners --json` prints them."""
    column = max(cell_width(flat(str(row["kind"]))) for row in rows)
    lines = [line for row in rows for line in _kind(row, column, width, paint)]
    mine = next((row for row in rows if row["set"]), None)
    notice = (
        f"Set: {mine['kind']} ({mine['why']})."
        if mine
        else "None is set, and none that asks a model is ready. A task with something to execute is"
        " planned by checklist, which asks none; for any other name one."
    )
    return "\n".join(
        [*lines, "", *wrap(flat(notice), width), "What one is fit for: agentrunner planners try"]
    )


def _kind(row: Row, column: int, width: int, paint: Paint) -> Iterator[str]:
    mark = paint.good("ok") if row["ready"] else "--"
    lead = f"  {mark}  {cell(flat(str(row['kind'])), column)}  "
    indent = " " * (column + 8)
    text = str(row["is"]) if row["ready"] else str(row["needs"])
    if row["ready"] and row["schema"]:
        text += f"; a schema {row['schema']}"
    first, *rest = wrap(flat(text), width - len(indent))
    yield lead + first
    yield from (indent + more for more in rest)
    if not row["ready"] and row["remedy"]:
        yield from ways_lines(f"{indent}cure: ", flat(str(row["remedy"])), width)


def trial_screen(
    trial: Row,
    planner: str,
    played: Sequence[Row],
    *,
    of: int,
    width: int = WIDTH,
    paint: Paint = PLAIN,
) -> str:
    """Show the table by class of scene, wrong answers, the cost, and the verdict."""
    whole = trial["scenes"] == of
    begun = "" if whole else f", {trial['scenes']} of them played"
    lines = wrap(f"{flat(planner)}: {count(of, 'scene')}{begun}", width)
    lines += ["", *_table(trial["rows"], paint), "", *_wrong_lines(played, width)]
    lines += [*_cost_lines(trial), ""]
    if trial["cut"]:
        lines += [
            paint.bad("It did not read all that it was asked."),
            *wrap(trial["cut"], width),
            "",
        ]
    if not whole:
        return "\n".join([*lines, "Not all scenes were played; the same command plays the rest."])
    if trial["usable"]:
        mark = paint.good("Usable.")
    else:
        mark = "Tried in part." if trial["met"] else paint.bad("Not usable as it is.")
    return "\n".join([*lines, mark, *wrap(str(trial["sentence"]), width)])


def _table(rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    column = max((len(str(row["does"])) for row in rows), default=0)
    yield f"  {'':<{column}}  " + "  ".join(f"{name:>10}" for name in COLUMNS)
    for row in rows:
        good = row["right"] + row["acceptable"]
        mark = "" if good == row["scenes"] else f"  {good} of {row['scenes']}"
        figures = "  ".join(f"{row[name] or '-':>10}" for name in COLUMNS)
        line = f"  {row['does']:<{column}}  {figures}{mark}"
        yield line if good * 5 >= row["scenes"] * 4 else paint.bad(line)
    passed = sum(row["passed_wrongly"] for row in rows)
    failed = sum(row["failed_wrongly"] for row in rows)
    if passed or failed:
        yield ""
        yield f"  Passed what is not met: {passed}.  Failed what is met: {failed}."


def _wrong_lines(played: Sequence[Row], width: int) -> Iterator[str]:
    bad = [one for one in played if one["grade"] in ("wrong", "unusable")]
    for one in bad[:MOST_WRONG]:
        yield from wrap(flat(f"{one['id']}: {one['why']}"), width, "    ")
    if len(bad) > MOST_WRONG:
        yield f"and {len(bad) - MOST_WRONG} more (--json has all)"
    if bad:
        yield ""


def _cost_lines(trial: Row) -> Iterator[str]:
    yield (
        f"  first answer usable {trial['first']} of {trial['asked']}, "
        f"{count(trial['calls'], 'call')}, {count(trial['looks'], 'look')}"
    )
    read, cached = trial["input_tokens"], trial["cached_tokens"]
    share = f" ({100 * cached // read} % from a cache)" if read and cached else ""
    price = "price not known" if trial["usd"] is None else f"{trial['usd']:.2f} USD"
    yield (
        f"  {thousands(read)} tokens in{share}, {thousands(trial['output_tokens'])} out, "
        f"{duration(trial['seconds'])}, {price}"
    )
