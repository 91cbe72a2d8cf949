"""A person's messages to a run: resume, answer, approve, reject, accept, cancel."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentrunner import api
from agentrunner.commands import options as opt
from agentrunner.commands.console import Console, Output, interactive, tell, width_of
from agentrunner.commands.drive import drive, show_waiting
from agentrunner.commands.pick import run_for
from agentrunner.commands.question_prompt import (
    NotAskedAnyMore,
    ask_line,
    asked,
    confirmed,
    polling,
)
from agentrunner.commands.which_run import here, name_needed, resolve
from agentrunner.environment import user_name
from agentrunner.errors import UsageError
from agentrunner.errors.runs import HasEnded, NotWaiting, WrongAnswer
from agentrunner.screens.layout import flat, labelled
from agentrunner.state.people import IN_WORDS, Answer
from agentrunner.storage.locks import is_driven
from agentrunner.storage.run_folder import RunFolder

if TYPE_CHECKING:
    from agentrunner.engine.attempt_run import Options
    from agentrunner.results import Result


@opt.with_output
def resume(
    run: opt.FittingRun = None,
    max_loops: Annotated[
        int | None, typer.Option("--max-loops", min=0, max=1000, help="Limit of a new attempt.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="A remark for the planner.")
    ] = None,
    on_change: Annotated[
        Literal["replan", "continue"] | None,
        typer.Option("--on-change", help="If task file or PRD changed."),
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
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="The worker's model from now on."),
    ] = None,
    detach: opt.Detach = False,
    *,
    output: Output,
) -> int:
    """Continue a run, or start the next attempt of one that ended."""
    _check_own_words(message, "--message")

    def work(options: Options) -> Awaitable[Result]:
        run_id = run_for("resume", run, output)
        return api.resume(
            run_id,
            options,
            max_loops=max_loops,
            message=message,
            on_change=on_change,
            budget=budget or (),
            by=user_name(),
            planner=planner,
            planner_model=planner_model,
            model=model,
        )

    return drive(work, opt.detached(output, detach))


@opt.with_output
def answer(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN] [TEXT]",
            help="An option's number, or your own words. Left out in a terminal: you are asked.",
        ),
    ] = None,
    identifier: opt.QuestionId = None,
    detach: opt.Detach = False,
    *,
    output: Output,
) -> int:
    """Answer a question by an option's number or in words: "usd=+5", again, "model: NAME", …"""
    output = opt.detached(output, detach)
    if not words or _is_run(words, output):
        run = words[0] if words else None
        return dialog("answer", run, output) if interactive(output) else _show_asked(run, output)
    *names, text = words
    if not text:
        raise _missing_error("answer", None, "the answer is missing.", output)
    if len(names) > 1:
        raise UsageError(
            "the answer is one argument.",
            remedy=f'agentrunner answer "{" ".join(words)}"',
        )
    run_id = run_for("answer", names[0] if names else None, output)
    return give(run_id, _answer(identifier, text=text), output)


def _show_asked(run: str | None, output: Output) -> int:
    """Show what a run asks and how it is answered; return the exit code of a run that waits."""
    run_id = run_for("answer", run, output)
    standing = api.look_sync(run_id, state_dir=output.state)
    if standing.waiting is None:
        raise _not_waiting(run_id)
    if output.json:
        Console(output).finish(standing)
    else:
        show_waiting(standing, output.state, name_needed(output.state, run_id))
    return standing.exit_code


def _not_waiting(run_id: str) -> NotWaiting:
    return NotWaiting(
        f"{run_id} does not wait for anyone.",
        remedy=f"agentrunner show {run_id}",
    )


def _answer(
    identifier: str | None,
    decision: Literal["answer", "approve", "reject"] = "answer",
    text: str = "",
    edit: str = "",
) -> Answer:
    _check_own_words(text, "--reason" if decision != "answer" else "TEXT")
    # The engine determines the kind of question under the run's lock.
    return Answer(
        id=identifier or "",
        kind="ask_human",
        decision=decision,
        text=text,
        edit=edit,
        by=user_name(),
    )


