"""Find the run that a command means if none is named: the only one that fits, or one picked.

No run is silently changed or ended. In a terminal the person is asked. Elsewhere the only run that
fits is taken and named; several are an error that lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from agentrunner import api
from agentrunner.commands.command_line import is_yes, with_run
from agentrunner.commands.console import Output, interactive, show, tell, width_of
from agentrunner.commands.which_run import here
from agentrunner.errors import UsageError
from agentrunner.errors.runs import AmbiguousRun, UnknownRun
from agentrunner.screens.layout import fit, flat
from agentrunner.screens.run_table import facts_of
from agentrunner.state.lifecycle import NextStep, end_of, only_by_name
from agentrunner.text.terminal import cell_width, shorten

if TYPE_CHECKING:
    from agentrunner.api import ListedRun
    from agentrunner.storage.index import RunIndex

SHOWN = 9
"""Most candidates that are shown."""
LEAST_TITLE = 14
"""Fewest cells in which a task is shown beside the others; with fewer it is below."""
Fits = Callable[["ListedRun"], bool]


def _next_step(row: ListedRun) -> NextStep | None:
    end = end_of(row.state)
    return end.next_step if end else None


def _cancelled(row: ListedRun) -> bool:
    """Whether somebody ended it on purpose: then it goes on only where it is named."""
    return only_by_name(row.reason)


def _waits(row: ListedRun) -> bool:
    return bool(row.waiting)


def _unfinished(row: ListedRun) -> bool:
    return row.finished_at is None


def _stopped(row: ListedRun) -> bool:
    return _unfinished(row) and not row.running and not row.start_error


def _needs_review(row: ListedRun) -> bool:
    return _next_step(row) == "review"


def _failed(row: ListedRun) -> bool:
    return _next_step(row) == "retry" and not _cancelled(row)


def _not_complete(row: ListedRun) -> bool:
    return _needs_review(row) or _failed(row) or bool(row.start_error)


def _ended_short(row: ListedRun) -> bool:
    return _needs_review(row) or _failed(row)


def _not_undone(fits: Fits) -> Fits:
    """Return what takes only runs whose work is there: an undone one is meant where it is alone."""
    return lambda row: fits(row) and not row.undone


def _has_changes(row: ListedRun) -> bool:
    return row.rounds > 0 and not row.running


FITS: Mapping[str, tuple[str, tuple[Fits, ...]]] = {
    "watch": ("is at work or waits for you", (lambda row: row.running, _waits)),
    "resume": ("can be resumed", (_stopped, _not_undone(_not_complete), _not_complete)),
    "cancel": ("is at work or waits", (_unfinished,)),
    "undo": (
        "has changed anything",
        (
            lambda row: _has_changes(row) and not row.undone,
            _has_changes,
            lambda row: not row.running,
        ),
    ),
    "accept": ("needs a review", (*map(_not_undone, (_needs_review, _failed)), _ended_short)),
    "answer": ("is waiting for you", (_waits,)),
    "approve": ("is waiting for you", (_waits,)),
    "reject": ("is waiting for you", (_waits,)),
}
"""By command: the requirement in words, and the groups to search in turn: runs that stopped in the
middle come before ended ones.
"""
_CONTINUING = ("resume", "accept")
"""Commands that take a run that has ended further."""
_CONFIRMED = ("cancel", "undo", "accept", "resume")
"""Commands that confirm a single fitting run; the others first show what they are about."""


def run_for(
    verb: str,
    name: str | None,
    output: Output,
    about: Callable[[str], str] | None = None,
    *,
    asks_more: bool = False,
) -> str:
    """Return the id of the run that `verb` is about.

    `about` gives a sentence on a run, which is shown before a yes to it is asked; with `asks_more`
    no yes is asked, because the command shows what it is about and asks for more.

    Raises UsageError: `unknown-run` if none fits, `ambiguous-run` if several do and nobody can be
    asked. Ends the command if the person who is asked picks none.
    """
    from agentrunner.storage.index import RunIndex
    from agentrunner.storage.plan_shelf import runs_aside

    if name:
        return RunIndex(output.state).find(name, here())
    words, groups = FITS[verb]
    aside = runs_aside(output.state, here())
    listed = api.listed_runs_sync(here(), state_dir=output.state)
    rows = [row for row in listed if row.run_id not in aside]
    for fits in groups:
        found = [row for row in rows if fits(row)]
        if found:
            break
    else:
        raise _none(verb, rows, words, RunIndex(output.state))
    if interactive(output):
        return _ask(verb, found, about, confirms=verb in _CONFIRMED and not asks_more)
    if len(found) > 1:
        raise _several(verb, found)
    if not output.quiet:
        tell(f"{verb}: {found[0].run_id} · {flat(found[0].title)}", sys.stderr)
    return found[0].run_id


def _none(verb: str, rows: list[ListedRun], words: str, index: RunIndex) -> UsageError:
    if not rows:
        return index.unknown(f"there is no run of {here()}")
    ended = [row for row in rows if _cancelled(row)] if verb in _CONTINUING else []
    if not ended:
        return UnknownRun(f"no run of {here()} {words}", remedy="agentrunner list")
    name = ended[0].run_id
    return UnknownRun(
        f"no run of {here()} {words} unless it is named; {name} was cancelled",
        remedy=with_run(verb, name),
    )


def _several(verb: str, found: list[ListedRun]) -> UsageError:
    now = datetime.now().astimezone()
    details = tuple(
        (row.run_id, f"{facts_of(asdict(row), now)['STATE']}, {row.title}") for row in found[:SHOWN]
    )
    return AmbiguousRun(
        f"several runs fit, and {verb} takes none of them unasked",
        details=details,
        remedy=f"name one, e.g. {with_run(verb, found[0].run_id)}",
    )


def _ask(
    verb: str,
    found: list[ListedRun],
    about: Callable[[str], str] | None,
    *,
    confirms: bool,
) -> str:
    """Return the run that the person picks; confirm a single one if it would be changed at once."""
    from agentrunner.commands.question_prompt import ask_line

    if len(found) == 1 and not confirms:
        tell(f"{verb}: {found[0].run_id} · {flat(found[0].title)}", sys.stderr)
        return found[0].run_id
    if len(found) == 1:
        if sentence := about(found[0].run_id) if about else "":
            tell(sentence, sys.stderr)
        if is_yes(ask_line(f"{verb} {found[0].run_id} · {flat(found[0].title)}? [y/N] ")):
            return found[0].run_id
    elif picked := _pick(verb, found):
        return picked
    tell("Nothing was changed.", sys.stderr)
    raise typer.Exit


def _pick(verb: str, found: list[ListedRun]) -> str:
    from agentrunner.commands.question_prompt import ask_line

    shown, width = found[:SHOWN], width_of(sys.stderr)
    show(picker_screen(verb, list(map(asdict, shown)), width), sys.stderr)
    prompt = "number, [q] leave it > "
    while (word := ask_line(prompt)) not in ("", "q"):
        if word.isdecimal() and 1 <= int(word) <= len(shown):
            return shown[int(word) - 1].run_id
        named = [row.run_id for row in found if row.run_id.startswith(word)]
        if len(named) == 1:
            return named[0]
        prompt = f"1 to {len(shown)}, or the beginning of a run's name, [q] leave it > "
    return ""


def picker_screen(verb: str, rows: list[dict[str, Any]], width: int) -> str:
    """Show the candidates with their numbers: name and state, and the task, below if need be."""
    now = datetime.now().astimezone()
    table = [
        (str(number), flat(str(row["run_id"])), facts["STATE"], facts["LAST"])
        for number, row in enumerate(rows, start=1)
        for facts in (facts_of(row, now),)
    ]
    widths = [max(map(cell_width, column)) for column in zip(*table, strict=True)]
    lines = [f"Which run should {verb} take?"]
    beside = width - sum(room + 2 for room in widths) - 2 >= LEAST_TITLE
    for cells, row in zip(table, rows, strict=True):
        title = flat(str(row["title"]))
        head = "  ".join(fit(text, room) for text, room in zip(cells, widths, strict=True))
        if beside:
            lines.append(shorten(f"  {head}  {title}", width).rstrip())
            continue
        number, name, *facts = cells
        whole = f"  {number}  {name}  {'  '.join(facts)}".rstrip()
        state = [] if cell_width(whole) <= width else [f"     {'  '.join(facts)}".rstrip()]
        lines += [f"  {number}  {name}" if state else whole, *state]
        lines.append(shorten(f"     {title}", width).rstrip())
    return "\n".join(lines)
