"""The commands with which a person commits what a run left in the folder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from agentrunner.config.repo import git_root

MOST_PATHS = 4
MOST_CHARACTERS = 36
MOST_RECORDED = 500
"""With so many paths a result names not all."""


def commit_commands(paths: Sequence[str], git: str = "git", folder: str | None = None) -> list[str]:
    """Return the commands that commit these paths of a repository, new and removed ones too.

    `git` is how git is called there. What lies in a repository of its own below `folder`, such as a
    submodule, is committed there, and first; the repository around a submodule then names that
    commit. Many files are named by their folders at the top, and where those are many as well, all
    that was changed is taken.
    """
    parts: dict[str, list[str]] = {}
    for path in paths:
        parts.setdefault(_repository_of(path, Path(folder)) if folder else "", []).append(path)
    commands = [
        _commit([path[len(name) + 1 :] for path in inside], f"{git} -C {shlex.quote(name)}")
        for name, inside in parts.items()
        if name
    ]
    # Of a submodule, whose `.git` is a file, the repository around it names the commit.
    around = [name for name in parts if name and (Path(folder or "") / name / ".git").is_file()]
    own = [*around, *parts.get("", [])]
    return [*commands, _commit(own, git)] if own or not commands else commands


def _repository_of(path: str, folder: Path) -> str:
    """Return the innermost repository below `folder` that the path is in; "" for `folder`'s."""
    root = git_root((folder / path).parent)
    return root.relative_to(folder).as_posix() if root and folder in root.parents else ""


def _commit(paths: Sequence[str], git: str) -> str:
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
