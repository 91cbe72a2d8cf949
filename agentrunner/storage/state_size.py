"""How much disk the state folder takes, and which ended runs to remove first if it is too much."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

NOTICE_BYTES = 2_000_000_000
"""A state folder that takes more is reported."""
MOST_LOOKED_AT = 200_000
"""Files and folders that are counted for that report: it is not worth a wait."""


class KeptRun(Struct, frozen=True):
    """What is kept of one ended run."""

    run_id: str
    ended: str
    """UTC or with an offset, ISO 8601; comparable with that of other runs."""
    places: tuple[Path, ...]


def disk_bytes(
    places: Iterable[Path], *, enough: int | None = None, most: int | None = None
) -> int:
    """Return the bytes that folders take on the disk; hard links count once, links are not
    followed.

    Stops early when it has found `enough` bytes or looked at `most` entries.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [os.fspath(place) for place in places]
    total = looked = 0
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                facts = entry.stat(follow_symlinks=False)
                looked += 1
                if stat.S_ISDIR(facts.st_mode):
                    waiting.append(entry.path)
                elif facts.st_nlink > 1:
                    if (facts.st_dev, facts.st_ino) in seen:
                        continue
                    seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_blocks * 512
        if (enough is not None and total >= enough) or (most is not None and looked >= most):
            break
    return total


def is_large(state_dir: Path) -> bool:
    """Whether the state folder takes so much disk that a person should know."""
    return disk_bytes([state_dir], enough=NOTICE_BYTES, most=MOST_LOOKED_AT) >= NOTICE_BYTES


def too_many(state_dir: Path, runs: Sequence[KeptRun], max_bytes: int) -> list[KeptRun]:
    """Return the runs to remove, oldest first, for the state folder to take `max_bytes` at most.

    Returns all of them where even that is not enough. Runs that wait or go on are never among them.
    """
    total = disk_bytes([state_dir])
    removed = []
    for run in sorted(runs, key=lambda kept: kept.ended):
        if total <= max_bytes:
            break
        total -= disk_bytes(run.places)
        removed.append(run)
    return removed


def gigabytes(count: int) -> str:
    """Return a number of bytes as people read it: "3.1 GB"."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
