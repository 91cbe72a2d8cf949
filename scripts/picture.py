"""A picture of a terminal, for the README, from what a real run has printed.

script -qec "agentrunner run prd.md" /dev/null </dev/null |
    python scripts/picture.py "agentrunner run prd.md" > docs/images/demo.svg
"""

from __future__ import annotations

import io
import re
import sys

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

WIDTH = 88
NOTICES = re.compile(r"\x1b\][^\a\x1b]*(?:\a|\x1b\\)|\a")
"""What a terminal shows elsewhere: a title, a notification, a bell."""
FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def as_seen(printed: str) -> list[str]:
    """The lines that stay: a live line is overwritten after a carriage return."""
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in NOTICES.sub("", printed).split("\n"))
    return [line.rstrip() for line in lines]


def picture(printed: str, title: str) -> str:
    """The terminal as SVG, in whatever monospaced font the reader has: nothing is fetched."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), legacy_windows=False)
    for line in as_seen(printed.strip("\r\n")):
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id="terminal")
    svg = FONT_FACE.sub("", svg).replace("Fira Code", "ui-monospace")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    sys.stdout.write(picture(sys.stdin.buffer.read().decode(), sys.argv[1]))
