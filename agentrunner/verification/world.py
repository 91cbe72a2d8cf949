"""The trees that an examination compares: before, after, and mixtures of both. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class InputChange:
    """A changed path that decides what the verifying commands say."""

    path: str
    why: str
    """Why it counts, one clause for people."""
    kind: Literal["added", "modified", "deleted"]
    understood: str = ""
    """Why it needs no question: a test under a new name, a dependency; "" where it may."""
    test: bool = False
    """Whether it is a test, not what steers one."""


@dataclass(frozen=True)
class SnapshotTrees:
    """Trees by their ids."""

    old: str
    """Before the run."""
    new: str
    """What is handed over."""
    kept: str
    """`new` with all inputs of the proof as they were, later ones taken out; `new` where none
    was changed."""
    mixed: str
    """`old` with the inputs of the proof as the worker left them."""
    changes: tuple[InputChange, ...]
    old_paths: frozenset[str]
    product: tuple[str, ...]
    """Changed paths that are no inputs."""
    unsure: tuple[str, ...] = ()
    """Changed paths that are taken as product and may decide: what rests on them is no proof."""
    allowed: tuple[str, ...] = ()
    """Paths whose change a person allowed."""
