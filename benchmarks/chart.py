"""Draws the growth that `benchmarks.repositories` measured, beside git's, as an SVG.

    python -m benchmarks.repositories | tee table.txt
    python -m benchmarks.chart table.txt > docs/images/charts/repositories.svg

Both axes are logarithmic: what grows like the number of files is a straight line at 45 degrees.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 210, 30, 50
SMALLEST_SEC, LARGEST_SEC = 1e-4, 1e2
ROW = re.compile(r"([\d,]+) files: (.+?)  +([\d.]+) ms +(.+?), ([\d.]+) ms ")
DRAWN = {
    "first snapshot": "#0b6bcb",
    "git add -A": "#0b6bcb",
    "next snapshot": "#c2410c",
    "git status": "#c2410c",
    "a folder written": "#15803d",
    "git worktree add": "#15803d",
}
"""Lines and their colours; git's are dashed."""

Lines = dict[str, dict[int, float]]


def read_lines(table: Iterable[str]) -> Lines:
    """Return seconds by number of files, for each line of the chart that the table has."""
    lines: Lines = {}
    for row in table:
        if match := ROW.match(row):
            files = int(match[1].replace(",", ""))
            for name, value in ((match[2], match[3]), (match[4], match[5])):
                if name in DRAWN:
                    lines.setdefault(name, {}).setdefault(files, float(value) / 1e3)
    return lines


def draw(lines: Lines) -> Iterator[str]:
    """Yield the lines of an SVG. Raises ValueError where fewer than two sizes were measured."""
    sizes = sorted({files for points in lines.values() for files in points})
    if len(sizes) < 2:
        raise ValueError("a chart needs at least two sizes of `benchmarks.repositories`")
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">'
    )
    yield "<title>Seconds by number of files, beside git</title>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    for files in sizes:
        x = _x(files, sizes)
        yield _line((x, TOP), (x, HEIGHT - BOTTOM), "#e5e7eb")
        yield _text(x, HEIGHT - BOTTOM + 18, f"{files:,}", "middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "files", "middle")
    for power in range(round(math.log10(SMALLEST_SEC)), round(math.log10(LARGEST_SEC)) + 1):
        y = _y(10.0**power)
        yield _line((LEFT, y), (WIDTH - RIGHT, y), "#e5e7eb")
        yield _text(LEFT - 8, y + 4, f"{10.0**power:g} s", "end")
    labels = _apart({name: _y(points[max(points)]) for name, points in lines.items()})
    for name, points in lines.items():
        path = " ".join(
            f"{_x(files, sizes):.1f},{_y(points[files]):.1f}" for files in sorted(points)
        )
        dashed = ' stroke-dasharray="6 4"' if name.startswith("git ") else ""
        yield (
            f'<polyline points="{path}" fill="none" stroke="{DRAWN[name]}"'
            f' stroke-width="2"{dashed}/>'
        )
        yield _text(WIDTH - RIGHT + 8, labels[name] + 4, name, "start", DRAWN[name])
    yield "</svg>"


def _x(files: int, sizes: Sequence[int]) -> float:
    least, most = math.log10(sizes[0]), math.log10(sizes[-1])
    return LEFT + (math.log10(files) - least) / (most - least) * (WIDTH - LEFT - RIGHT)


def _y(seconds: float) -> float:
    least, most = math.log10(SMALLEST_SEC), math.log10(LARGEST_SEC)
    share = (math.log10(max(seconds, SMALLEST_SEC)) - least) / (most - least)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _apart(wanted: dict[str, float]) -> dict[str, float]:
    """Move labels down until none lies on another."""
    placed: dict[str, float] = {}
    lowest = 0.0
    for name in sorted(wanted, key=lambda name: wanted[name]):
        placed[name] = lowest = max(wanted[name], lowest + 15)
    return placed


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    (x1, y1), (x2, y2) = start, end
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str, colour: str = "#374151") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


if __name__ == "__main__":
    print("\n".join(draw(read_lines(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()))))
