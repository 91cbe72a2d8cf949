"""An index of commands: each name leads to a function, whose module is imported on its call."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from agentrunner.commands.examples import EXAMPLES, PAGES
from agentrunner.screens.layout import pasteable, sentence_lines
from agentrunner.text.lazy_regex import lazy_regex

Entries = Mapping[str, tuple[str, str]]
"""Name to `module:function` in agentrunner/commands, and its text in the list of commands."""
CONTEXT = {"help_option_names": ["-h", "--help"]}
HELP = "Show this."
LEAST_WIDTH = 50
"""Least width of help texts in typer, even in a narrower terminal."""


class _Typed:
    """Converts what was typed for a parameter, where it needs that.

    Typer asks pydantic also about options that were left out and about plain texts; to load it for
    nothing takes a third of the time of `list`.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value as the command takes it; raises what typer raises."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if _is_plain(value, param.type_descriptor):
            return value
        param._runtime_param = None  # typer makes its own
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _convert_if_needed(parameters: Sequence[Any]) -> None:
    for one in parameters:
        if hasattr(one, "_runtime_param"):
            one._runtime_param = _Typed()


def _is_plain(value: Any, kind: Any) -> bool:
    """Whether a value is a text that UTF-8 can hold, for a parameter that takes any."""
    if kind.annotation is not str or kind.parameter_info.parser or not isinstance(value, str):
        return False
    return value.isascii() or value.encode(errors="ignore").decode() == value


