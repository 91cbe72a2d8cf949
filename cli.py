"""The command line: an index of the commands, and the one place where errors become exit codes.

Every command is a function in agentrunner/commands: options in, one call, one screen out, the
exit code returned. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import gc
import io
import itertools
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from agentrunner import __version__
from agentrunner.commands.command_line import (
    COMPLETE_VARIABLE,
    GIVEN_AT,
    TASK_FILES,
    TYPED,
    is_goal,
)
from agentrunner.commands.index import (
    CONTEXT,
    DocumentedCommand,
    Entries,
    Index,
    help_width,
    index_app,
    write_rows,
)
from agentrunner.errors import UsageError
from agentrunner.text.likeness import likest, slip_of

GROUPS: Mapping[str, Entries] = {
    "Work": {
        "run": ("start:run", "Work on a task until it is proven done, fails, or needs you."),
        "resume": ("respond:resume", "Continue a run, or start its next attempt."),
        "cancel": ("respond:cancel", "End a run; the files stay as they are."),
        "undo": ("look:undo", "Put the files back as they were before a run."),
    },
    "Look": {
        "list": ("look:list_runs", "The runs of this repository."),
        "watch": ("watch:watch", "See a run at work elsewhere, and answer what it asks."),
        "show": ("look:show_run", "How a run stands: what is proven and what is not."),
        "logs": ("look:logs", "What happened in a run, and what its workers did."),
        "diff": ("look:diff", "What a run changed."),
        "verify": ("verifying:verify", "Verify once more, from nothing, what a run delivered."),
    },
    "Answer": {
        "answer": ("respond:answer", "Answer a question of the planner."),
        "approve": ("respond:approve", "Say yes to exactly what is asked."),
        "reject": ("respond:reject", "Say no to what is asked, and why."),
        "accept": ("respond:accept", "Say yes, after looking, to what nothing can prove."),
    },
    "Plan": {
        "plan": (
            "plan_commands:app",
            "Make a plan by saying what you want, change it, carry it out.",
        ),
        "chat": ("chat:chat", "Talk about the plan, and steer the work on it."),
    },
    "Set up": {
        "init": ("init:init", "Write a first task for this repository."),
        "validate": ("start:validate", "Check a task file or PRD; show what will be executed."),
        "doctor": ("setup:doctor", "What works on this machine, found out by trying."),
        "workers": (
            "worker_list:workers",
            "The worker CLIs: versions, needs, what each can report.",
        ),
        "planners": ("planner_commands:app", "Who can plan here; try one before you trust it."),
        "config": ("config:config", "The settings in force, where each comes from; change them."),
        "image": ("images:image", "Build the images that workers run in."),
        "completion": ("completion:completion", "Completion of commands, runs and files by Tab."),
        "gc": ("look:gc", "Delete what is kept of old runs."),
        "explain": (
            "texts:explain",
            "What an error code means; a page of the documentation.",
        ),
    },
    "For developers": {
        "schema": ("texts:schema", "A JSON Schema of a task file, result, event or message."),
        "parse": ("texts:parse", "Read a reply of a model as a run would."),
        "graph": ("texts:graph", "The graph as a Mermaid diagram."),
        "man": ("manual:man", "Write man pages into a folder."),
    },
}
COMMANDS: Entries = {name: entry for group in GROUPS.values() for name, entry in group.items()}
_LOGIN = (
    "claude setup-token, or codex login; agentrunner never asks for a key (docs/how-to/login.md)"
)
_UPGRADE = (
    "git pull in agentrunner's folder, then uv tool install --reinstall '.[sandbox]' "
    "(docs/how-to/install.md)"
)
MEANT = {
    "ls": "agentrunner list",
    "ps": "agentrunner list",
    "status": "agentrunner show, or agentrunner plan status",
    "log": "agentrunner logs",
    "tail": "agentrunner logs -f",
    "attach": "agentrunner watch",
    "start": "agentrunner run",
    "continue": "agentrunner resume",
    "retry": "agentrunner resume",
    "stop": "agentrunner cancel",
    "kill": "agentrunner cancel",
    "rm": "agentrunner gc, which deletes what is kept of old runs",
    "clean": "agentrunner gc, which deletes what is kept of old runs",
    "yes": "agentrunner approve",
    "no": "agentrunner reject",
    "check": "agentrunner validate FILE",
    "settings": "agentrunner config show",
    "exec": 'agentrunner run FILE.md, or agentrunner "what you want"',
    "login": _LOGIN,
    "auth": _LOGIN,
    "logout": "the logout of the worker's own CLI; agentrunner keeps no key (docs/how-to/login.md)",
    "update": _UPGRADE,
    "upgrade": _UPGRADE,
}
"""What other programs call it, and what it is here."""
ALSO = {"help": "All commands, or all that one can do.", "version": "Print the version."}
"""What else may stand in the place of a command."""
MOST_NAMED = 4
"""Commands that are named for an option that stands where it is none."""
KEPT = (
    "a run keeps the settings that it was started with: change the task file, then"
    " agentrunner resume --on-change replan"
)
"""What `resume` says to an option that only a new run takes."""
_OWN_OPTIONS = ("--version", "-V", "--json", "--help", "-h", "--", "-")
DRIVERS = ("run", "resume", "answer", "approve", "reject", "accept", "watch")
"""With --json each of them prints exactly one result, whatever happens."""
PLAN_RUN = ("plan", "run")
"""So does this, a `plan_result`."""


class Commands(Index):
    """All of them, with a "did you mean" for a name that is none."""

    entries = COMMANDS
    groups = GROUPS
    also = ALSO

    def class_of(self, cmd_name: str) -> type[DocumentedCommand]:
        """`run` has an option that typer cannot read."""
        if cmd_name != "run":
            return DocumentedCommand
        from agentrunner.commands.options import LooseCommand

        return LooseCommand

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does, with its "did you mean" over the whole index."""
        if args[0] in COMMANDS or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        raise UsageError(f'there is no command "{args[0]}".', remedy=_meant_by(*args))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by what they are for."""
        width = max(map(len, COMMANDS))
        for title, entries in GROUPS.items():
            with formatter.section(title):
                write_rows(
                    formatter, [(name.ljust(width), text) for name, (_, text) in entries.items()]
                )


def _meant_by(word: str, *others: str) -> str:
    """What to type in place of what is no command, with what stood behind it."""
    if word in MEANT:
        return MEANT[word]
    if Path(word).is_file():
        return f"agentrunner run {word}"
    near = likest(word, [*COMMANDS, *MEANT, *ALSO])
    if not near and others and not others[0].startswith("-"):
        words = itertools.takewhile(lambda other: not other.startswith("-"), (word, *others))
        return f'a sentence goes in quotes: agentrunner "{" ".join(words)}"'
    if not near:
        return "agentrunner --help"
    return MEANT.get(near) or f"did you mean {near}?"


def understood(arguments: Sequence[str]) -> list[str]:
    """A command line with what people also type: `help run`, `version`, a sentence as a goal."""
    first, *rest = arguments or [""]
    if first == "help" and rest[:1] == ["--man"]:
        return ["man", *rest[1:]]
    if first == "help":
        return [*(word for word in rest if word not in ALSO), "--help"]
    if first == "version":
        return ["--version", *rest]
    if is_goal(first) or (_is_of_run(first) and any(map(is_goal, rest))):
        return ["run", *arguments]
    return list(arguments)


def _is_of_run(word: str) -> bool:
    """Whether a word is an option that `agentrunner` alone does not have, so that it is `run`'s."""
    return word.startswith("-") and word.partition("=")[0] not in _OWN_OPTIONS


