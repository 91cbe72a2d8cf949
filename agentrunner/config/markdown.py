"""As much Markdown as criteria need: which lines are headings, and what is code."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from agentrunner.errors import UsageError
from agentrunner.text.lazy_regex import lazy_regex

Kind = Literal["heading", "code", "comment", "blank", "text"]
Language = Literal["en", "ja"]
"""A language that prompts and notes are written in."""

_FENCE = lazy_regex(r"\s*(?:(?P<ticks>`{3,})[^`]*|(?P<tildes>~{3,}).*)$")
_HEADING = lazy_regex(r" {0,3}(#{1,6})(?:[ \t\u3000]+(.*))?$")
_UNDERLINE = lazy_regex(r" {0,3}(=+|-{2,})\s*$")
_NUMBERING = lazy_regex(r"[\s\d.()、．:\-]+")
_TICKS = lazy_regex(r"`+|｀")
_NARROW = str.maketrans("（）：０１２３４５６７８９", "():0123456789")


class MarkdownLine(Struct, frozen=True):
    """A line of the file; `level` and `title` are set for headings."""

    file: str
    number: int
    text: str
    kind: Kind
    level: int = 0
    title: str = ""

    @property
    def indent(self) -> int:
        """Columns before the text; a tab counts four, a full-width space two."""
        wide = self.text.replace("\t", "    ").replace("\u3000", "  ")
        return len(wide) - len(wide.lstrip())

    def error(self, kind: type[UsageError], message: str, remedy: str) -> UsageError:
        """Return the error of something in this line."""
        path, source_line = f"{self.file}:{self.number}", self.text.strip()[:200]
        return kind(message, path=path, source_line=source_line, remedy=remedy)


def lines_of(text: str, first_line: int = 1, file: str = "") -> Iterator[MarkdownLine]:
    """Yield every line with its kind. Lines in a code fence or a comment are never headings."""
    raw = text.split("\n")
    fence, comment, skip = "", False, False
    for index, line in enumerate(raw):
        number = first_line + index
        if skip:
            skip = False
            continue
        if fence:
            yield MarkdownLine(file, number, line, "code")
            if _closes_fence(line, fence):
                fence = ""
            continue
        if comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
            yield MarkdownLine(file, number, line, "comment")
        elif match := _FENCE.match(line):
            fence = match["ticks"] or match["tildes"]
            yield MarkdownLine(file, number, line, "code")
        elif match := _HEADING.match(line):
            title = (match[2] or "").strip().rstrip("#").strip()
            yield MarkdownLine(file, number, line, "heading", len(match[1]), title)
        elif not line.strip():
            yield MarkdownLine(file, number, line, "blank")
        elif level := _underline_level(line, raw[index + 1] if index + 1 < len(raw) else ""):
            skip = True
            yield MarkdownLine(file, number, line, "heading", level, line.strip())
        else:
            yield MarkdownLine(file, number, line, "text")


def _closes_fence(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]}


def _underline_level(line: str, following: str) -> int:
    match = _UNDERLINE.match(following)
    if match is None or re.match(r"\s*(?:[-*+>|]|\d+[.)])\s*", line) or line.startswith("    "):
        return 0
    return 1 if match[1][0] == "=" else 2


def section_title(title: str) -> str:
    """Normalize a heading for comparison: no numbering, emphasis, closing colon or translation."""
    words = unicodedata.normalize("NFKC", title).strip().strip("*_`").strip().casefold()
    numbering = _NUMBERING.match(words)
    words = words[numbering.end() :] if numbering else words
    return re.sub(r"\s*\([^()]*\)$", "", words).rstrip(": ").strip("*_ ")


def mask(text: str) -> str:
    """Return `text` prepared for matching, with the same length: full-width punctuation is
    narrowed, and the content of back-ticks is hidden as NUL. Match positions hold for the original.
    """
    runs = [(m.start(), m.end(), m[0]) for m in _TICKS.finditer(text)]
    masked: list[str] = []
    at = index = 0
    while index < len(runs):
        start, end, ticks = runs[index]
        close = next((n for n in range(index + 1, len(runs)) if _pairs(ticks, runs[n][2])), None)
        masked.append(text[at:start].translate(_NARROW).replace("\0", " "))
        masked.append("`" * (end - start))
        if close is None:
            at, index = end, index + 1
            continue
        inner, after, _ = runs[close]
        masked.append("\0" * (inner - end) + "`" * (after - inner))
        at, index = after, close + 1
    masked.append(text[at:].translate(_NARROW).replace("\0", " "))
    return "".join(masked)


def _pairs(opening: str, closing: str) -> bool:
    """Whether two runs match: equal length, or a full-width one closed by a narrow back-tick."""
    return closing == opening or (opening == "｀" and closing == "`")


_KANA = lazy_regex(r"[぀-ゟ゠-ヿ]")
_KANJI = lazy_regex(r"[一-鿿㐀-䶿]")


def has_japanese(text: str) -> bool:
    """Whether there are kana or kanji in a text, of which a short one may be all kanji."""
    return bool(_KANA.search(text) or _KANJI.search(text))


def detect_language(text: str) -> Language:
    """Return `ja` if there are kana, and kana and kanji are a tenth of the letters outside code."""
    prose = "\n".join(line.text for line in lines_of(text) if line.kind not in ("code", "comment"))
    kana, kanji = len(_KANA.findall(prose)), len(_KANJI.findall(prose))
    letters = sum(1 for char in prose if char.isalpha())
    return "ja" if kana and (kana + kanji) * 10 >= letters else "en"
