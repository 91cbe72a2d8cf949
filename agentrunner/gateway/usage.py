"""What the gateway counted: one JSON line per call, and their sum."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """The sum over the calls of one worker run."""

    calls: int = 0
    unknown_calls: int = 0
    """Calls whose reply told no token counts."""
    input_tokens: int = 0
    output_tokens: int = 0
    known_usd: float = 0
    unpriced_calls: int = 0


def read_usage(path: Path) -> Usage:
    """The sum of a usage log; nothing where there is none."""
    return Usage()
