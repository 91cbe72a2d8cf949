"""Remove secrets from everything that is kept, shown or sent.

A `Redactor` knows each secret in the spellings in which programs print it. The supervisor, which
starts with every worker, receives those spellings and does not import their computation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

MIN_LENGTH = 6
"""Shorter values would mask ordinary words; `Redactor.unprotected` names them."""
FEW = 20
"""Spellings, those of two keys; with more, the pattern is faster."""


class Redactor:
    """Replaces secrets by `[NAME redacted]`.

    `secrets` maps names that people know to values. Overlapping and adjacent secrets become one
    mark with all names. Neither `repr` nor the marks show a value.
    """

    def __init__(self, secrets: Mapping[str, str], *, any_case: bool = False) -> None:
        """With `any_case` secrets are matched case-insensitively."""
        self.unprotected: tuple[str, ...] = ()
        """Names of secrets that are too short to be masked; worth a warning."""
        self._names: dict[str, str] = {}
        self._any_case = any_case
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        self._few: list[str] = []
        """All spellings if they are few: one by one, they are looked for in a quarter of the
        pattern's time."""
        self._by_start: dict[str, list[str]] = {}
        """Spellings by their first character."""
        self.learn(secrets)

    @classmethod
    def of_spellings(cls, names: Mapping[str, str]) -> Redactor:
        """Make a redactor for exactly these spellings, each with its secret's name."""
        made = cls({})
        made._know(names)
        return made

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Add secrets, for everything that is redacted from now on."""
        if not secrets:
            return
        from agentrunner.text.spellings import spellings_of

        values = {name: value for name, value in secrets.items() if value}
        self.unprotected += tuple(
            name for name, value in values.items() if len(value.strip()) < MIN_LENGTH
        )
        found: dict[str, str] = {}
        for name, value in values.items():
            for spelling in spellings_of(value):
                if len(spelling) >= MIN_LENGTH:
                    found.setdefault(spelling, name)
        self._know(found)

    def _know(self, names: Mapping[str, str]) -> None:
        fresh = {self._folded(spelling): name for spelling, name in names.items()}
        if fresh.keys() <= self._names.keys():
            return  # compiling the pattern takes as long as redacting a whole step
        self._names = {**fresh, **self._names}
        self._longest = max(map(len, self._names))
        self._pattern = _any_of(self._names, re.IGNORECASE if self._any_case else 0)
        self._by_start = {}
        self._few = [] if self._any_case or len(self._names) > FEW else list(self._names)
        for spelling in self._names:
            self._by_start.setdefault(spelling[0], []).append(spelling)

    def _folded(self, text: str) -> str:
        return text.lower() if self._any_case else text

    def __repr__(self) -> str:
        names = ", ".join(sorted(set(self._names.values())))
        return f"Redactor({names or 'nothing'})"

    @property
    def spellings(self) -> dict[bytes, str]:
        """Each way a secret may be printed, with its name, for a redactor in another process."""
        return {
            spelling.encode("utf-8", "surrogateescape"): name
            for spelling, name in self._names.items()
        }

    def redact(self, text: str) -> str:
        """Return `text` without secrets."""
        if not self._may_hit(text):
            return text
        stream = self.stream()
        return stream.feed(text) + stream.finish()

    def _may_hit(self, text: str) -> bool:
        if not self._few:
            return self._pattern is not None and self._pattern.search(text) is not None
        for spelling in self._few:  # noqa: SIM110  (a generator takes a short text twice as long)
            if spelling in text:
                return True
        return False

    def redact_bytes(self, data: bytes) -> bytes:
        """Return `data`, read as UTF-8, without secrets; bytes that are not UTF-8 are kept."""
        return self.redact(data.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )

    def stream(self) -> StreamRedactor:
        """Return a new stream, for text that comes in chunks."""
        return StreamRedactor(self)

    def _certain_length(self, text: str) -> int:
        """Return the position from which the text may end in the beginning of a secret."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            words = self._by_start.get(self._folded(text[at]))
            if words and any(word.startswith(self._folded(text[at:])) for word in words):
                return at
        return len(text)

    def _hits(self, text: str, end: int) -> Iterator[tuple[int, int, str]]:
        """Yield start, stop and name of the longest secret at each start before `end`."""
        position = 0
        while self._pattern and (hit := self._pattern.search(text, position)):
            if hit.start() >= end:
                return
            yield hit.start(), hit.end(), self._names[self._folded(hit[0])]
            position = hit.start() + 1


class StreamRedactor:
    """Redacts chunk by chunk, with the same result as `redact` of the whole.

    A secret may be split between chunks. So a possible beginning of one, and a mark that another
    secret may join, are held back until the next chunk or `finish`.
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
        """Return what is certain after this chunk."""
        text = self._held + chunk
        return self._advance(text, self._redactor._certain_length(text))

    def finish(self) -> str:
        """Return the rest; the stream can then be reused."""
        return self._advance(self._held, len(self._held), last=True) + self._close_mark()

    def _advance(self, text: str, end: int, *, last: bool = False) -> str:
        out: list[str] = []
        position = 0
        for start, stop, name in self._redactor._hits(text, end):
            if not self._mark or start > self._mark_end:
                position = max(position, self._mark_end)
                out += (self._close_mark(), text[position:start])
            self._mark_end = max(self._mark_end, stop)
            if name not in self._mark:
                self._mark.append(name)
        if self._mark and self._mark_end >= end and not last:
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


def _any_of(words: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern for the longest of the words; shared prefixes are merged for speed."""
    return re.compile(_branch(sorted(words, reverse=True), depth=3), flags)


def _branch(words: list[str], depth: int) -> str:
    if depth == 0 or "" in words:
        # Of two words with the same prefix, the longer sorts first and is tried first.
        return f"(?:{'|'.join(map(re.escape, words))})"
    groups = groupby(words, key=lambda word: word[0])
    return "(?:{})".format(
        "|".join(
            re.escape(first) + _branch([word[1:] for word in group], depth - 1)
            for first, group in groups
        )
    )
