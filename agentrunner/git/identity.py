"""The author of a commit: the user, from their git settings, which are read as data."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentrunner.environment import home_of, user_name
from agentrunner.errors.repositories import GitFailed
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.git.process import shared_dir_of

NAMES = ("user.name", "user.email")


def identity_of(clone: CloneStore, environ: Mapping[str, str]) -> Identity:
    """Return the name and address that the user's own commits in this repository have.

    Without a setting, these are the user's login and host. Files included by settings are not
    followed. Blocks.
    """
    name, email = environ.get("GIT_AUTHOR_NAME", ""), environ.get("GIT_AUTHOR_EMAIL", "")
    for file in _files(clone, environ):
        if name and email:
            break
        found = _read(clone, file)
        name, email = name or found.get(NAMES[0], ""), email or found.get(NAMES[1], "")
    login = user_name()
    return Identity(_line(name) or login, _line(email) or f"{login}@{platform.node()}")


def _files(clone: CloneStore, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files of settings, by falling priority."""
    with contextlib.suppress(OSError):  # the folder may not be a repository yet
        own = clone.user_git_dir()
        yield from (folder / "config" for folder in dict.fromkeys((shared_dir_of(own), own)))
    home = home_of(environ)
    if chosen := environ.get("GIT_CONFIG_GLOBAL"):
        yield Path(chosen)
    else:
        yield home / ".gitconfig"
        yield Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"
    if not environ.get("GIT_CONFIG_NOSYSTEM"):
        yield Path("/etc/gitconfig")


def _read(clone: CloneStore, file: Path) -> dict[str, str]:
    """Return the two settings of a file; nothing if it has none or cannot be read."""
    if not file.is_file():
        return {}
    try:
        out = clone.git.run(
            *("config", "--file", str(file), "--no-includes", "-z"),
            *("--get-regexp", r"^user\.(name|email)$"),
            accept=(0, 1),
            cwd=Path("/"),  # the clone may not exist yet
        )
    except GitFailed:
        return {}
    pairs = (pair.partition(b"\n") for pair in out.split(b"\0") if pair)
    return {key.decode(): value.decode("utf-8", "replace") for key, _, value in pairs}


def _line(text: str) -> str:
    """Return the text without what git does not accept in a name or address."""
    return "".join(sign for sign in " ".join(text.split()) if sign not in "<>\0")
