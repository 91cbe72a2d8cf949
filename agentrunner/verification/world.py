"""The trees that an examination compares: before, after, and mixtures of both. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct


class InputChange(Struct, frozen=True):
    """A changed path that decides what the verifying commands say."""

    path: str
    why: str
    """Why it counts, one clause for people."""
    kind: Literal["added", "modified", "deleted"]
    understood: str = ""
    """Why the change raises no question (a renamed test, a dependency); "" where it may."""
    test: bool = False
    """Whether the file is a test itself, not something that steers tests."""


@dataclass(frozen=True)
class SnapshotTrees:
    """Ids of the trees that an examination compares, and what is known of their differences."""

    old: str
    """The tree before the run."""
    new: str
    """The tree that is handed over."""
    kept: str
    """`new` with all inputs of the proof as they were in `old`, and without the added ones; `new`
    itself where none was changed."""
    mixed: str
    """`old` with the inputs of the proof as the worker left them."""
    changes: tuple[InputChange, ...]
    old_paths: frozenset[str]
    product: tuple[str, ...]
    """Changed paths that are product: no inputs of the proof, or only in a region."""
    unsure: tuple[str, ...] = ()
    """Changed paths that are taken as product but may decide: what rests on them is no proof."""
    allowed: tuple[str, ...] = ()
    """Paths whose change a person allowed."""
