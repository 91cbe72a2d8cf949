"""A worker's output on its way through a file: masked, capped, and readable while it grows.

While the worker runs, the first HEAD bytes stand at their place and the rest goes round in a ring
of TAIL bytes after them: byte n is at HEAD + (n - HEAD) % TAIL. The file `counts` says how many
bytes of stdout and of stderr there are: two little-endian 64-bit numbers. In the end the file is
put in order, with a line where bytes are missing.

Standard library and `Redactor` only, for the supervisor.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from pathlib import Path

from agentrunner.text.redaction import Redactor

HEAD = 1 << 20
TAIL = 63 << 20
COUNTS = struct.Struct("<QQ")


def redactor_of(spellings: Iterable[tuple[bytes, str]]) -> Redactor:
    """One for a stream of bytes, each of which is a character of its own."""
    return Redactor.of_spellings(
        {
            spelling.decode("latin-1"): name.encode().decode("latin-1")
            for spelling, name in spellings
        }
    )


class CappedStream:
    """One output of the worker on its way into a capped file."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        """The redactor knows spellings whose characters are bytes (`redactor_of`)."""
        self.path = path
        self.redacted = redactor.stream()
        self.printed = 0
        """Bytes that the worker printed."""
        self.size = 0
        """Bytes that were kept or have passed through the ring."""
        self.lost = False
        """The disk was full."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)

    def feed(self, data: bytes) -> None:
        """Take a read."""
        self.printed += len(data)
        self._store(self.redacted.feed(data.decode("latin-1")).encode("latin-1"))

    def _store(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self.lost:
            if self.size < HEAD:
                at, room = self.size, HEAD - self.size
            else:
                turn = (self.size - HEAD) % TAIL
                at, room = HEAD + turn, TAIL - turn
            try:
                count = os.pwrite(self.fd, view[:room], at)
            except OSError:
                # The worker must not hang because nobody reads: go on reading, keep nothing.
                self.lost = True
                return
            self.size += count
            view = view[count:]

    def finish(self) -> None:
        """Put the file in order."""
        self._store(self.redacted.finish().encode("latin-1"))
        left_out = self.size - HEAD - TAIL
        if left_out > 0:
            self._straighten(left_out)
        os.close(self.fd)

    def _straighten(self, left_out: int) -> None:
        oldest = HEAD + (self.size - HEAD) % TAIL
        straight = self.path.with_name(self.path.name + ".new")
        try:
            target = os.open(straight, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._copy(target, 0, HEAD)
            os.write(target, b"\n[agentrunner: %d bytes left out]\n" % left_out)
            self._copy(target, oldest, HEAD + TAIL)
            self._copy(target, HEAD, oldest)
            os.close(target)
            straight.rename(self.path)
        except OSError:
            # No room for a second copy: the head alone is better than a ring nobody can read.
            self.lost = True
            straight.unlink(missing_ok=True)
            os.ftruncate(self.fd, HEAD)

    def _copy(self, target: int, start: int, end: int) -> None:
        while start < end:
            start += os.sendfile(target, self.fd, start, end - start)


class Tail:
    """Reads one output while its supervisor writes it."""

    def __init__(self, folder: Path, name: str, *, from_end: bool = False) -> None:
        self.folder = folder
        self.name = name
        self._counts = str(folder / "counts")
        self.at = self._count() if from_end else 0
        """How many bytes have been read or passed over."""
        self._fd: int | None = None

    def _count(self) -> int:
        try:
            fd = os.open(self._counts, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return 0
        try:
            raw = os.pread(fd, COUNTS.size, 0)
        finally:
            os.close(fd)
        return COUNTS.unpack(raw)[self.name == "stderr"] if len(raw) == COUNTS.size else 0

    def read(self, limit: int = 1 << 18) -> bytes:
        """The next bytes, b"" if there are none. Bytes that the ring has run over are missing."""
        count = self._count()
        if count <= self.at:
            return b""
        if self._fd is None:
            # Kept open: the file is replaced when it is put in order, and this one stays a ring.
            self._fd = os.open(self.folder / self.name, os.O_RDONLY | os.O_NOFOLLOW)
        size = os.fstat(self._fd).st_size
        if size > HEAD + TAIL:
            # In order already when we came: longer than any ring, by the line in it.
            data = os.pread(self._fd, limit, self.at)
            self.at += len(data) or count
            return data
        if self.at >= HEAD:
            self.at = max(self.at, count - TAIL)
        start = self.at
        if start < HEAD:
            place, room = start, HEAD - start
        else:
            turn = (start - HEAD) % TAIL
            place, room = HEAD + turn, TAIL - turn
        data = os.pread(self._fd, min(room, limit, count - start), place)
        # Nothing there: the disk was full, and only the head is left.
        self.at += len(data) or count
        overrun = start >= HEAD and self._count() - TAIL > start
        return b"" if overrun else data

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
