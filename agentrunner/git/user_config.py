"""What makes the user's own git run code: settings and hooks in `.git` folders, as digests.

Snapshots leave every `.git` out. These digests reveal a worker that makes one below the top, or
that changes one which a sandbox does not protect.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH112, PTH114, PTH115, PTH208

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agentrunner.git.process import read_small
from agentrunner.text.unicode import to_bytes

SETTINGS = (b"config", b"config.worktree", b"commondir", b"info/attributes")
MOST_HOOKS = 1000
SAMPLE = b".sample"
"""The ending of the fourteen hooks that `git init` leaves; git never runs a hook with it."""


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