def give(
    run_id: str,
    answer: Answer,
    output: Output,
    *,
    left_alone: Callable[[str], str] | None = None,
) -> int:
    """Give a run its answer and drive it; if another terminal drives it, it continues there.

    `left_alone` as for `drive`.
    """
    from agentrunner.commands.elsewhere import hand_over

    if is_driven(output.state, run_id):
        text = left_alone(run_id) if left_alone else ""
        if (code := hand_over(run_id, answer, output, text)) is not None:
            return code

    def work(options: Options) -> Awaitable[Result]:
        return api.respond(
            run_id, answer.decision, answer.text, question=answer.id, edit=answer.edit,
            by=answer.by, how=options,
        )  # fmt: skip

    return drive(work, output, left_alone=left_alone)


def _is_run(words: list[str], output: Output) -> bool:
    """Whether the only word names a waiting run, and so is not an answer to one."""
    from agentrunner.storage.index import RunIndex

    rows = RunIndex(output.state).runs(here())
    names = {name for row in rows if row.waiting for name in (row.run_id, row.task_id)}
    return len(words) == 1 and words[0] in names


@opt.with_output
def approve(
    run: opt.WaitingRun = None,
    identifier: opt.QuestionId = None,
    edit: Annotated[
        Path | None,
        typer.Option(
            "--edit",
            metavar="FILE",
            help="Approve this plan (YAML, JSON) or worker's prompt instead.",
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the run.")
    ] = "",
    detach: opt.Detach = False,
    *,
    output: Output,
) -> int:
    """Say yes to exactly what is asked under this id; the run continues.

    In a terminal the id may be left out: what is asked is shown, and you are asked. With a reason
    that is one question, yes or no.
    """
    output = opt.detached(output, detach)
    if interactive(output) and identifier is None and edit is None:
        return dialog("approve", run, output, reason)
    if identifier is None:
        raise _missing_error(
            "approve", run, "a yes is to exactly one thing, named by --id.", output
        )
    run_id = run_for("approve", run, output)
    changed = _edit_in(edit, run_id, output) if edit else ""
    return give(run_id, _answer(identifier, "approve", reason, edit=changed), output)


def _edit_in(file: Path, run_id: str, output: Output) -> str:
    """Return an edited prompt of a worker, or an edited plan as JSON for the engine, which refuses
    a file that is neither format.

    Raises UsageError for an empty file: it edits nothing, and would approve what it was to replace.
    """
    from agentrunner.commands.editing import from_yaml
    from agentrunner.config.text_files import read_text

    text = read_text(file, name=str(file))
    if not text.strip():
        raise WrongAnswer(f"{flat(str(file))} is empty, so nothing was approved.", path="--edit")
    waiting = api.look_sync(run_id, state_dir=output.state_dir).waiting
    if waiting is not None and waiting.kind == "worker":
        return text
    return text if text.lstrip().startswith(("{", "[")) else from_yaml(text)


@opt.with_output
def reject(
    run: opt.WaitingRun = None,
    identifier: opt.QuestionId = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="What is wrong; the planner reads it."),
    ] = None,
    detach: opt.Detach = False,
    *,
    output: Output,
) -> int:
    """Say no to what is asked, and why.

    In a terminal id and reason may be left out: what is asked is shown, and you are asked for the
    reason; with one, only whether that is meant.
    """
    output = opt.detached(output, detach)
    if interactive(output) and (identifier is None or reason is None):
        return dialog("reject", run, output, reason or "")
    if identifier is None or reason is None:
        raise _missing_error("reject", run, "a no needs --id and --reason.", output)
    run_id = run_for("reject", run, output)
    return give(run_id, _answer(identifier, "reject", reason), output)


