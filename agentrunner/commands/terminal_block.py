"""Lines at the bottom of a terminal that are drawn again in place; what is said stays above them.

The cursor is moved and what is below it erased: the only escape sequences beside colours. Nothing
has to be put right where the process is killed, since the cursor is never hidden.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Sequence
from typing import TextIO

from agentrunner.screens.layout import MAX_WIDTH
from agentrunner.text.terminal import cell_width

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Block:
    """The lines that are drawn again, on one terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []

    @property
    def width(self) -> int:
        """Cells of a line; the last one of the terminal stays free, where some wrap too soon."""
        return min(shutil.get_terminal_size((80, 24)).columns - 1, MAX_WIDTH)

    @property
    def height(self) -> int:
        """Lines that fit, beside the one that the cursor is in."""
        return max(shutil.get_terminal_size((80, 24)).lines - 1, 1)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these in place of those before, cut where they are too many."""
        shown = list(lines[: self.height])
        if len(lines) > self.height:
            shown[-1] = "…"
        if shown != self._lines:
            self._write(self._erase() + "".join(f"{line}\n" for line in shown))
            self._lines = shown

    def above(self, lines: Sequence[str]) -> None:
        """Say something that stays; the block goes on below it."""
        kept = self._lines
        text = "".join(f"{line}\n" for line in [*lines, *kept])
        self._write(self._erase() + text)
        self._lines = kept

    def clear(self) -> None:
        """Take the block away; the cursor is where it began."""
        self._write(self._erase())
        self._lines = []

    def _erase(self) -> str:
        """Back to where the block began, whose lines a narrower terminal may have wrapped."""
        if not self._lines:
            return ""
        columns = max(shutil.get_terminal_size((80, 24)).columns, 1)
        rows = sum(max(-(-_cells(line) // columns), 1) for line in self._lines)
        return f"\r\x1b[{rows}A\x1b[J"

    def _write(self, text: str) -> None:
        if text:
            with contextlib.suppress(BrokenPipeError):
                self._stream.write(text)
                self._stream.flush()


def _cells(line: str) -> int:
    """Cells of a line without its colours."""
    return cell_width(_COLOUR.sub("", line))
