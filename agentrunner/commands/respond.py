"""What a person says to a run: resume, answer, approve, reject, accept, cancel."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agentrunner.commands import options as opt
from agentrunner.commands.console import Output, show, who
from agentrunner.commands.drive import drive
from agentrunner.commands.runs import (
    resolve,
    resolve_review,
    resolve_waiting,
)
from agentrunner.errors import UsageError
from agentrunner.screens.layout import flat

if TYPE_CHECKING:
    from agentrunner.commands.engine import Engine
    from agentrunner.engine.attempt_run import Options
    from agentrunner.state.run_state import Answer


@opt.with_output
def resume(
    run: opt.Run = None,
    max_loops: Annotated[
        int | None, typer.Option("--max-loops", min=0, max=1000, help="Limit of a new attempt.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="A remark for the planner.")
    ] = None,
    on_change: Annotated[
        opt.OnChange | None, typer.Option("--on-change", help="If task file or PRD changed.")
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option("--budget", metavar="NAME=+AMOUNT", help="Raise a limit, e.g. usd=+5."),
    ] = None,
    planner: Annotated[
        str | None, typer.Option("--planner", metavar="KIND", help="Who plans from now on.")
    ] = None,
    planner_model: Annotated[
        str | None,
        typer.Option("--planner-model", metavar="NAME", help="The planner's model from now on."),
    ] = None,
    *,
    output: Output,
) -> int:
    """Go on where a run was, or start the next attempt of one that ended."""

    def work(engine: Engine, options: Options) -> Awaitable[dict[str, Any]]:
        _, run_id = resolve(run, output.state_dir)
        change = on_change.value if on_change else None
        return engine.resume(
            run_id,
            options,
            max_loops=max_loops,
            message=message,
            on_change=change,
            budget=budget or (),
            by=who(),
            planner=planner,
            planner_model=planner_model,
        )

    return drive(work, output)


@opt.with_output
def answer(
    words: Annotated[list[str], typer.Argument(metavar="[RUN] TEXT")],
    identifier: Annotated[str | None, typer.Option("--id", help="The question's id.")] = None,
    *,
    output: Output,
) -> int:
    """Answer a question by an option's number or in words: "usd=+5", again, "model: NAME", …"""

    def work(engine: Engine, options: Options) -> Awaitable[dict[str, Any]]:
        *names, text = words
        if len(names) > 1:
            raise UsageError(
                "the answer is one argument.",
                code="usage",
                remedy=f'agentrunner answer "{" ".join(words)}"',
            )
        _, run_id = resolve_waiting(names[0] if names else None, output.state_dir)
        return engine.respond(run_id, _said("answer", identifier, text=text), options)

    return drive(work, output)


@opt.with_output
def approve(
    identifier: opt.QuestionId,
    run: opt.WaitingRun = None,
    edit: Annotated[
        Path | None, typer.Option("--edit", metavar="FILE", help="Approve this instead (JSON).")
    ] = None,
    *,
    output: Output,
) -> int:
    """Say yes to exactly what is asked under this id, and go on."""

    def work(engine: Engine, options: Options) -> Awaitable[dict[str, Any]]:
        from agentrunner.config.files import read_text

        _, run_id = resolve_waiting(run, output.state_dir)
        text = read_text(edit, name=str(edit)) if edit else ""
        return engine.respond(run_id, _said("approve", identifier, edit=text), options)

    return drive(work, output)


@opt.with_output
def reject(
    identifier: opt.QuestionId,
    reason: Annotated[str, typer.Option("--reason", help="What is wrong; the planner reads it.")],
    run: opt.WaitingRun = None,
    *,
    output: Output,
) -> int:
    """Say no to what is asked, and why."""

    def work(engine: Engine, options: Options) -> Awaitable[dict[str, Any]]:
        _, run_id = resolve_waiting(run, output.state_dir)
        return engine.respond(run_id, _said("reject", identifier, text=reason), options)

    return drive(work, output)


