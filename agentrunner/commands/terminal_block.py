"""Lines at the bottom of a terminal that are redrawn in place, below permanent lines.

Besides colours, the only escape sequences move the cursor and erase below it. If the process is
killed, nothing needs to be restored, since the cursor is never hidden.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TextIO

from agentrunner.commands.console import to_whoever_reads
from agentrunner.screens.layout import MAX_WIDTH
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import cell_width

_COLOUR = lazy_regex(r"\x1b\[[0-9;]*m")


class Block:
    """The lines to redraw, on one terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []

    @property
    def width(self) -> int:
        """Cells per line; the terminal's last one stays free, since some wrap too early."""
        return min(shutil.get_terminal_size((80, 24)).columns - 1, MAX_WIDTH)

    @property
    def height(self) -> int:
        """Lines that fit, besides the cursor's own line."""
        return max(shutil.get_terminal_size((80, 24)).lines - 1, 1)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines in place of the previous ones, cut if they are too many."""
        shown = list(lines[: self.height])
        if len(lines) > self.height:
            shown[-1] = "…"
        if shown != self._lines:
            self._write(self._erase() + "".join(f"{line}\n" for line in shown))
            self._lines = shown

    def above(self, lines: Sequence[str]) -> None:
        """Write permanent lines above the block."""
        kept = self._lines
        text = "".join(f"{line}\n" for line in [*lines, *kept])
        self._write(self._erase() + text)
        self._lines = kept

    def clear(self) -> None:
        """Remove the block; the cursor is then where the block began."""
        self._write(self._erase())
        self._lines = []

    def _erase(self) -> str:
        """Return to the start of the block, whose lines a narrower terminal may have wrapped."""
        if not self._lines:
            return ""
        columns = max(shutil.get_terminal_size((80, 24)).columns, 1)
        rows = sum(max(-(-_cells(line) // columns), 1) for line in self._lines)
        return f"\r\x1b[{rows}A\x1b[J"

    def _write(self, text: str) -> None:
        if text:
            with to_whoever_reads():
                self._stream.write(text)
                self._stream.flush()


def _cells(line: str) -> int:
    """Return a line's width without its colours."""
    return cell_width(_COLOUR.sub("", line))
