"""Figures: base and subject measured by turns, the median or minimum of each, one ratio."""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any, Self

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


def program(figures: Callable[..., Any], **sizes: float | str) -> int:
    """Print the table of `figures`, which get a folder and the sizes; each size is an option."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{Path(sys.argv[0]).stem}")
    for size, usual in sizes.items():
        parser.add_argument(f"--{size}", type=type(usual), default=usual)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agentrunner-bench-") as place:
        found = figures(Path(place), **vars(chosen))
        return report(asyncio.run(found) if inspect.iscoroutine(found) else found)


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
    """The JSON that a command prints at last."""
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, env=environment(env), cwd=ROOT
    )
    return json.loads(done.stdout.splitlines()[-1])


def ms(seconds: float) -> str:
    """For the table."""
    return f"{seconds * 1000:.1f} ms"


def megabytes(count: float) -> str:
    """For the table."""
    return f"{count / 1e6:.2f} MB"


class Child:
    """A module of ours in a process of its own, so that its work is in nobody's figure."""

    def __init__(self, *command: str) -> None:
        self._command = python("-m", *command)

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        self.told = self.line()
        return self

    def __exit__(self, *_: object) -> None:
        """It ends by itself once its stdin is closed."""
        self._process.communicate()

    def line(self) -> str:
        """The next one that it prints; `told` is the first."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