def dialog(
    verb: Literal["answer", "approve", "reject"],
    run: str | None,
    output: Output,
    reason: str = "",
) -> int:
    """Show a run's question and let the person answer here; return 4 if they leave it waiting.

    With a `reason` what waits is shown, and only asked whether the yes or no is meant. Where it is
    settled in another terminal meanwhile, that is said, and the exit code is 0. Raises UsageError
    for a reason to a question in words.
    """
    from agentrunner.commands.elsewhere import settled_elsewhere
    from agentrunner.storage.events import read_from

    _check_own_words(reason, "--reason")
    run_id = run_for(verb, run, output)
    folder = RunFolder.open(output.state, run_id)
    _, seen = read_from(folder.events_file, 0)
    waiting = api.look_sync(run_id, state_dir=output.state).waiting
    if waiting is None:
        raise _not_waiting(run_id)
    if reason and waiting.kind in IN_WORDS:
        raise WrongAnswer(
            f"{run_id} asks something that is answered in words: there is nothing to {verb}.",
            path="--reason",
            remedy=f'agentrunner answer {run_id} "…"',
        )
    question = waiting.question()
    try:
        with polling(settled_elsewhere(folder, waiting.id, seen)):
            if reason and verb != "answer":
                answer = confirmed(question, folder.root, verb, reason)
            else:
                answer = asked(question, folder.root, reject=verb == "reject")
    except NotAskedAnyMore as settled:
        tell(f"\n{settled}\nNext:  agentrunner show {run_id}", sys.stderr)
        return 0
    if answer is None:
        tell(f"It still waits:  agentrunner answer {run_id}", sys.stderr)
        return 4
    return give(run_id, answer, output)


def _missing_error(verb: str, run: str | None, what: str, output: Output) -> UsageError:
    """The error for what is missing if nobody can be asked, with the command that shows it."""
    from agentrunner.storage.index import RunIndex

    rows = [row for row in RunIndex(output.state).runs(here()) if row.waiting]
    if not (run or rows):
        run_for(verb, None, output)  # says that none waits
    if run:
        run_for(verb, run, output)  # says that there is no such run
    name = run or (rows[0].run_id if len(rows) == 1 else "")
    remedy = f"agentrunner show {name} has the command" if name else f"agentrunner {verb} --help"
    return UsageError(what, remedy=remedy)


@opt.with_output
def accept(
    words: Annotated[list[str] | None, typer.Argument(metavar="[RUN] [AC-ID]...")] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why you say yes; it is recorded.")
    ] = None,
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
    """Say yes, after looking, to what nothing can prove. Never for what was green or is claimed.

    In a terminal the reason may be left out: what is missing is shown, and you are asked for it.
    """
    line: list[str] = []
    _check_own_words(reason, "--reason")
    values_of = {"--by": [by or ""], "--known-red": known_red or []}
    if lacking := next((name for name, values in values_of.items() if "--reason" in values), ""):
        raise UsageError(
            f"{lacking} has no value: --reason stands where it would be.",
            remedy="agentrunner accept --help",
        )
    if known_red:
        _check_alone(unchanged)
    named = list(words or [])
    if interactive(output) and not any(not word.upper().startswith("AC-") for word in named):
        named.insert(0, run_for("accept", None, output, asks_more=reason is None))
    if reason is None:
        run_id, rest = _run_and_names(named, output, tests=bool(known_red))
        named = [run_id, *rest]
        options = [word for name in known_red or [] for word in ("--known-red", name)]
        options += ["--unchanged"] * unchanged + (["--by", by] if by else [])
        reason = _asked_reason(run_id, [*rest, *options], output)
        _check_own_words(reason, "your reason")
        if not reason:
            tell(f"Nothing was accepted:  agentrunner show {run_id}", sys.stderr)
            return api.look_sync(run_id, state_dir=output.state).exit_code
    why = reason

    async def work(options: Options) -> Result:
        # In a thread: reading a run's criteria uses an event loop of its own.
        given = list(named)
        if known_red:
            run_id, more = _run_and_names(given, output, tests=True)
            names = [*known_red, *more]
            result = await api.accept(
                run_id, why, known_red=names, by=by or user_name(), how=options
            )
            line.append(await asyncio.to_thread(_line_for, options.state_dir, run_id))
            return result
        run_id, criteria = await asyncio.to_thread(_run_and_names, given, output, tests=False)
        return await api.accept(
            run_id,
            why,
            criteria=criteria,
            unchanged=unchanged,
            by=by or user_name(),
            how=options,
        )

    code = drive(work, output)
    for text in filter(None, line):
        tell(f"For the task file, no file was edited:  {flat(text)}", sys.stderr)
    return code


