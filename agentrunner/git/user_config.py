"""The user's git settings, read as data: who is the author, and what makes their git run code."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agentrunner.environment import home_of
from agentrunner.errors.repositories import GitFailed
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.git.process import read_small, to_bytes

NAMES = ("user.name", "user.email")


def identity_of(clone: CloneStore, environ: Mapping[str, str]) -> Identity:
    """Return the name and address that the user's own commits in this repository have.

    Without a setting, these are the user's login and host. Files included by settings are not
    followed. Blocking.
    """
    name, email = environ.get("GIT_AUTHOR_NAME", ""), environ.get("GIT_AUTHOR_EMAIL", "")
    for file in _files(clone, environ):
        if name and email:
            break
        found = _read(clone, file)
        name, email = name or found.get(NAMES[0], ""), email or found.get(NAMES[1], "")
    login = _login()
    return Identity(_line(name) or login, _line(email) or f"{login}@{platform.node()}")


def _files(clone: CloneStore, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files of settings, by falling priority."""
    with contextlib.suppress(OSError):  # the folder may not be a repository yet
        own = clone.user_git_dir()
        with contextlib.suppress(OSError):
            common = own / (own / "commondir").read_text(errors="replace").strip()
            yield common / "config"
        yield own / "config"
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


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a uid without a name, as in many containers


def _line(text: str) -> str:
    """Return the text without what git does not accept in a name or address."""
    return "".join(sign for sign in " ".join(text.split()) if sign not in "<>\0")


# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH112, PTH114, PTH115, PTH208


SETTINGS = (b"config", b"config.worktree", b"commondir", b"info/attributes")
MOST_HOOKS = 1000
SAMPLE = b".sample"
"""The ending of the fourteen hooks that `git init` leaves; git never runs a hook with it."""


# Snapshots leave every `.git` out. These digests reveal a worker that makes one below the top, or
# that changes one which a sandbox does not protect.
def git_settings(root: Path, places: Iterable[str]) -> dict[str, str]:
    """Return, by place of a `.git` below `root`, a digest of what git obeys there, if it exists.

    Nothing is followed or run. A `.git` that is a file or a link is identified by its text.
    """
    found = {}
    for place in places:
        path = os.fsencode(root) + b"/" + to_bytes(place)
        if os.path.lexists(path):
            digest = hashlib.sha256()
            for name, data in _git_inputs(path):
                digest.update(b"%d %s %d " % (len(name), name, len(data)) + data)
            found[place] = digest.hexdigest()
    return found


def _git_inputs(git: bytes) -> Iterator[tuple[bytes, bytes]]:
    if os.path.islink(git):
        yield b"link", os.readlink(git)
    elif not os.path.isdir(git):
        yield b"file", read_small(git) or b""
    else:
        hooks = git + b"/hooks"
        linked = os.path.islink(hooks)
        if linked:
            yield b"hooks", os.readlink(hooks)
        real = os.path.isdir(hooks) and not linked
        names = (name for name in os.listdir(hooks) if not name.endswith(SAMPLE)) if real else ()
        hook_names = sorted(names)[:MOST_HOOKS]
        files = (*(b"/" + name for name in SETTINGS), *(b"/hooks/" + name for name in hook_names))
        for file in files:
            if (data := read_small(git + file)) is not None:
                yield file, data
