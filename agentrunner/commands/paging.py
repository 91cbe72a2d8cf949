"""Long texts in a terminal: a diff in colours, through the person's pager."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from typing import TextIO

from agentrunner.commands.console import paint_for, show
from agentrunner.screens.diff import coloured
from agentrunner.text.terminal import sanitize


def show_diff(text: str, stream: TextIO | None = None) -> None:
    """A unified diff: coloured and paged in a terminal, byte for byte elsewhere.

    To a pipe it goes as it is, so that `git apply` gets what was changed.
    """
    target = stream or sys.stdout
    if not target.isatty():
        show(text.rstrip("\n"), target)
        return
    page(coloured(sanitize(text).rstrip("\n"), paint_for(target)), target)


def page(text: str, stream: TextIO) -> None:
    """Show a text in $PAGER (`less -FRX` where none is set), or as it is where there is none.

    PAGER= or PAGER=cat means none.
    """
    command = shlex.split(os.environ.get("PAGER", "less"))
    fits = text.count("\n") < shutil.get_terminal_size().lines - 1
    if fits or not command or command[0] == "cat" or shutil.which(command[0]) is None:
        show(text, stream)
        return
    environ = {"LESS": "-FRX", "LV": "-c", **os.environ}
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        # Errors of the pager are its own to tell.
        subprocess.run(command, input=text + "\n", text=True, check=False, env=environ)
