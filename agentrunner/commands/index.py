"""An index of commands: a name leads to a function, whose module is imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

Entries = Mapping[str, tuple[str, str]]
"""Name to `module:function` in agentrunner/commands, and what the list of commands says of it."""


class Index(TyperGroup):
    """The commands by name; `entries` is all that a subclass must have."""

    entries: ClassVar[Entries]

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the index."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command behind a name."""
        if cmd_name not in self.entries:
            return None
        module, _, function = self.entries[cmd_name][0].partition(":")
        command = getattr(import_module(f"agentrunner.commands.{module}"), function)
        if isinstance(command, typer.Typer):
            return get_command(command)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name, cls=self.class_of(cmd_name))(command)
        return get_command(alone)

    def class_of(self, cmd_name: str) -> type[TyperCommand]:
        """What reads the options of a command."""
        return TyperCommand

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list under `--help`, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, told) for name, (_, told) in self.entries.items()])
