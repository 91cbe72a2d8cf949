"""A changed file of which only a part steers: the new file with that part as it was. Pure.

Each kind of file has a function from (before, after) to a `Kept`. What it understands as an
addition that needs no question is a closed list; everything else stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentrunner.verification.inputs.model import Input, Inputs


@dataclass(frozen=True)
class Kept:
    """The file to verify with."""

    content: bytes
    understood: str = ""
    """What was added, where that is all that changed: "a new source in a list of sources"."""
    restored: bytes | None = None
    """The new file without what was understood; None where that is the old file."""


@dataclass(frozen=True)
class Surrounding:
    """What a function may know beside the two texts."""

    path: str
    inputs: Inputs
    entry: Input
    exists: Callable[[str], bool]
    """Whether a path is in the tree after the run."""

    def is_product(self, path: str) -> bool:
        """Whether a path is there after the run and is no input of the proof."""
        return self.exists(path) and self.inputs.counts(path) is None


Keep = Callable[[str, str, Surrounding], Kept]


def whole(after: str, why: str, restored: bytes | None = None) -> Kept:
    """Everything that changed is understood."""
    return Kept(after.encode(), why, restored)


def old(before: str) -> Kept:
    """Nothing is understood: the file as it was."""
    return Kept(before.encode())
