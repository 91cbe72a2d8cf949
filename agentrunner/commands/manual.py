"""Man pages of the program and of each command, made from their help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

from agentrunner import __version__
from agentrunner.commands.console import tell
from agentrunner.commands.examples import EXAMPLES, PAGES
from agentrunner.commands.index import Index, about_option, usage_of, written_option
from agentrunner.errors import UsageError
from agentrunner.errors.task_files import Unreadable
from agentrunner.screens.layout import count
from agentrunner.state.lifecycle import END_STATES, KEPT_EXIT, WAITING_EXIT, TaskState

SECTION = 1
EXIT_CODES: Mapping[int, str] = {
    **{end.exit_code: str(state) for state, end in END_STATES.items()},
    END_STATES[TaskState.COMPLETE].exit_code: f"{TaskState.COMPLETE}, or a query that worked",
    UsageError.exit_code: "a mistake in the command line, the task or the answer",
    WAITING_EXIT: "it waits for a person",
    KEPT_EXIT: "something is missing or away on this machine; the run, if any, is kept",
}
SIGNALS = ("129, 130, 143", "ended by SIGHUP, SIGINT, SIGTERM; the run is kept")
FILES = (
    ("~/.config/agentrunner/config.yaml", "Your settings: agentrunner config edit."),
    ("~/.local/state/agentrunner", "Where runs and plans are kept (AGENTRUNNER_STATE_DIR)."),
    (".agent-runner/", "The notes of runs, in the repository."),
)

STDIN = "agent-runner"
STDIN_ABOUT = "Work on the task file on standard input"
STDIN_DETAIL = (
    "Does what agentrunner run does, for a program that hands over a task file and looks at the"
    " exit code. It asks nobody; the log is on standard output. Where the run waits for a person,"
    " standard error names the command that answers."
)
STDIN_CODES = (("0", "COMPLETE"), ("1", "everything else, a run that waits included"))


def man(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="For man section 1, e.g. ~/.local/share/man/man1.")
    ],
) -> int:
    """Write a man page of the program and of each command into a folder; made where missing."""
    program = context.find_root().command
    folder = folder.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = [name for name, _ in write_pages(program, folder)]
    except OSError as error:
        raise Unreadable(
            f"{folder} cannot be written: {error.strerror}.",
            path=str(folder),
            remedy="name a folder of your own",
        ) from error
    tell(f"{count(len(names), 'page')} in {folder}.  man -l {folder / names[0]}")
    return 0


def write_pages(program: Any, folder: Path) -> Iterator[tuple[str, str]]:
    """Write each page; yield its file name and text."""
    for name, text in pages(program):
        (folder / name).write_text(text, encoding="utf-8")
        yield name, text


def pages(program: Any) -> Iterator[tuple[str, str]]:
    """Yield file name and text of each page of the program and its commands."""
    context = typer.Context(program, info_name="agentrunner")
    yield f"agentrunner.{SECTION}", _program_page(program, context)
    yield f"{STDIN}.{SECTION}", _stdin_page()
    yield from _command_pages(program, context, "")


def _stdin_page() -> str:
    """The page of the second program, which other programs call."""
    title = f'.TH {STDIN.upper()} {SECTION} "" "AgentRunner {__version__}" "AgentRunner"'
    lines = [title, ".SH NAME", f"{_text(STDIN)} \\- {_text(STDIN_ABOUT)}"]
    lines += [".SH SYNOPSIS", f".B {_text(STDIN)}", _text("< task.yaml"), ".SH DESCRIPTION"]
    lines.append(_text(STDIN_DETAIL))
    lines.append('.SH "EXIT STATUS"')
    for code, about in STDIN_CODES:
        lines += [".TP", f".B {_text(code)}", _text(about)]
    see = [
        f".BR {_text('agentrunner')} ({SECTION}),",
        f".BR {_text('agentrunner-run')} ({SECTION})",
    ]
    return _joined([*lines, '.SH "SEE ALSO"', *see])


def _command_pages(index: Index, above: Any, lead: str) -> Iterator[tuple[str, str]]:
    for name in index.list_commands(above):
        command = index.get_command(above, name)
        path = f"{lead} {name}".strip()
        context = typer.Context(command, info_name=name, parent=above)
        about = index.entries[name][1]
        yield f"{_page(path)}.{SECTION}", _command_page(command, context, path, about)
        if isinstance(command, Index):
            yield from _command_pages(command, context, path)


def _page(path: str) -> str:
    return "-".join(["agentrunner", *path.split()])


def _program_page(program: Any, context: Any) -> str:
    lines = _head("", program.help or "")
    lines += [".SH SYNOPSIS", ".B agentrunner", _text("COMMAND [OPTIONS] [ARGUMENTS]"), ".br"]
    lines += [".B agentrunner", _text('"what you want"')]
    lines.append(".SH COMMANDS")
    for title, entries in program.groups.items():
        lines.append(f".SS {_text(title)}")
        for name, (_, about) in entries.items():
            lines += [".TP", f".BR {_text(_page(name))} ({SECTION})", _text(about)]
    lines += _options(program, context)
    codes = [*((str(code), EXIT_CODES[code]) for code in sorted(EXIT_CODES)), SIGNALS]
    for title, rows in (("EXIT STATUS", codes), ("FILES", FILES)):
        lines.append(f'.SH "{title}"')
        for word, about in rows:
            lines += [".TP", f".B {_text(word)}", _text(about)]
    return _joined([*lines, *_examples("")])


def _command_page(command: Any, context: Any, path: str, about: str) -> str:
    lines = _head(path, about)
    pieces = " ".join(filter(None, command.collect_usage_pieces(context)))
    lines += [".SH SYNOPSIS", f".B {_text(f'agentrunner {path}')}", _text(pieces)]
    lines.append(".SH DESCRIPTION")
    for number, paragraph in enumerate(cleandoc(command.help or about).split("\n\n")):
        lines += [".PP"] * bool(number) + [_text(" ".join(paragraph.split()))]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if described := [one for one in arguments if one.help and not one.hidden]:
        lines.append(".SH ARGUMENTS")
        for one in described:
            lines += [".TP", f".I {_text(usage_of(one))}", _text(one.help)]
    if isinstance(command, Index):
        lines.append(".SH COMMANDS")
        for name, (_, what) in command.entries.items():
            lines += [".TP", f".BR {_text(_page(f'{path} {name}'))} ({SECTION})", _text(what)]
    return _joined([*lines, *_options(command, context), *_examples(path)])


def _head(path: str, about: str) -> list[str]:
    name, first = _page(path), cleandoc(about).partition("\n")[0].rstrip(".")
    title = f'.TH {name.upper()} {SECTION} "" "AgentRunner {__version__}" "AgentRunner"'
    return [title, ".SH NAME", f"{_text(name)} \\- {_text(first)}"]


def _options(command: Any, context: Any) -> list[str]:
    options = [one for one in command.get_params(context) if one.param_type_name == "option"]
    lines = [".SH OPTIONS"]
    for one in options:
        if not one.hidden:
            lines += [".TP", f".B {_text(written_option(one))}", _text(about_option(one))]
    return lines


def _examples(path: str) -> list[str]:
    lines = [".SH EXAMPLES", ".nf", *map(_text, EXAMPLES.get(path, ())), ".fi"]
    others = f".BR {_text('agentrunner')} ({SECTION})" if path else ""
    page = f"agentrunner explain {PAGES[path]}" if path in PAGES else ""
    return [*lines, '.SH "SEE ALSO"', *filter(None, [others, _text(page)])]


def _text(text: str) -> str:
    """Escape a text for roff: no word is taken as a request, and hyphens can be copied."""
    plain = re.sub(r"[\x00-\x1f\x7f]+", " ", text).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if line) + "\n"
