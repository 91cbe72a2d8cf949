"""The command with which a person commits what a run left in the folder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

MOST_PATHS = 4
MOST_CHARACTERS = 36
MOST_RECORDED = 500
"""With so many paths a result names not all."""


def commit_command(paths: Sequence[str], git: str = "git") -> str:
    """Return the command that commits these paths of a repository, new and removed ones too.

    `git` is how git is called there. Many files are named by their folders at the top, and where
    those are many as well, all that was changed is taken.
    """
    whole = len(paths) < MOST_RECORDED
    for names in (paths, list(dict.fromkeys(path.split("/")[0] for path in paths))):
        listed = " ".join(shlex.quote(name) for name in names)
        if not (whole and all(map(_is_plain, names))):
            continue
        if 0 < len(names) <= MOST_PATHS and len(listed) <= MOST_CHARACTERS:
            return f"{git} add {listed} && {git} commit"
    return f"{git} add -A && {git} commit"


def _is_plain(name: str) -> bool:
    """Whether git and a terminal read no more into a name than a path."""
    # U+FFFD stands for bytes that are not UTF-8.
    return name[0] not in "-:" and name.isprintable() and not set(name) & set("*?[\ufffd")
