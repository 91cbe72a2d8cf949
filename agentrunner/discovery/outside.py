"""What another checkout lacks (installed packages), and filters that our commits bypass."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from pathlib import Path

from agentrunner.discovery.reading import read_inside
from agentrunner.discovery.set_up import detect_setup
from agentrunner.git.ignored_content import PACKAGE_FOLDERS
from agentrunner.text.lazy_regex import lazy_regex

_FILTER = lazy_regex(r"(?m)^[^#\n]*\sfilter=(\S+)")


def not_taken_along(checkout: Path, there: Collection[str], setting: str) -> list[str]:
    """Return a sentence if installed packages of a checkout are missing elsewhere, as a list.

    `there` are the names at the top of the other place. `setting` is the way to give a set-up
    command, with `{}` for the quoted command.
    """
    names = sorted(name for name in PACKAGE_FOLDERS.difference(there) if (checkout / name).is_dir())
    if not names:
        return []
    found = detect_setup(checkout)
    command = shlex.quote(found.command) if found else "CMD"
    message = (
        f"{', '.join(names)} of your checkout {'is' if len(names) == 1 else 'are'} not taken along"
    )
    return [f"{message}, and no set-up is given: {setting.format(command)}"]


def filters_of(repo: Path) -> list[str]:
    """Return filters in the top-level attributes, such as `lfs`: git runs a program for each."""
    return sorted(set(_FILTER.findall(read_inside(repo, ".gitattributes"))))
