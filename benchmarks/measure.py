"""Figures: base and subject measured by turns, the median or minimum of each, one ratio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Figure:
    """One line of the table. `goal` is the most that `ratio` may be."""

    name: str
    value: str
    base: str
    ratio: float
    goal: float

    @property
    def ok(self) -> bool:
        """Whether the goal is met."""
        return self.ratio <= self.goal


def report(figures: Sequence[Figure]) -> int:
    """Print the table; 0 if every goal is met, else 1."""
    rows = [("figure", "here", "base", "ratio", "goal", "")]
    rows += [
        (f.name, f.value, f.base, f"{f.ratio:.3g}", f"<= {f.goal:g}", "ok" if f.ok else "MISSED")
        for f in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    return 0 if all(figure.ok for figure in figures) else 1


def by_turns(
    rounds: int,
    *measures: Callable[[], float],
    pick: Callable[[Sequence[float]], float] = median,
) -> list[float]:
    """The median of each measure; they take turns, so that a busy minute meets them all.

    Wall times are better picked by `min`: whatever else runs can only add to them.
    """
    found = [[measure() for measure in measures] for _ in range(rounds)]
    return [pick(column) for column in zip(*found, strict=True)]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours, with the checkout importable from everywhere, and compiled as an installation is."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT), **(more or {})}


def cpu_sec(
    command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> float:
    """CPU time of a command and its children; raises CalledProcessError where it fails."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment(env), cwd=cwd)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def python(*arguments: str) -> list[str]:
    """A command of this interpreter."""
    return [sys.executable, *arguments]


def printed(command: Sequence[str], env: Mapping[str, str] | None = None) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, env=environment(env), cwd=ROOT
    )
    return json.loads(done.stdout)


def ms(seconds: float) -> str:
    """For the table."""
    return f"{seconds * 1000:.1f} ms"


def megabytes(count: float) -> str:
    """For the table."""
    return f"{count / 1e6:.2f} MB"
