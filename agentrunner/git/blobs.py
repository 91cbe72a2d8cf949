"""Reads contents from a store: one after the other, checked against their names, never all at once.

Standard library only, like everything that `take` needs.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from typing import IO

from agentrunner.errors.repositories import GitFailed
from agentrunner.git.process import Git

IN_MEMORY = 8 << 20
"""Larger contents are returned as a file."""
CHUNK = 1 << 20

Content = bytes | IO[bytes]


def blobs(
    git: Git, names: Iterable[str], kind: str = "blob"
) -> Iterator[tuple[str, Content | None]]:
    """Yield each blob by its name, in their order; None for one that is gone or damaged.

    `kind` is for objects of another kind. A returned file is closed when the next blob is
    requested. Raises OSError, and GitFailed where git does not come to the last of them: it ends
    at some objects that are damaged, and at a pipe it never would.
    """
    wanted = list(names)
    with tempfile.TemporaryFile(dir=git.git_dir) as asked:
        asked.writelines(f"{name}\n".encode() for name in wanted)
        asked.seek(0)
        guard = ("-c", "safe.bareRepository=explicit", f"--git-dir={git.git_dir}")
        with subprocess.Popen(
            [git.binary, *guard, "cat-file", "--batch", "--buffer"],
            cwd=git.git_dir,
            env=git.environment(),
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            limit = threading.Timer(git.most_sec, process.kill)
            limit.daemon = True
            limit.start()
            try:
                assert process.stdout is not None
                yield from _read(git, process.stdout, wanted, kind)
            finally:
                limit.cancel()
                process.kill()


def _read(
    git: Git, out: IO[bytes], names: Iterable[str], kind: str
) -> Iterator[tuple[str, Content | None]]:
    for name in names:
        line = out.readline()
        found, _, facts = line.decode("ascii", "replace").strip().partition(" ")
        size = facts.rpartition(" ")[2]
        if found == name and facts in ("missing", "ambiguous"):
            yield name, None
        elif found != name or not size.isdigit():
            why = f"said {line!r} in place of" if line else "ended before"
            raise GitFailed(f"git cat-file {why} the object {name}")
        else:
            yield from _content(git, out, name, kind, int(size))


def _content(
    git: Git, out: IO[bytes], name: str, kind: str, size: int
) -> Iterator[tuple[str, Content | None]]:
    digest = hashlib.sha1(f"{kind} {size}\0".encode())
    if size <= IN_MEMORY:
        data = out.read(size)
        digest.update(data)
        out.read(1)
        yield name, data if digest.hexdigest() == name else None
        return
    with tempfile.TemporaryFile(dir=git.git_dir) as file:
        remaining = size
        while remaining and (piece := out.read(min(CHUNK, remaining))):
            remaining -= len(piece)
            digest.update(piece)
            file.write(piece)
        out.read(1)
        file.seek(0)
        yield name, file if digest.hexdigest() == name else None