app = index_app("agentrunner", Commands)


def _print_version(wanted: bool) -> None:
    if wanted:
        _end_with_version(as_json=False)


def _end_with_version(*, as_json: bool) -> NoReturn:
    from agentrunner.git.own_checkout import described, own_commit

    if as_json:
        typer.echo(json.dumps({"version": __version__, "commit": own_commit() or None}))
    else:
        typer.echo(f"agentrunner {described(__version__)}")
    raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", "-V", callback=_print_version, is_eager=True, help="Print the version."
    ),
]


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version; with --json as JSON.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", hidden=True)] = False,
) -> int:
    """Hand over a PRD and a repository, walk away, and believe it when it says COMPLETE."""
    if version:
        _end_with_version(as_json=as_json)
    if context.invoked_subcommand is not None:
        return 0
    if not sys.stdout.isatty():
        typer.echo(context.get_help())
        return 0
    from agentrunner.commands.overview import overview as shown

    return shown()


def main(given_at: float | None = None) -> None:
    """Entry point of `agentrunner`; `given_at` is when its process began, in seconds since 1970."""
    GIVEN_AT.set(given_at)
    seldom_collecting()
    with_streams()
    if COMPLETE_VARIABLE in os.environ:
        from agentrunner.commands.completion import complete

        sys.exit(complete(get_command(app), sys.argv[1:]))
    try:
        code = call(app, sys.argv[1:], "agentrunner")
    except KeyboardInterrupt:  # a second Ctrl-C, while the first was dealt with
        code = 130
    # From here on one more Ctrl-C is the end, without Python's traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(flushed(code))


