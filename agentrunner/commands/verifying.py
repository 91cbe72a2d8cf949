"""`agentrunner verify`: verify once more, from scratch, what a run delivered."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrunner import api
from agentrunner.commands import options as opt
from agentrunner.commands.console import paint_for, show, show_json, width_of
from agentrunner.commands.which_run import resolve
from agentrunner.errors import UsageError
from agentrunner.errors.runs import NotARun
from agentrunner.text.cut import some_of

if TYPE_CHECKING:
    from agentrunner.api import Verification

MUTANTS_SEC = 600
"""Time limit of mutants in seconds, by default."""


@opt.with_file
def verify(
    run: Annotated[str | None, typer.Argument(help="The run; left out, the newest.")] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="See also how many small changes a test notices.")
    ] = False,
    mutants_sec: Annotated[
        float | None, typer.Option("--mutants-sec", help="At most this many seconds (600).")
    ] = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Verify once more, from nothing, what a run delivered. The run is not changed.

    Ends with 0 where that confirms how the run ended, with 1 where it contradicts it, and with 5
    where the verification cannot be made here.
    """
    if run is not None and Path(run).is_file():
        raise NotARun(
            f"{run} is a file.",
            remedy="name a run: agentrunner list shows them",
        )
    if mutants_sec is not None and mutants_sec <= 0:
        raise UsageError("The time for mutants must be above 0.", path="--mutants-sec")
    folder, run_id = resolve(run, state_dir)
    seconds = (mutants_sec or MUTANTS_SEC) if mutants or mutants_sec else 0

    def on_event(event: dict[str, Any]) -> None:
        # Report ends only, not the beginnings that `awaiting` reports.
        if not as_json and sys.stderr.isatty() and event["event"] != "awaiting":
            what = event.get("command") or event.get("target")
            print(f"  {event['event']}  {what}  {event.get('outcome', '')}", file=sys.stderr)  # noqa: T201

    found = asyncio.run(
        api.verify(run_id, mutants_sec=seconds, on_event=on_event, state_dir=folder)
    )
    if as_json:
        show_json({**found.as_json(), "exit_code": found.exit_code}, ensure_ascii=False)
    else:
        show(_screen(found))
    return found.exit_code


def _screen(found: Verification) -> str:
    from agentrunner.execution.result import criterion_result
    from agentrunner.screens.criteria import criteria_rows, open_where_not_shown
    from agentrunner.screens.layout import wrap

    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    word = "CONFIRMED" if found.confirmed else "CONTRADICTED"
    colour = paint.good if found.confirmed else paint.bad
    now = "complete by evidence" if found.complete else "not complete by evidence"
    lines = [f"{colour(word)}  {found.run_id} ended {found.state} and is {now}", ""]
    # The planner's comment does not count here: the planner was not asked.
    rows = [criterion_result(one.model_copy(update={"comment": ""})) for one in found.criteria]
    proven = bool(found.evidence and found.evidence.proofs)
    rows = open_where_not_shown(rows, found.completion, proven=proven)
    lines += [*criteria_rows(rows, width, paint, len(rows)), ""] if rows else []
    lines += [line for text in found.missing for line in wrap(text, width, "  ")]
    if paths := found.differs_here:
        lines += [
            f"  note: the repository has changed since in {some_of(paths, 2)};",
            "  what the run delivered was verified, not what is there now",
        ]
    if found.mutation is not None:
        lines += _mutation(found.mutation)
    return "\n".join(lines).rstrip()


def _mutation(mutation: Any) -> list[str]:
    if not mutation.tried:
        more = f" ({mutation.made} could be made)" * bool(mutation.made)
        return [f"  mutants  {mutation.why_none}{more}"]
    lines = [
        (
            f"  mutants  {mutation.killed} of {mutation.tried} turned a test red"
            f" ({mutation.made} could be made)"
        )
    ]
    lines += [
        f"           {one.path}:{one.line}:{one.column} {one.what}"
        for one in mutation.survivors[:10]
    ]
    return lines
