"""Show long texts in a terminal: a coloured diff through the person's pager."""

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
    """Show a unified diff: coloured and paged in a terminal, byte for byte elsewhere.

    A pipe gets it unchanged, so that `git apply` works.
    """
    target = stream or sys.stdout
    if not target.isatty():
        show(text.rstrip("\n"), target)
        return
    page(coloured(sanitize(text).rstrip("\n"), paint_for(target)), target)


def page(text: str, stream: TextIO) -> None:
    """Show a text in $PAGER (by default `less -FRX`), or directly if there is no pager.

    PAGER= or PAGER=cat means none.
    """
    command = shlex.split(os.environ.get("PAGER", "less"))
    fits = text.count("\n") < shutil.get_terminal_size().lines - 1
    if fits or not command or command[0] == "cat" or shutil.which(command[0]) is None:
        show(text, stream)
        return
    environ = {"LESS": "-FRX", "LV": "-c", **os.environ}
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        # The pager reports its own errors.
        subprocess.run(command, input=text + "\n", text=True, check=False, env=environ)
