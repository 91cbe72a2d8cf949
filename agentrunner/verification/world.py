"""The trees that an examination compares: before, after, and mixtures of both. Reading blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from msgspec import Struct

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.languages import language_of


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

    snapshots: Snapshots
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

    @cached_property
    def was(self) -> ReadFile:
        """Reads the tree before the run."""
        return self.snapshots.reader(self.old)

    @property
    def readers(self) -> tuple[ReadFile, ReadFile]:
        """What reads the old tree, and what reads the new one."""
        return self.was, self.now

    @cached_property
    def now(self) -> ReadFile:
        """Reads the tree that is handed over."""
        return self.snapshots.reader(self.new)

    def sources(self) -> Iterator[tuple[str, str, bytes | None, bytes]]:
        """Files of the product that have a grammar and are there now: path, language, both texts.

        The text of before is None where there was none.
        """
        for path in self.product:
            language, after = language_of(path), self.now(path)
            if language is not None and after is not None:
                yield path, language, self.was(path), after
