"""What makes the user's own git run code: settings and hooks in `.git` folders, as digests.

Snapshots leave every `.git` out, so a worker that makes one below the top, or changes one that a
sandbox does not protect, is noticed by these.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentrunner.runs.git import read_small, to_bytes

SETTINGS = (b"config", b"config.worktree", b"commondir", b"info/attributes")
MOST_HOOKS = 1000


def git_settings(root: Path, places: Iterable[str]) -> dict[str, str]:
    """By place of a `.git` below `root`: a digest of what git obeys there; absent ones are out.

    Nothing is followed or run. A `.git` that is a file or a link is known by its text.
    """
    found = {}
    for place in places:
        path = os.fsencode(root) + b"/" + to_bytes(place)
        if os.path.lexists(path):
            digest = hashlib.sha256()
            for name, data in _texts(path):
                digest.update(b"%d %s %d " % (len(name), name, len(data)) + data)
            found[place] = digest.hexdigest()
    return found


def _texts(git: bytes) -> Iterator[tuple[bytes, bytes]]:
    path = Path(os.fsdecode(git))
    if path.is_symlink():
        yield b"link", os.fsencode(path.readlink())
    elif not path.is_dir():
        yield b"file", read_small(git) or b""
    else:
        hooks = path / "hooks"
        real = hooks.is_dir() and not hooks.is_symlink()
        names = sorted(os.fsencode(hook) for hook in hooks.iterdir())[:MOST_HOOKS] if real else []
        if hooks.is_symlink():
            yield b"hooks", os.fsencode(hooks.readlink())
        for file in (*(git + b"/" + name for name in SETTINGS), *names):
            if (data := read_small(file)) is not None:
                yield file.removeprefix(git), data
