"""Keeps a bounded part of a command's output, so that no command can fill our memory."""

from __future__ import annotations

from collections import deque

HEAD_BYTES = 64 * 1024


class Spool:
    """The first 64 KiB and the last `keep` bytes of a stream, however long it is."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._keep = keep
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0

    def feed(self, data: bytes) -> None:
        """Add the next piece of the stream."""
        self.total += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_bytes += len(data)
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._keep:
            self._tail_bytes -= len(self._tail.popleft())

    def value(self) -> bytes:
        """Return what was kept; a line in between says how many bytes were left out."""
        tail = b"".join(self._tail)[-self._keep :] if self._keep else b""
        lost = self.total - len(self._head) - len(tail)
        gap = f"\n[... {lost} bytes left out ...]\n".encode() if lost else b""
        return bytes(self._head) + gap + tail
