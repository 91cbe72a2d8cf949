"""Columns, wrapping, durations and colours, measured in terminal cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentrunner.state.lifecycle import LEAST_WAIT_SEC, Tone
from agentrunner.text.terminal import cell_width, sanitize, shorten

WIDTH = 80
"""Where the terminal does not say."""
LEAST_BESIDE = 24
"""Cells of text that are worth a column of their own."""
MAX_WIDTH = 88
"""Longer lines are hard to read, however wide the window."""


_NEVER_FIRST = (
    " ,.:;?!)]}、。，．・：；？！）］｝」』】〉》〕々ー…ぁぃぅぇぉっゃゅょァィゥェォッャュョ"
)
_NEVER_LAST = "([{（［｛「『【〈《〔"
"""What Japanese lines do not begin and end with."""


@dataclass(frozen=True)
class Paint:
    """Colours a word, or leaves it alone. Applied after widths are measured."""

    enabled: bool = False

    def bold(self, text: str) -> str:
        """For headings."""
        return self._sgr("1", text)

    def good(self, text: str) -> str:
        """Green: proven."""
        return self._sgr("1;32", text)

    def bad(self, text: str) -> str:
        """Red: failed."""
        return self._sgr("1;31", text)

    def warn(self, text: str) -> str:
        """Yellow: look at this."""
        return self._sgr("1;33", text)

    def toned(self, tone: Tone, text: str) -> str:
        """The colour of an end."""
        match tone:
            case "good":
                return self.good(text)
            case "warn":
                return self.warn(text)
            case "bad":
                return self.bad(text)

    def added(self, text: str) -> str:
        """Green, for a line of a diff."""
        return self._sgr("32", text)

    def removed(self, text: str) -> str:
        """Red, for a line of a diff."""
        return self._sgr("31", text)

    def dim(self, text: str) -> str:
        """For what is there when wanted."""
        return self._sgr("2", text)

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled else text


PLAIN = Paint()


def wants_colour(environ: Mapping[str, str], is_terminal: bool) -> bool:
    """Only in a terminal that is not `dumb`, and never against NO_COLOR (https://no-color.org)."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def flat(text: str) -> str:
    """`text` sanitised, on one line of any length."""
    return " ".join(sanitize(text).split())


def cell(text: str, width: int) -> str:
    """`text` on one line, sanitised, shortened or filled up to exactly `width` cells."""
    return fit(flat(text), width)


def fit(text: str, width: int) -> str:
    """A laid out line, blanks kept, shortened or filled up to exactly `width` cells."""
    short = shorten(text, width)
    return short + " " * (width - cell_width(short))


def spread(left: str, right: str, width: int) -> str:
    """Two laid out texts at the ends of a line; `left` gives way where both do not fit."""
    room = width - cell_width(right) - 2
    return f"{fit(left, room)}  {right}".rstrip() if right else shorten(left, width)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Sanitised lines of at most `width` cells, each behind `indent`.

    Breaks between words, and beside any wide character, as Japanese text has no spaces to break
    at; inside a word only where it is wider than a line.
    """
    room = max(width - cell_width(indent), 8)
    lines: list[str] = []
    for paragraph in sanitize(text).replace("\t", "    ").split("\n"):
        line = ""
        for piece in _pieces(paragraph, room):
            if line and cell_width(line) + cell_width(piece.rstrip()) > room:
                lines.append(line.rstrip())
                line = piece.lstrip()
            else:
                line += piece
        lines.append(line.rstrip())
    return [f"{indent}{line}".rstrip() for line in lines]


def _pieces(paragraph: str, room: int) -> Iterable[str]:
    """Words with the blanks behind them, none of them wider than `room`."""
    start = 0
    for index, character in enumerate(paragraph):
        ends_word = character == " " and paragraph[index + 1 : index + 2] != " "
        if ends_word or _breaks(paragraph, index):
            yield from _cut(paragraph[start : index + 1], room)
            start = index + 1
    yield from _cut(paragraph[start:], room)


def _breaks(text: str, index: int) -> bool:
    """Whether a line may end behind a character though no blank follows."""
    here, after = text[index], text[index + 1 : index + 2]
    if not after or (here.isascii() and after.isascii()):
        return False
    wide = cell_width(here) == 2 or cell_width(after) == 2
    return wide and after not in _NEVER_FIRST and here not in _NEVER_LAST


def _cut(word: str, room: int) -> Iterable[str]:
    if cell_width(word) <= room:
        yield word
        return
    piece, cells = "", 0
    for character in word:
        width = cell_width(character)
        if cells + width > room:
            yield piece
            piece, cells = "", 0
        piece, cells = piece + character, cells + width
    yield piece


def labelled(label: str, text: str, width: int, *, label_width: int = 9) -> list[str]:
    """`  label   text`, with the text hanging where it needs more than one line."""
    lead = 2 + label_width
    lines = wrap(text, width, " " * lead)
    return [f"  {cell(label, label_width)}{lines[0][lead:]}".rstrip(), *lines[1:]]


def clamped(label: str, text: str, width: int, most: int = 2) -> list[str]:
    """As `labelled`, in at most so many lines; the last one says by `…` that there is more."""
    lines = labelled(label, text, width)
    if len(lines) <= most:
        return lines
    rest = " ".join(line.strip() for line in lines[most - 1 :])
    return [*lines[: most - 1], shorten(f"{' ' * 11}{rest}", width)]


def hung(lead: str, text: str, width: int) -> list[str]:
    """`text` hanging behind a laid out `lead`; below it where little room is left beside it."""
    cells = cell_width(lead)
    if width - cells < LEAST_BESIDE:
        return [lead.rstrip(), *(wrap(text, width, "      ") if text else ())]
    first, *rest = wrap(text, width, " " * cells) if text else [""]
    return [(lead + first[cells:]).rstrip(), *rest]


def worked_and_waited(worked: object, waited: object) -> list[str]:
    """`18 m 41 s`, and `waited 2 h 3 m` where it did; nothing where it did not work."""
    times = [float(one) if isinstance(one, int | float) else 0.0 for one in (worked, waited)]
    parts = [duration(times[0])] if times[0] else []
    return [*parts, f"waited {duration(times[1])}"] if times[1] >= LEAST_WAIT_SEC else parts


def duration(seconds: float) -> str:
    """`3.8 s`, `21 s`, `7 m 13 s`, `1 h 02 m`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} m"


def clock(seconds: float) -> str:
    """`9:12` or `1:09:12`, for a column of a table."""
    whole = round(max(seconds, 0))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def thousands(count: int) -> str:
    """`812`, `18k`, `1.2M`."""
    if count < 1000:
        return str(count)
    if count < 999_500:
        return f"{round(count / 1000)}k"
    return f"{count / 1_000_000:.1f}M"


def count(number: int, one: str, many: str = "") -> str:
    """`1 file`, `2 files`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def tilde(path: str, home: str) -> str:
    """`~/src/shop` for a path below the home folder."""
    root = home.rstrip("/")
    inside = bool(root) and (path == root or path.startswith(root + "/"))
    return "~" + path[len(root) :] if inside else path
