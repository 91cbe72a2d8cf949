"""Writes a worker's output to a file: masked, capped, and readable while it grows.

While the worker runs, the first HEAD bytes are at their final place, followed by a ring of TAIL
bytes for the rest: byte n is at HEAD + (n - HEAD) % TAIL. The file `counts` says how many bytes of
stdout and of stderr there are: two little-endian 64-bit numbers. At the end the ring is unrolled,
with a line where bytes are missing.

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
    """Return a redactor for a stream of bytes, each of which is one character."""
    return Redactor.of_spellings(
        {
            spelling.decode("latin-1"): name.encode().decode("latin-1")
            for spelling, name in spellings
        }
    )


def _place_of(byte: int) -> tuple[int, int]:
    """Return where in the file a byte is, and how many are from there on in one piece."""
    if byte < HEAD:
        return byte, HEAD - byte
    wrapped = (byte - HEAD) % TAIL
    return HEAD + wrapped, TAIL - wrapped


class CappedStream:
    """One output of the worker, written to a capped file."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        """The redactor knows spellings whose characters are bytes (`redactor_of`)."""
        self.path = path
        self.redacted = redactor.stream()
        self.printed = 0
        """Bytes that the worker printed."""
        self.size = 0
        """Bytes that were kept or have passed through the ring."""
        self.lost = False
        """Whether the disk was full."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)

    def feed(self, data: bytes) -> None:
        """Add what was read."""
        self.printed += len(data)
        self._store(self.redacted.feed(data.decode("latin-1")).encode("latin-1"))

    def _store(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self.lost:
            at, room = _place_of(self.size)
            try:
                count = os.pwrite(self.fd, view[:room], at)
            except OSError:
                # The worker must not hang because nobody reads: keep reading, but store nothing.
                self.lost = True
                return
            self.size += count
            view = view[count:]

    def finish(self) -> None:
        """Write the rest, and unroll the ring."""
        self._store(self.redacted.finish().encode("latin-1"))
        left_out = self.size - HEAD - TAIL
        if left_out > 0:
            self._unroll(left_out)
        os.close(self.fd)

    def _unroll(self, left_out: int) -> None:
        oldest, _ = _place_of(self.size)
        unrolled = self.path.with_name(self.path.name + ".new")
        try:
            target = os.open(unrolled, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._copy(target, 0, HEAD)
            os.write(target, b"\n[agentrunner: %d bytes left out]\n" % left_out)
            self._copy(target, oldest, HEAD + TAIL)
            self._copy(target, HEAD, oldest)
            os.close(target)
            unrolled.rename(self.path)
        except OSError:
            # There is no space for a second copy: the head alone is better than an unreadable ring.
            self.lost = True
            unrolled.unlink(missing_ok=True)
            os.ftruncate(self.fd, HEAD)

    def _copy(self, target: int, start: int, end: int) -> None:
        while start < end:
            start += os.sendfile(target, self.fd, start, end - start)


class Tail:
    """Reads one output while its supervisor writes it."""

    def __init__(self, folder: Path, name: str, *, from_end: bool = False) -> None:
        self.folder = folder
        self.name = name
        self._counts: int | None = None
        self.at = self._count() if from_end else 0
        """How many bytes have been read or skipped."""
        self._fd: int | None = None

    def _count(self) -> int:
        if self._counts is None:
            try:
                self._counts = os.open(f"{self.folder}/counts", os.O_RDONLY | os.O_NOFOLLOW)
            except FileNotFoundError:
                return 0
        raw = os.pread(self._counts, COUNTS.size, 0)
        return COUNTS.unpack(raw)[self.name == "stderr"] if len(raw) == COUNTS.size else 0

    def read(self, limit: int = 1 << 18) -> bytes:
        """Return the next bytes, b"" if there are none. Bytes that the ring overwrote are lost."""
        count = self._count()
        if count <= self.at:
            return b""
        if self._fd is None:
            # Kept open: the file is replaced when the ring is unrolled, and this one stays a ring.
            self._fd = os.open(self.folder / self.name, os.O_RDONLY | os.O_NOFOLLOW)
        size = os.fstat(self._fd).st_size
        if size > HEAD + TAIL:
            # It was unrolled before we opened it: its extra line makes it longer than any ring.
            data = os.pread(self._fd, limit, self.at)
            self.at += len(data) or count
            return data
        if self.at >= HEAD:
            self.at = max(self.at, count - TAIL)
        start = self.at
        place, room = _place_of(start)
        data = os.pread(self._fd, min(room, limit, count - start), place)
        # Nothing is there: the disk was full, and only the head is left.
        self.at += len(data) or count
        overrun = start >= HEAD and self._count() - TAIL > start
        return b"" if overrun else data

    def close(self) -> None:
        for fd in (self._fd, self._counts):
            if fd is not None:
                os.close(fd)
        self._fd = self._counts = None
