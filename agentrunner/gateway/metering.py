"""Meters a reply while it is passed on: what it used, and whether it fails halfway."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from agentrunner.gateway.wires import CallTokens, Json, WireFormat, parse

MAX_EVENT = 16 << 20
"""Bytes of a whole reply, or of one event of a stream, up to which it is read. Longer ones are
still passed on, but their usage is unknown."""

_MARKS = (b'"usage', b'"error')
"""Only events with one of these are parsed: usage, usageMetadata, error."""


class Meter:
    """Reads the bytes of one reply, in whatever pieces they come."""

    def __init__(self, wire: WireFormat, content_type: str, content_encoding: str = "") -> None:
        self._wire = wire
        self._decode = decoder(content_encoding)
        self._stream = content_type.lower().startswith("text/event-stream")
        self._held = bytearray()
        self._skipping = False
        self._usage: dict[str, Any] = {}
        self.error: Json | None = None
        """The error that a stream reported after a good start."""

    def feed(self, chunk: bytes) -> None:
        """Read the next piece; never raises."""
        if self._decode is None:
            return
        try:
            self._held += self._decode(chunk)
        except Exception:  # noqa: BLE001  (each library has errors of its own; the reply goes on)
            self._decode = None
            return
        if self._stream:
            self._take_lines()
        if len(self._held) > MAX_EVENT:
            self._held.clear()
            self._skipping = True

    @property
    def body(self) -> bytes:
        """The whole body of a reply that is not a stream, b"" if it is too long."""
        return b"" if self._skipping else bytes(self._held)

    def tokens(self) -> CallTokens | None:
        """Return what was used, once everything was fed; None if the reply does not say."""
        if not self._stream and not self._skipping:
            data = parse(self.body)
            # Gemini's stream without `alt=sse` is one list of its events.
            for event in data if isinstance(data, list) else [data]:
                self._take(event)
        return self._wire.tokens(self._usage)

    def _take_lines(self) -> None:
        *lines, rest = self._held.split(b"\n")
        if not lines:
            return
        self._held = bytearray(rest)
        if self._skipping:  # the end of a line whose beginning is gone
            del lines[0]
            self._skipping = False
        for line in lines:
            if line.startswith(b"data:") and any(mark in line for mark in _MARKS):
                self._take(parse(bytes(line[5:])))

    def _take(self, event: Any) -> None:
        if not isinstance(event, dict):
            return
        # An error and then a success in one stream: later events win, counts are never added up.
        self._usage.update(self._wire.usage(event))
        failed = event.get("response") if event.get("type") == "response.failed" else event
        if isinstance(failed, dict) and failed.get("error"):
            self.error = failed
        elif event.get("type") == "error":  # OpenAI's, with its fields at the top
            self.error = {"error": event}


def decoded(body: bytes, encoding: str) -> bytes:
    """Return a whole body without its Content-Encoding; unchanged if that cannot be decoded."""
    decode = decoder(encoding)
    try:
        return body if decode is None else decode(body)
    except Exception:  # noqa: BLE001  (each library has errors of its own)
        return body


def decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """Return a decoder of a Content-Encoding, for successive pieces; None if it is unknown."""
    match encoding.strip().lower():
        case "" | "identity":
            return bytes
        case "gzip" | "x-gzip" | "deflate":
            unzip = zlib.decompressobj(wbits=32 + zlib.MAX_WBITS)
            return lambda chunk: unzip.decompress(chunk, MAX_EVENT)
        case "br" | "zstd" as other:
            return _installed(other)
    return None


def _installed(encoding: str) -> Callable[[bytes], bytes] | None:
    from aiohttp import compression_utils

    if encoding == "br" and compression_utils.HAS_BROTLI:
        brotli = compression_utils.BrotliDecompressor()
        return lambda chunk: brotli.decompress_sync(chunk, MAX_EVENT)
    if encoding == "zstd" and compression_utils.HAS_ZSTD:
        zstd = compression_utils.ZSTDDecompressor()
        return lambda chunk: zstd.decompress_sync(chunk, MAX_EVENT)
    return None
