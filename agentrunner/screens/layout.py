"""Columns, wrapping, durations and colours, measured in terminal cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from agentrunner.state.lifecycle import LEAST_WAIT_SEC, Tone
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import cell_width, sanitize, shorten

WIDTH = 80
"""Width if the terminal does not report one."""
LEAST_BESIDE = 24
"""Least width of a text column beside another."""
MAX_WIDTH = 100
"""Longer lines are hard to read, however wide the window is."""


_NEVER_FIRST = (
    " ,.:;?!)]}、。，．・：；？！）］｝」』】〉》〕々ー…ぁぃぅぇぉっゃゅょァィゥェォッャュョ"
)
_NEVER_LAST = "([{（［｛「『【〈《〔"
"""Characters with which Japanese lines do not begin and end."""


class Paint(Struct, frozen=True):
    """Colours a text, or leaves it alone. Applied after widths are measured."""

    enabled: bool = False

    def bold(self, text: str) -> str:
        return self._sgr("1", text)

    def good(self, text: str) -> str:
        """Green: proven."""
        return self._sgr("1;32", text)

    def bad(self, text: str) -> str:
        """Red: failed."""
        return self._sgr("1;31", text)

    def warn(self, text: str) -> str:
        """Yellow: needs a look."""
        return self._sgr("1;33", text)

    def toned(self, tone: Tone, text: str) -> str:
        """Colour by the tone of an end state."""
        match tone:
            case "good":
                return self.good(text)
            case "warn":
                return self.warn(text)
            case "bad":
                return self.bad(text)

    def added(self, text: str) -> str:
        """Green, for an added line of a diff."""
        return self._sgr("32", text)

    def removed(self, text: str) -> str:
        """Red, for a removed line of a diff."""
        return self._sgr("31", text)

    def dim(self, text: str) -> str:
        """For secondary information."""
        return self._sgr("2", text)

    def _sgr(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled else text


PLAIN = Paint()


def wants_colour(environ: Mapping[str, str], is_terminal: bool) -> bool:
    """Only in a terminal that is not `dumb`, and never with NO_COLOR (https://no-color.org)."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def flat(text: str) -> str:
    """Return `text` sanitised, on one line of any length."""
    return " ".join(sanitize(text).split())


def cell(text: str, width: int) -> str:
    """Return `text` on one line, sanitised, shortened or padded to exactly `width` cells."""
    return fit(flat(text), width)


def fit(text: str, width: int) -> str:
    """Shorten or pad a laid-out line to exactly `width` cells, keeping its blanks."""
    short = shorten(text, width)
    return short + " " * (width - cell_width(short))


def spread(left: str, right: str, width: int) -> str:
    """Put two laid-out texts at the ends of a line; `left` is shortened if both do not fit."""
    room = width - cell_width(right) - 2
    return f"{fit(left, room)}  {right}".rstrip() if right else shorten(left, width)


def headed(word: str, names: str, right: str, width: int) -> list[str]:
    """Return a head of state, names and facts; where a name would be cut, all have lines below."""
    if len(word) + cell_width(names) + cell_width(right) + 4 <= width:
        return [spread(f"{word}  {names}", right, width)]
    return [spread(word, right, width), *wrap(names, width, "  ")]


_NO_BREAK = "\u00a0"


def unbroken(text: str) -> str:
    """Return words that `wrap` leaves in one line, where they fit one."""
    return text.replace(" ", _NO_BREAK)


def breakable(text: str) -> str:
    """Return the text of `unbroken` words as it is shown."""
    return text.replace(_NO_BREAK, " ")


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Return sanitised lines of at most `width` cells, each after `indent`.

    Lines break between words and beside wide characters, since Japanese text has no spaces. A word
    is only broken if it is wider than a line.
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
    return [breakable(f"{indent}{line}").rstrip() for line in lines]


def _pieces(paragraph: str, room: int) -> Iterable[str]:
    """Yield words with the blanks after them, none wider than `room`.

    What stands between back-ticks is one word where it fits a line: it can be copied.
    """
    start, closes, fits = 0, -1, False
    for index, character in enumerate(paragraph):
        if character == "`" and index > closes:
            closes = paragraph.find("`", index + 1)
            fits = cell_width(paragraph[index : closes + 1]) <= room
            closes = closes if closes > 0 else len(paragraph)
        if fits and index < closes < len(paragraph):
            continue
        ends_word = character == " " and paragraph[index + 1 : index + 2] != " "
        if ends_word or _may_break(paragraph, index):
            yield from _split_word(paragraph[start : index + 1], room)
            start = index + 1
    yield from _split_word(paragraph[start:], room)


def _may_break(text: str, index: int) -> bool:
    """Whether a line may end after a character although no blank follows."""
    here, after = text[index], text[index + 1 : index + 2]
    if not after or (here.isascii() and after.isascii()):
        return False
    wide = cell_width(here) == 2 or cell_width(after) == 2
    return wide and after not in _NEVER_FIRST and here not in _NEVER_LAST


def _split_word(word: str, room: int) -> Iterable[str]:
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
    """Format `  label   text` with a hanging indent for further lines."""
    lead = 2 + label_width
    lines = wrap(text, width, " " * lead)
    return [f"  {cell(label, label_width)}{lines[0][lead:]}".rstrip(), *lines[1:]]


def clamped(label: str, text: str, width: int, most: int = 2, *, label_width: int = 9) -> list[str]:
    """Like `labelled`, in at most `most` lines; a final `…` shows that text is missing."""
    lines = labelled(label, text, width, label_width=label_width)
    if len(lines) <= most:
        return lines
    last, *rest = lines[most - 1 :]
    return [*lines[: most - 1], shorten(" ".join([last, *map(str.strip, rest)]), width)]


def hung(lead: str, text: str, width: int) -> list[str]:
    """Put `text` after a laid-out `lead` with a hanging indent; below it if too narrow."""
    cells = cell_width(lead)
    if width - cells < LEAST_BESIDE:
        return [lead.rstrip(), *(wrap(text, width, "      ") if text else ())]
    first, *rest = wrap(text, width, " " * cells) if text else [""]
    return [(lead + first[cells:]).rstrip(), *rest]


def hanging(lead: str, text: str, columns: int) -> list[str]:
    """Put text after `lead`, broken at words to `columns`; on one line where `columns` is 0.

    Without a terminal nothing is broken: a program may read it, or a person copy it from a log.
    In a terminal a command in back quotes stays in one piece, and so does a word, as a path or a
    variable; where one is wider than the line, the terminal breaks it and copies it whole.
    """
    if not columns:
        return [lead + flat(text)]
    indent = " " * (len(lead) - len(lead.lstrip()) + 2)
    lines, row, glue = [], lead.rstrip(), lead[len(lead.rstrip()) :]
    for word in re.findall(r"`[^`]*`\S*|\S+", flat(text)):
        for piece in [word] if word.isascii() else _pieces(word, columns - len(indent)):
            if cell_width(row + glue + piece) > columns:
                lines.append(row)
                row, glue = indent, ""
            row, glue = row + glue + piece, ""
        glue = " "
    return [*lines, row]


_ANOTHER_WAY = lazy_regex(r"`[^`]*`|\([^()]*\)|[,;] (?P<link>or|then) ")


def ways_of(remedy: str) -> list[tuple[str, str]]:
    """Return the ways that a remedy names, each with what joins it to the one before: "or", "then".

    What stands in back quotes or brackets is one piece.
    """
    text, begin, link = flat(remedy), 0, ""
    found: list[tuple[str, str]] = []
    for hit in _ANOTHER_WAY.finditer(text):
        if hit["link"]:
            found.append((link, text[begin : hit.start()].strip()))
            begin, link = hit.end(), str(hit["link"])
    return [*found, (link, text[begin:].strip())]


def ways_lines(lead: str, remedy: str, columns: int) -> list[str]:
    """Format a remedy after `lead`, each of its ways on a line of its own, where a command stands
    alone and can be copied.

    Prose is broken at words, and what is nothing but a command in back quotes is not, and loses
    them. Where `columns` is 0 nothing is broken.
    """
    label, lines = lead.rstrip(), []
    indent = lead[: len(lead) - len(lead.lstrip())]
    for link, way in ways_of(remedy):
        if not link:
            begin = lead
        elif label.endswith(":"):
            begin = f"{f'{link}:':>{len(label)}}{lead[len(label) :]}"
        else:  # in a column of labels
            begin = f"{indent}{link}".ljust(len(lead))
        command = re.fullmatch(r"`([^`]*)`", way)
        lines += [begin + command[1]] if command else hanging(begin, way, columns)
    return lines


def sentence_lines(text: str, columns: int) -> list[str]:
    """Return lines of `SENTENCE  COMMAND  WHAT IT DOES`, the parts set apart by two blanks.

    A line may begin with its command, where that is one of AgentRunner.
    Parts without room beside what is before them begin a line; sentences are broken at words, a
    command only so that it can be pasted. Nothing is broken where `columns` is 0: no terminal.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        if not columns or cell_width(line) <= columns:
            lines.append(line)
            continue
        indent = " " * (len(line) - len(line.lstrip()))
        row, begins = "", line.lstrip().startswith("agentrunner ")
        for index, part in enumerate(_apart(line)):
            if row and cell_width(row) + 2 + cell_width(part) <= columns:
                row = f"{row}  {part}"
                continue
            lines += [row] if row else []
            row = f"{indent}{'  ' if index else ''}{part}"
            if cell_width(row) > columns:
                lead = indent + ("  " if index else "")
                set_out = pasteable if index % 2 != begins else wrap
                *before, row = set_out(part, columns, lead)
                lines += before
        lines.append(row)
    return lines


def _apart(line: str) -> list[str]:
    return [part.strip() for part in line.split("  ") if part.strip()]


def pasteable(command: str, width: int, indent: str = "") -> list[str]:
    """Break a command at words, so that it can be pasted; leave one whole that cannot be broken."""
    whole = flat(command)
    parts = wrap(whole, width - 2, indent)
    words = [part.strip() for part in parts]
    in_a_text = any(part.count(quote) % 2 for part in words for quote in "\"'")
    if cell_width(indent + whole) <= width or in_a_text or " ".join(words) != whole:
        return [indent + whole]
    return [*(f"{part} \\" for part in parts[:-1]), parts[-1]]


_COMMAND_AT_END = lazy_regex(r"(?<!\s)\s*`(agentrunner [^`\n]+)`\s*$")


def apart_from_command(text: str, room: int) -> tuple[str, str]:
    """Return a text and the command at its end that lines of `room` cells would break, else ""."""
    last = _COMMAND_AT_END.search(text)
    if last is None or any(last[1] in line for line in wrap(text, room)):
        return text, ""
    return text[: last.start()], last[1]


def worked_and_waited(worked: object, waited: object) -> list[str]:
    """Return `18 m 41 s`, and `waited 2 h 3 m` if it waited long; [] if it did not work.

    They add up to what the clock on the wall went on: a wait too short to be named is in the first.
    """
    times = [float(one) if isinstance(one, int | float) else 0.0 for one in (worked, waited)]
    if times[1] < LEAST_WAIT_SEC:
        return [duration(sum(times))] if times[0] else []
    return [*([duration(times[0])] if times[0] else []), f"waited {duration(times[1])}"]


def duration(seconds: float) -> str:
    """Format a duration: `3.8 s`, `21 s`, `7 m 13 s`, `1 h 02 m`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} m"


def clock(seconds: float) -> str:
    """Format a duration for a table column: `9:12` or `1:09:12`."""
    whole = round(max(seconds, 0))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def thousands(count: int) -> str:
    """Format a number: `812`, `18k`, `1.2M`."""
    if count < 1000:
        return str(count)
    if count < 999_500:
        return f"{round(count / 1000)}k"
    return f"{count / 1_000_000:.1f}M"


def count(number: int, one: str, many: str = "") -> str:
    """Format a number with its noun: `1 file`, `2 files`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def tilde(path: str, home: str) -> str:
    """Return `~/src/shop` for a path below the home folder."""
    root = home.rstrip("/")
    inside = bool(root) and (path == root or path.startswith(root + "/"))
    return "~" + path[len(root) :] if inside else path