def flushed(code: int) -> int:
    """The exit code, when what was printed has gone out; a reader that went away is no error.

    Python would complain of it when it ends, behind everybody's back.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    return code


def seldom_collecting() -> None:
    """Let Python look for cycles after 20,000 new objects, not after each 700.

    Imports make hundreds of thousands of objects that all stay, and looking through them again and
    again was a tenth of the CPU until the engine is there (1.33 s, then 1.19 s).
    """
    gc.set_threshold(20_000)


def with_streams() -> None:
    """Give a process that was started without stdout or stderr (`>&-`) ones that lead nowhere.

    What a terminal of another encoding than UTF-8 cannot show is a question mark there.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def call(application: typer.Typer, arguments: list[str], name: str) -> int:
    """Run a command line; its exit code. Whatever is raised is told in the one form."""
    if application is app:
        arguments = understood(arguments)
    typed = TYPED.set(tuple(arguments))
    try:
        code = application(
            arguments, prog_name=name, standalone_mode=False, terminal_width=help_width()
        )
    except typer.Abort:
        return 130
    except Exception as error:  # noqa: BLE001 - the last handler: told in one line, and kept
        from agentrunner.commands.fail import tell

        raised = _usage(error, arguments) if isinstance(error, typer.TyperException) else error
        of_plan = tuple(arguments[:2]) == PLAN_RUN
        promised = "--json" in arguments and (of_plan or arguments[0] in DRIVERS)
        state = _value_of("--state-dir", arguments)
        return tell(raised, as_json=promised, state_dir=state, of_plan=of_plan)
    finally:
        TYPED.reset(typed)
    return int(code or 0)


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    """The value of an option, for what is told of a command line that went wrong."""
    for word, after in itertools.pairwise([*arguments, ""]):
        name, equals, value = word.partition("=")
        if name == option:
            return (value if equals else after) or None
    return None


def _usage(error: typer.TyperException, line: Sequence[str] = ()) -> UsageError:
    """What typer says about a command line, in our form."""
    message, remedy, refused = error.format_message(), "", error.__cause__
    if type(refused).__module__.startswith("pydantic"):
        from pydantic import ValidationError

        from agentrunner.config.mistakes import wrong_value

        assert isinstance(refused, ValidationError)
        hint = message.partition(": ")[0].removeprefix("Invalid value for ").replace("'", "")
        message, remedy = wrong_value(hint, refused.errors()[0])
    elif near := getattr(error, "possibilities", None):
        message = message.partition(" (Possible")[0]
        meant = likest(message.rpartition(" ")[2], near)
        remedy = f"did you mean {meant}?" if meant else ""
    elif " Did you mean " in message:
        message, _, near = message.partition(" Did you mean ")
        remedy = f"did you mean {near.strip('?').split(',')[0]}?".replace("'", "")
    context = getattr(error, "ctx", None)
    if context and message.startswith("No such option: "):
        remedy = (
            _having(message, getattr(error, "possibilities", None) or (), context.info_name)
            or remedy
        )
    if line and (words := _for_run(line, context)):
        option, of_run = line[0].partition("=")[0], words.startswith("agentrunner run ")
        where = "is an option of run, with a task" if of_run else "goes behind the command"
        message, remedy = f"{option} {where}.", words
    # An option without its value is reported without the command that it stands in.
    command = f" {line[0]}" if line and line[0] in COMMANDS else ""
    path = context.command_path if context else f"agentrunner{command}"
    if context and (sentence := _unquoted(message, context)):
        message, remedy = "a goal of several words goes in quotes.", f'{path} "{sentence}"'
    return UsageError(message, remedy=remedy or f"{path} --help")


