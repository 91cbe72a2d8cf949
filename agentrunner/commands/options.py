"""Options that several commands share."""

from __future__ import annotations

import contextlib
import errno
import functools
import inspect
import io
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentrunner.commands.command_line import TASK_FILES
from agentrunner.commands.console import Output
from agentrunner.commands.index import DocumentedCommand
from agentrunner.errors.command_line import BadOption
from agentrunner.errors.task_files import Unreadable

Run = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="Run id, its beginning, or a task id. Default: newest."),
]
FittingRun = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]",
        help="Run id, its beginning, or a task id. Default: the only one that fits.",
    ),
]
WaitingRun = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="Default: the only run here that waits for you."),
]
QuestionId = Annotated[
    str | None,
    typer.Option("--id", metavar="ID", help="Answer exactly the question with this id."),
]
StateDir = Annotated[
    str | None, typer.Option("--state-dir", metavar="DIR", help="Where runs are kept.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Limit tasks by this policy file, too."),
]
Test = Annotated[
    str | None,
    typer.Option(
        "--test", metavar="CMD", help="The test command; `auto` finds it, `none` runs none."
    ),
]
CHOSEN = "Left out: what is ready here."
Meta = Annotated[
    str | None,
    typer.Option("--planner", "--meta", metavar="KIND", help=f"Who plans: {{planners}}. {CHOSEN}"),
]
Planner = Annotated[
    str | None,
    typer.Option(
        "--planner", "--meta", metavar="KIND", help=f"Who plans: {{plan makers}}. {CHOSEN}"
    ),
]
"""For plans: `checklist` and its like can execute a task, but not make a plan."""
Worker = Annotated[
    str | None,
    typer.Option("--worker", metavar="KIND", help=f"Who works: {{workers}}. {CHOSEN}"),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="The worker's model.")]
PlannerModel = Annotated[
    str | None, typer.Option("--planner-model", metavar="NAME", help="The planner's model.")
]
Sandbox = Annotated[
    str | None,
    typer.Option("--sandbox", metavar="KIND", help="Where: auto, {sandboxes}."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Any setting of the task file."),
]
PlanRepo = Annotated[
    str | None, typer.Option("--repo", metavar="DIR", help="The repository. Default: this one.")
]
Detach = Annotated[
    bool,
    typer.Option("--detach", "-d", help="Continue without this terminal."),
]
OneJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
NoInput = Annotated[bool, typer.Option("--no-input", help="Never ask.")]


class LooseCommand(DocumentedCommand):
    """A command whose option `--worktree` takes an optional value, which typer does not support."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse like typer; a bare `--worktree` has an empty value."""
        given = []
        for word, after in pairwise([*args, "-"]):
            bare = word == "--worktree" and after.startswith("-")
            if word == "--worktree" and (bare or after.endswith(TASK_FILES)):
                word = "--worktree="
            given.append(word)
        return list(super().parse_args(ctx, given))


def _output(
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON on stdout.")] = False,
    events: Annotated[
        Path | None, typer.Option("--events", metavar="FILE", help="Append the events to FILE.")
    ] = None,
    no_input: Annotated[
        bool, typer.Option("--no-input", help="Never ask; pause instead (exit 4).")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only the end, no progress.")
    ] = False,
    log_format: Annotated[
        Literal["text", "json"], typer.Option("--log-format", help="Form of log lines.")
    ] = "text",
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option("--log-level", help="Least level to log."),
    ] = "warning",
    notify: Annotated[
        str | None,
        typer.Option("--notify", metavar="CMD", help="Run CMD when it needs you or has ended."),
    ] = None,
    state_dir: StateDir = None,
) -> Output:
    return Output(as_json, events, no_input, quiet, log_format, log_level, state_dir, notify=notify)


def with_output(command: Callable[..., int]) -> Callable[..., int]:
    """Replace a command's `output` by the options of all commands that drive a run.

    Typer reads options from the signature; repeated in every command they would hide its own.
    """
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(_output, eval_str=True).parameters
    both = [p for name, p in own.items() if name != "output"] + list(shared.values())

    @functools.wraps(command)
    def expanded(**values: Any) -> int:
        output = _output(**{name: values.pop(name) for name in shared})
        if output.events is not None:
            _refuse_unwritable(output.events)
        return command(**values, output=output)

    return _with_parameters(expanded, both)


def _with_parameters(
    command: Callable[..., int], parameters: list[inspect.Parameter]
) -> Callable[..., int]:
    """Return the command, of which typer sees these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    del command.__wrapped__  # type: ignore[attr-defined]  # the annotations are used instead
    return command


def _refuse_unwritable(events: Path) -> None:
    """Raise UsageError, before any run exists, where the file of --events cannot be written."""
    try:
        if events.exists() and not events.is_file():  # a pipe: its reader would see it closed
            if events.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            return
        is_new = not events.exists()
        events.open("a").close()
        if is_new:
            events.unlink()
    except OSError as error:
        raise _unwritable(events, error, "--events") from error


def _unwritable(file: Path, error: OSError, option: str) -> Unreadable:
    return Unreadable(
        f"{file} cannot be written: {error.strerror}.",
        path=option,
        remedy="name a file in a folder that is there",
    )


def detached(output: Output, detach: bool) -> Output:
    """Return the output settings with the option `--detach`."""
    return replace(output, detach=detach)


def with_file(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command that prints data the option `-o FILE` for its output.

    The file is written only when the command has succeeded, and completely.
    """
    own = inspect.signature(command, eval_str=True).parameters
    place = inspect.Parameter(
        "output_file",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None,
            typer.Option("--output", "-o", metavar="FILE", help="Write it to FILE."),
        ],
    )

    @functools.wraps(command)
    def expanded(output_file: Path | None = None, **values: Any) -> int:
        if output_file is None:
            return command(**values)
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            code = command(**values)
        try:
            output_file.write_text(written.getvalue(), encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise _unwritable(output_file, error, "--output") from error
        return code

    return _with_parameters(expanded, [*own.values(), place])


def budget_override(text: str) -> str:
    """Convert `usd=5` to a `--set` override; raises UsageError if it is no limit of a run."""
    from agentrunner.state.budget import NAMES

    known = (*NAMES, "wait_sec")  # not a budget kind, but in the same section
    name, equals, amount = text.partition("=")
    if name not in known or not equals or not _is_limit(name, amount):
        raise BadOption(
            f"--budget {text} sets no limit.",
            path="--budget",
            remedy="--budget NAME=AMOUNT, where AMOUNT is a number, 0 or more, and NAME one of "
            f"{', '.join(known)}",
        )
    return f"runner.budget.{text}"


def _is_limit(name: str, amount: str) -> bool:
    """Whether the named limit accepts this amount; "+5" would be an addition instead."""
    from pydantic import ValidationError

    from agentrunner.config.budget import BudgetSpec

    try:
        BudgetSpec.model_validate({name: amount})
    except ValidationError:
        return False
    return not amount.startswith("+")
