"""Secrets taken out of everything that is kept, shown or sent.

A `Redactor` knows each secret in the spellings in which programs print it: raw, base64 at the
three byte alignments, URL-, JSON-, shell-, HTML- and hex-encoded, and line by line.
"""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from urllib.parse import quote, quote_plus

MIN_LENGTH = 6
"""Shorter values would blot out ordinary words; they are named in `Redactor.unprotected`."""


class Redactor:
    """Replaces secrets by `[NAME redacted]`.

    `secrets` maps names, as people know them, to values. Overlapping and adjacent secrets become
    one mark with all names. Nothing here shows a value: not `repr`, not the marks.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.unprotected: tuple[str, ...] = ()
        """Names of secrets too short to be masked; worth a warning."""
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Further secrets, for everything that is redacted from now on."""
        known = len(self._names)
        values = {name: value for name, value in secrets.items() if value}
        self.unprotected += tuple(
            name for name, value in values.items() if len(value.strip()) < MIN_LENGTH
        )
        for name, value in values.items():
            for spelling in _spellings(value):
                if len(spelling) >= MIN_LENGTH:
                    self._names.setdefault(spelling, name)
        if self._pattern is not None and len(self._names) == known:
            return  # making the pattern anew takes as long as redacting a whole step
        self._longest = max(map(len, self._names), default=0)
        self._pattern = _any_of(self._names) if self._names else None

    def __repr__(self) -> str:
        names = ", ".join(sorted(set(self._names.values())))
        return f"Redactor({names or 'nothing'})"

    @property
    def spellings(self) -> dict[bytes, str]:
        """Each way a secret may be printed, with its mark: for who masks bytes by itself."""
        return {
            spelling.encode("utf-8", "surrogateescape"): f"[{name} redacted]"
            for spelling, name in self._names.items()
        }

    def redact(self, text: str) -> str:
        """`text` without secrets."""
        if self._pattern is None or not self._pattern.search(text):
            return text
        stream = self.stream()
        return stream.feed(text) + stream.finish()

    def redact_bytes(self, data: bytes) -> bytes:
        """`data`, read as UTF-8, without secrets; bytes that are no UTF-8 stay as they are."""
        return self.redact(data.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )

    def stream(self) -> Stream:
        """A fresh stream, for text that comes in chunks."""
        return Stream(self)

    def _hits(self, text: str, end: int) -> Iterator[tuple[int, int, str]]:
        """Start, stop and name of the longest secret at each start before `end`."""
        position = 0
        while self._pattern and (hit := self._pattern.search(text, position)):
            if hit.start() >= end:
                return
            yield hit.start(), hit.end(), self._names[hit[0]]
            position = hit.start() + 1


class Stream:
    """Redacts chunk by chunk, to the same text as `redact` of the whole.

    A secret may be cut anywhere between chunks, so the last characters, one fewer than the
    longest spelling, are held back until the next chunk or `finish`.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._mark: list[str] = []
        """Names in the mark that is still open; more may join it."""
        self._mark_end = 0
        """Where the open mark ends, counted from the start of the held text."""

    def __repr__(self) -> str:
        return f"Stream({self._redactor!r})"

    def feed(self, chunk: str) -> str:
        """What is certain after this chunk."""
        text = self._held + chunk
        return self._advance(text, max(0, len(text) - max(0, self._redactor._longest - 1)))

    def finish(self) -> str:
        """The rest; the stream can then be used anew."""
        return self._advance(self._held, len(self._held)) + self._close_mark()

    def _advance(self, text: str, end: int) -> str:
        out: list[str] = []
        position = 0
        for start, stop, name in self._redactor._hits(text, end):
            if not self._mark or start > self._mark_end:
                position = max(position, self._mark_end)
                out += (self._close_mark(), text[position:start])
            self._mark_end = max(self._mark_end, stop)
            if name not in self._mark:
                self._mark.append(name)
        if self._mark and self._mark_end >= end and end < len(text):
            self._mark_end -= end
        else:
            position = max(position, self._mark_end)
            out += (self._close_mark(), text[position:end])
            self._mark_end = max(0, self._mark_end - end)
        self._held = text[end:]
        return "".join(out)

    def _close_mark(self) -> str:
        names, self._mark = self._mark, []
        return f"[{', '.join(names)} redacted]" if names else ""


def _spellings(value: str) -> Iterator[str]:
    """Every way in which a program may print the value."""
    raw = value.encode("utf-8", "surrogateescape")
    for text in dict.fromkeys((value, value.strip(), *map(str.strip, value.splitlines()))):
        yield text
        yield from _quoted(text)
    for data in dict.fromkeys((raw, raw.strip())):
        yield from (data.hex(), data.hex().upper())
        for encoded in _base64(data):
            yield encoded
            yield encoded.translate(_URL_ALPHABET)


_URL_ALPHABET = str.maketrans("+/", "-_")


def _base64(data: bytes) -> Iterator[str]:
    """The encoding on its own, then what stays the same whatever stands before and after."""
    alone = base64.b64encode(data).decode("ascii")
    yield from (alone, alone.rstrip("="))
    for before in range(3):
        bits = 8 * (before + len(data))
        encoded = base64.b64encode(bytes(before) + data).decode("ascii")
        yield encoded[-(-8 * before // 6) : bits // 6]


def _quoted(text: str) -> Iterator[str]:
    for ascii_only in (True, False):
        once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]  # an event stream quoted in another
    for url in (quote(text, safe="", errors="replace"), quote_plus(text, errors="replace")):
        yield url
        yield re.sub("%..", lambda code: code[0].lower(), url)
    yield quote(text, errors="replace")
    yield quote(text, safe="!'()*~", errors="replace")  # encodeURIComponent
    yield shlex.quote(text)[1:-1] if shlex.quote(text) != text else text
    yield text.replace("'", "'\\''")
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", text, flags=re.ASCII)  # printf %q
    yield re.sub(r'([\\"$`])', r"\\\1", text)  # between double quotes
    yield repr(text)[1:-1]
    yield html.escape(text)


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Matches the longest of the words; grouped by beginnings, so that a miss costs little."""
    return re.compile(_branch(sorted(words, reverse=True), depth=3))


def _branch(words: list[str], depth: int) -> str:
    if depth == 0 or "" in words:
        # Of two words with the same beginning, the longer one sorts first and is tried first.
        return f"(?:{'|'.join(map(re.escape, words))})"
    groups = groupby(words, key=lambda word: word[0])
    return "(?:{})".format(
        "|".join(
            re.escape(first) + _branch([word[1:] for word in group], depth - 1)
            for first, group in groups
        )
    )