def _having(message: str, near: Sequence[str], command: str | None) -> str:
    """The commands that have the option that is missed, word for word; "" where none has it.

    And where it is a slip for one of the command's own, `near`: all commands are imported for this.
    """
    option = message.removeprefix("No such option: ").partition(" ")[0].rstrip(".")
    if slip_of(option, near):
        return ""
    group = get_command(app)
    found = [name for name, one in _commands(group, "") if option in _options_of(one)]
    if command == "resume" and "run" in found:
        return KEPT
    if len(found) == 1:
        return f"did you mean agentrunner {found[0]} {option}?"
    more = " and others" * (len(found) > MOST_NAMED)
    return f"{option} is an option of {', '.join(found[:MOST_NAMED])}{more}" if found else ""


def _commands(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    """All commands, those of groups too, by the words that call them."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, Index):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _options_of(command: Any) -> list[str]:
    return [
        name for one in command.params if not getattr(one, "hidden", False) for name in one.opts
    ]


def _for_run(line: Sequence[str], context: Any) -> str:
    """`run` with the options that were typed without it; "" where it has no such option.

    Or the command that stands behind the option, with that option behind it.
    """
    name, equals, _ = line[0].partition("=")
    if not _is_of_run(name) or (context is not None and context.parent is not None):
        return ""
    params = get_command(app).get_command(context, "run").params  # type: ignore[attr-defined]
    option = next((one for one in params if name in one.opts), None)
    if option is None:
        return ""
    valued = not (equals or option.is_flag or option.count)
    others = line[1 + valued :]
    named = get_command(app).get_command(context, others[0]) if others else None  # type: ignore[attr-defined]
    if named is not None and name in _options_of(named):
        return shlex.join(["agentrunner", *others, *line[: 1 + valued]])
    return shlex.join(["agentrunner", "run", *line[: 1 + valued]]) + ' "what you want"'


def _unquoted(message: str, context: Any) -> str:
    """The goal that was typed after `run` without quotes; "" where this is another mistake."""
    if context.info_name != "run" or not message.startswith("Got unexpected extra argument"):
        return ""
    others = message.partition("(s) (" if "(s) (" in message else " (")[2].removesuffix(")")
    first, goal = context.params.get("file"), context.params.get("goal")
    if not first or first.endswith(TASK_FILES) or Path(first).exists():
        return ""
    return " ".join(filter(None, (goal, first, others)))


stdin_app = typer.Typer(
    name="agent-runner", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
)


@stdin_app.command(cls=DocumentedCommand, context_settings=CONTEXT)
def _from_stdin(version: Version = False) -> int:
    """Work on the task file on standard input: agent-runner < task.yaml."""
    if sys.stdin.isatty():
        raise UsageError(
            "the task file comes on standard input.", remedy="agent-runner < task.yaml"
        )
    from agentrunner.commands import start

    return start.run_stdin()


def stdin_main() -> None:
    """Entry point of `agent-runner`: 0 for COMPLETE, 1 for everything else."""
    seldom_collecting()
    with_streams()
    sys.exit(flushed(1 if call(stdin_app, sys.argv[1:], "agent-runner") else 0))
