"""Getting ready: doctor and init."""

from __future__ import annotations

from typing import Annotated

import typer


def doctor(
    sandbox: Annotated[
        str | None,
        typer.Option("--sandbox", metavar="KIND", help="Try everything a sandbox must do."),
    ] = None,
) -> int:
    """What works on this machine, found out by trying."""
    raise typer.Exit(0)


def init(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Of the task.")] = "task",
    as_yaml: Annotated[bool, typer.Option("--yaml", help="A task file in place of a PRD.")] = False,
) -> int:
    """Write a first task for this repository, with what is found in it. Never overwrites."""
    raise typer.Exit(0)
