"""Reads contents from a store: one after the other, checked against their names, never all at once.

Standard library only, like everything that `take` needs.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import IO, Generic, TypeVar

from agentrunner.errors.repositories import GitFailed
from agentrunner.git.process import Git

Value = TypeVar("Value", bound=Sized)


class Recent(Generic[Value]):
    """The most recently used values by the name of their object, up to a total size.

    Sizes are those of `len`: bytes of a content, entries of a listing. A value larger than half of
    the total is read each time, so that it does not push all the others out; with `least`, that
    many of the last values are kept whatever their size. Thread-safe; two threads that ask for the
    same name at once may both read it.
    """

    def __init__(self, most: int, least: int = 0) -> None:
        self._most = most
        self._least = least
        self._size = 0
        self._values: OrderedDict[str, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, read: Callable[[], Value]) -> Value:
        """Return the value of an object, read if it is not cached; raises what `read` raises."""
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
                return self._values[name]
        value = read()
        self.keep(name, value)
        return value

    def known(self, names: Iterable[str]) -> dict[str, Value]:
        """Return the cached ones of the values, by name."""
        with self._lock:
            return {name: self._values[name] for name in names if name in self._values}

    def latest(self) -> tuple[str, Value] | None:
        """Return the name and value that were used last; None if nothing is cached."""
        with self._lock:
            name = next(reversed(self._values), None)
            return None if name is None else (name, self._values[name])

    def keep(self, name: str, value: Value) -> None:
        """Put the value of an object into the cache."""
        with self._lock:
            if name not in self._values and (self._least or len(value) <= self._most // 2):
                self._values[name] = value
                self._size += len(value)
            while self._size > self._most and len(self._values) > self._least:
                self._size -= len(self._values.popitem(last=False)[1])


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
