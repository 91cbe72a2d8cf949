"""What a work tree of its own lacks that a checkout has: dependencies that somebody installed."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

from agentrunner.runs.dependencies import PACKAGE_FOLDERS
from agentrunner.survey.set_up import detect_setup


def not_taken_along(checkout: Path, there: Collection[str], setting: str) -> list[str]:
    """One sentence where installed packages of a checkout are missing elsewhere; else nothing.

    `there` are the names at the top of the other place, and `setting` how a set-up is given, with
    `{}` for the command, quoted.
    """
    names = sorted(name for name in PACKAGE_FOLDERS.difference(there) if (checkout / name).is_dir())
    if not names:
        return []
    found = detect_setup(checkout)
    command = shlex.quote(found.command) if found else "CMD"
    told = (
        f"{', '.join(names)} of your checkout {'is' if len(names) == 1 else 'are'} not taken along"
    )
    return [f"{told}, and no set-up is given: {setting.format(command)}"]