def _said(
    decision: Literal["answer", "approve", "reject"],
    identifier: str | None,
    *,
    text: str = "",
    edit: str = "",
) -> Answer:
    """The answer as it was typed; the engine holds it against the question under its lock."""
    from agentrunner.state.run_state import Answer

    return Answer(
        id=identifier or "", kind="ask_human", decision=decision, text=text, edit=edit, by=who()
    )


@opt.with_output
def accept(
    reason: Annotated[str, typer.Option("--reason", help="Why you say yes; it is recorded.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="[RUN] [AC-ID]...")] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so.")] = None,
    unchanged: Annotated[
        bool, typer.Option("--unchanged", help="Nothing had to change, and nothing did.")
    ] = False,
    known_red: Annotated[
        list[str] | None,
        typer.Option("--known-red", metavar="NAME...", help="Red before, for another reason."),
    ] = None,
    *,
    output: Output,
) -> int:
    """Say yes, after looking, to what nothing can prove. Never for what was green or is claimed."""
    line: list[str] = []

    async def work(engine: Engine, options: Options) -> dict[str, Any]:
        # In a thread: a run's criteria are read with an event loop of their own.
        said = list(words or [])
        if known_red:
            _check_alone(unchanged)
            run_id, more = _run_of(said, output.state_dir)
            names = [*known_red, *more]
            result = await engine.accept(run_id, [], reason, by or who(), options, known_red=names)
            line.append(await asyncio.to_thread(_line_for, options.state_dir, run_id))
            return result
        run_id, criteria = await asyncio.to_thread(_accepted, said, output.state_dir)
        return await engine.accept(
            run_id, criteria, reason, by or who(), options, unchanged=unchanged
        )

    code = drive(work, output)
    for text in filter(None, line):
        show(f"For the task file, no file was edited:  {flat(text)}", sys.stderr)
    return code


def _check_alone(unchanged: bool) -> None:
    if unchanged:
        raise UsageError(
            "--known-red says nothing of the tree, and --unchanged nothing of a test.",
            path="--unchanged",
            remedy="two commands, one after the other",
        )


def _run_of(words: list[str], state_dir: str | None) -> tuple[str, list[str]]:
    """The run, and what else was said: names that followed the first one after `--known-red`."""
    if words:
        try:
            return resolve(words[0], state_dir)[1], words[1:]
        except UsageError:
            pass
    return resolve_review(state_dir)[1], words


def _line_for(state_dir: Path, run_id: str) -> str:
    """What a task file says to keep the known reds of a run; "" where the run is gone."""
    from agentrunner.engine.commits import load_task_of
    from agentrunner.engine.known_reds import task_file_line
    from agentrunner.storage.run_folder import RunFolder
    from agentrunner.storage.run_log import RunLog

    if not (state_dir / "runs" / run_id).is_dir():
        return ""
    folder = RunFolder.open(state_dir, run_id)
    return task_file_line(load_task_of(folder), RunLog(folder.log_file))


def _accepted(words: list[str], state_dir: str | None) -> tuple[str, list[str]]:
    """Run and criteria: the first word is a run unless it is a criterion of the one to review."""
    from agentrunner.engine import queries

    if not words:
        return resolve_review(state_dir)[1], []
    try:
        return resolve(words[0], state_dir)[1], words[1:]
    except UsageError:
        folder, run_id = resolve_review(state_dir)
        known = {str(c["id"]) for c in queries.show(folder, run_id)["acceptance_criteria"]}
        if words[0] not in known:
            raise
        return run_id, words


@opt.with_output
def cancel(run: opt.Run = None, *, output: Output) -> int:
    """End a run; the files stay as they are."""

    async def work(engine: Engine, options: Options) -> dict[str, Any]:
        result = await engine.cancel(resolve(run, output.state_dir)[1], options)
        # The run ends FAILED, but that is what was asked for.
        return {**result, "exit_code": 0} if result["state"] == "FAILED" else result

    return drive(work, output)