def _asked_reason(run_id: str, words: list[str], output: Output) -> str:
    """Return why a person says yes, asked after showing what is missing; "" where they leave.

    `words` are the others of the command.
    """
    from agentrunner.screens.summary import headline

    standing = api.look_sync(run_id, state_dir=output.state)
    if standing.waiting or not interactive(output):
        given = shlex.join(["agentrunner", "accept", run_id, *words])
        remedy = f"agentrunner show {run_id}" if standing.waiting else f'{given} --reason "…"'
        raise UsageError("a yes needs --reason: why, in your own words.", remedy=remedy)
    width = width_of(sys.stderr)
    tell(f"{headline(standing)}  {run_id} · {flat(standing.title or '')}", sys.stderr)
    for index, sentence in enumerate(standing.missing):
        tell("\n".join(labelled("" if index else "Missing:", sentence, width)), sys.stderr)
    return ask_line("why do you say yes (empty leaves it as it is) > ")


def _check_own_words(text: str | None, where: str) -> None:
    """Refuse the dots of a command that was pasted as a screen shows it: they say nothing."""
    if text and not text.strip(" .…"):
        raise UsageError(
            f'"{flat(text)}" stands for your own words.',
            path=where,
            remedy="write there what is to be kept and read",
        )


def _check_alone(unchanged: bool) -> None:
    if unchanged:
        raise UsageError(
            "--known-red says nothing of the tree, and --unchanged nothing of a test.",
            path="--unchanged",
            remedy="two commands, one after the other",
        )


def _line_for(state_dir: Path, run_id: str) -> str:
    """Return the line for the task file that keeps a run's known reds; "" if the run is gone."""
    from agentrunner.engine.commits import load_task_of
    from agentrunner.engine.known_reds import task_file_line
    from agentrunner.storage.run_log import RunLog

    if not (state_dir / "runs" / run_id).is_dir():
        return ""
    folder = RunFolder.open(state_dir, run_id)
    return task_file_line(load_task_of(folder), RunLog(folder.log_file))


def _run_and_names(words: list[str], output: Output, *, tests: bool) -> tuple[str, list[str]]:
    """Return the run, which the first word may name, and the other words: criteria or `tests`.

    A first word that is no run is a test, or a criterion of the default run; else it raises.
    """
    if not words:
        return run_for("accept", None, output), []
    try:
        return resolve(words[0], output.state_dir)[1], words[1:]
    except UsageError:
        run_id = run_for("accept", None, output)
        if tests:
            return run_id, words
        standing = api.look_sync(run_id, state_dir=output.state_dir)
        if words[0] not in {one.id for one in standing.acceptance_criteria}:
            raise
        return run_id, words


@opt.with_output
def cancel(run: opt.FittingRun = None, *, output: Output) -> int:
    """End a run; the files stay as they are."""

    async def work(options: Options) -> Result:
        run_id = run_for("cancel", run, output)
        _refuse_ended(options.state_dir, run_id)
        result = await api.cancel(run_id, options)
        # The run ends FAILED, but that is what was requested.
        ended = result.state == "FAILED"
        return result.model_copy(update={"exit_code": 0}) if ended else result

    return drive(work, output)


def _refuse_ended(state_dir: Path, run_id: str) -> None:
    """Raise UsageError for a run that has ended: what is printed would not tell it from a yes."""
    from agentrunner.state.lifecycle import state_word
    from agentrunner.storage.index import RunIndex

    row = next((row for row in RunIndex(state_dir).runs() if row.run_id == run_id), None)
    if row is None or row.finished_at is None or is_driven(state_dir, run_id):
        return
    word = state_word({**vars(row), "running": False})
    raise HasEnded(
        f"{run_id} has ended ({word}): there is nothing to cancel.",
        remedy=f"agentrunner show {run_id}",
    )
