"""Which settings are in force, and where each comes from."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agentrunner.commands.console import show, width_of
from agentrunner.commands.runs import here


class Action(StrEnum):
    """What is done with settings."""

    show = "show"


def config(
    action: Annotated[Action, typer.Argument(metavar="show", help="What to do.")],
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="A task file or a PRD; none: no task.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also those at their default.")] = False,
) -> int:
    """The settings that a run would have, each with the file, option or variable it is from."""
    from agentrunner.commands.start import load, source_of
    from agentrunner.config.config_files import PROJECT_FILE, user_file
    from agentrunner.config.load import load_settings
    from agentrunner.config.origins import settings_of
    from agentrunner.screens.crew import settings_screen

    if file is None:
        repo = here()
        runner, places = load_settings(repo, os.environ, auto=True)
    else:
        spec = load(source_of(file, None, None), [], {})
        repo, runner, places = Path(spec.repo), spec.runner, spec.places
    looked_for = [repo / PROJECT_FILE, user_file(os.environ)]
    show(
        settings_screen(
            settings_of(runner, places, os.environ, everything=everything),
            [(str(path), path.is_file()) for path in looked_for if path is not None],
            os.environ.get("HOME", ""),
            width_of(sys.stdout),
        )
    )
    return 0