class DocumentedCommand(TyperCommand):
    """A command whose help shows what to type, with examples, without Python types."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse like typer, without loading what only some values need."""
        _convert_if_needed(self.get_params(ctx))
        return list(super().parse_args(ctx, args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as their metavars say."""
        return [self.options_metavar or "", *map(usage_of, _arguments(self))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each with its value."""
        arguments = [(usage_of(one), one.help or "") for one in _arguments(self)]
        rows_of_arguments = [(word, text) for word, text in arguments if text]
        options: list[Any] = [
            one for one in self.get_params(ctx) if one.param_type_name == "option"
        ]
        rows = [(written_option(one), about_option(one)) for one in options if not one.hidden]
        for title, lines in (("Arguments", rows_of_arguments), ("Options", rows)):
            if lines:
                with formatter.section(title):
                    write_rows(formatter, lines)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(ctx.command_path, formatter)


def write_rows(formatter: Any, rows: Sequence[tuple[str, str]]) -> None:
    """Write words and meanings; in a narrow terminal a long word has its own line."""
    formatter.write_dl(rows, col_max=30 if formatter.width >= LEAST_WIDTH else 12)


def help_width() -> int | None:
    """Return the width of help if the terminal is narrower than typer's minimum; else None."""
    columns = shutil.get_terminal_size().columns
    return columns - 1 if columns <= LEAST_WIDTH else None


def write_examples(path: str, formatter: Any) -> None:
    """Write the end of the help of a command: "agentrunner plan run", or "agent-runner"."""
    name = path.removeprefix("agentrunner").strip()
    if lines := EXAMPLES.get(name):
        with formatter.section("Examples"):
            for line in lines:
                indent = " " * formatter.current_indent
                for part in sentence_lines(f"{indent}{line}", formatter.width):
                    formatter.write(f"{part}\n")
    if page := PAGES.get(name):
        command = f"agentrunner explain {page}"
        together = len(f"More: {command}") <= formatter.width
        rows = [f"More: {command}"] if together else ["More:", *pasteable(command, formatter.width)]
        formatter.write("\n" + "".join(f"{row}\n" for row in rows))


def _arguments(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "argument" and not one.hidden]


def usage_of(argument: Any) -> str:
    """Return `FILE`, `[RUN]`, `TEXT`: brackets if it is optional."""
    word = str(argument.metavar or argument.name.upper())
    if argument.required or word.startswith("["):
        return word
    return f"[{word}]"


def written_option(option: Any) -> str:
    """Return `-q, --quiet`, `--worker KIND`, `--log-format text|json`.

    Of several long names only the first is shown: the others are older spellings that still work.
    """
    long = [name for name in option.opts if name.startswith("--")]
    short = [name for name in option.opts if name not in long]
    names = ", ".join([*short, *long[:1]])
    return names if option.is_flag or option.count else f"{names} {_value_of(option)}"


def _value_of(option: Any) -> str:
    if option.metavar:
        return str(option.metavar)
    if choices := choices_of(option):
        return "|".join(choices)
    return "N" if option.type_descriptor.annotation in (int, float) else "TEXT"


def choices_of(parameter: Any) -> list[str]:
    """Return the allowed words of a parameter that allows no others; else []."""
    kind = getattr(parameter, "type_descriptor", None)
    found = (kind.choices or ()) if kind is not None and kind.is_choice else ()
    return [str(getattr(one, "value", one)) for one in found]


def about_option(option: Any) -> str:
    """Return the description of an option."""
    text = HELP if option.name == "help" else option.help or ""
    text = _KINDS.sub(lambda match: ", ".join(_kinds(match[1])), text)
    return f"{text}  [required]" if option.required else text


_KINDS = lazy_regex(r"\{(workers|planners|plan makers|sandboxes)\}")
"""What stands for kinds in the description of an option: those that others add are looked for only
when it is shown."""


def _kinds(what: str) -> list[str]:
    from agentrunner.registry import PLANNERS, SANDBOXES, WORKERS

    if what == "plan makers":
        return [kind for kind in PLANNERS if kind != "checklist"]
    return list({"workers": WORKERS, "planners": PLANNERS, "sandboxes": SANDBOXES}[what])


class Index(TyperGroup):
    """A group of commands by name; subclasses need only `entries`."""

    entries: ClassVar[Entries]
    groups: ClassVar[Mapping[str, Entries]] = {}
    """The same entries by purpose, if there are many."""
    also: ClassVar[Mapping[str, str]] = {}
    """What else can be typed in place of a command, and what it does."""
    otherwise: ClassVar[str] = ""
    """The default command if none is named; "" for none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse like typer, with `otherwise` inserted before arguments that name no command."""
        if self.otherwise:
            if args[:1] == ["help"]:
                args = [*args[1:], "--help"]
            if not args or self.means_otherwise(args):
                args = [self.otherwise, *args]
        _convert_if_needed(self.get_params(ctx))
        return list(super().parse_args(ctx, args))

    def means_otherwise(self, args: list[str]) -> bool:
        """Whether arguments are meant for `otherwise`: they begin with an option of its own."""
        return args[0].startswith("-") and args[0] not in CONTEXT["help_option_names"]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the index."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.entries:
            return None
        module, _, function = self.entries[cmd_name][0].partition(":")
        command = getattr(import_module(f"agentrunner.commands.{module}"), function)
        if isinstance(command, typer.Typer):
            return get_command(command)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        cls = self.class_of(cmd_name)
        alone.command(cmd_name, cls=cls, context_settings=CONTEXT)(command)
        return get_command(alone)

    def class_of(self, cmd_name: str) -> type[DocumentedCommand]:
        """Return the class that parses a command's options."""
        return DocumentedCommand

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands first, since users look for these."""
        self.format_commands(ctx, formatter)
        shown = [one for one in self.get_params(ctx) if not getattr(one, "hidden", False)]
        options = [(written_option(one), about_option(one)) for one in shown]
        with formatter.section("Options"):
            write_rows(formatter, options)
        self.format_otherwise(ctx, formatter)

    def format_otherwise(self, ctx: Any, formatter: Any) -> None:
        """Write the options that may stand where no command is named."""
        command = self.get_command(ctx, self.otherwise) if self.otherwise else None
        known = CONTEXT["help_option_names"]
        shown = [
            one
            for one in (command.params if command else ())
            if one.param_type_name == "option"
            and not getattr(one, "hidden", False)
            and not set(one.opts) & set(known)
        ]
        if shown:
            with formatter.section(f"Options without a command, as those of {self.otherwise}"):
                write_rows(formatter, [(written_option(one), about_option(one)) for one in shown])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of `--help` without importing the commands."""
        with formatter.section("Commands"):
            rows = [(name, meaning) for name, (_, meaning) in self.entries.items()]
            write_rows(formatter, rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(ctx.command_path, formatter)


def index_app(name: str, cls: type[Index]) -> typer.Typer:
    """Return the typer application of an index."""
    return typer.Typer(
        name=name,
        cls=cls,
        add_completion=False,
        context_settings=CONTEXT,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich would slow `--help` down more than everything else together
    )
