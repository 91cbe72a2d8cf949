"""The product before and after the work, for what the change shows by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.languages import language_of

MOST_READ = 500
"""Files of code that are read."""


class BothTrees(Struct, frozen=True, dict=True):
    """Two trees: what they list, and what reads them. Reading blocks."""

    old: Mapping[str, Entry]
    new: Mapping[str, Entry]
    read_old: ReadFile
    read: ReadFile
    product: Sequence[str]
    """Paths of the old tree that decide nothing."""
    work: Sequence[str]
    """Changed paths of the product: others are now, new or gone."""

    @classmethod
    def of(
        cls, snapshots: Snapshots, old: str, new: str, product: Sequence[str], work: Sequence[str]
    ) -> BothTrees:
        """List two trees. Blocks. Raises GitFailed and OSError."""
        readers = snapshots.reader(old), snapshots.reader(new)
        return cls(snapshots.list(old), snapshots.list(new), *readers, product, work)

    @cached_property
    def code(self) -> list[str]:
        """Old files of the product in a language with a grammar."""
        return [one for one in self.product if language_of(one)][:MOST_READ]

    @cached_property
    def changed(self) -> list[str]:
        """Those of them that are others now, or gone."""
        return [one for one in self.code if self.old[one] != self.new.get(one)]

    @cached_property
    def tests(self) -> list[str]:
        """Changed paths beside the work: tests, and what decides what these say."""
        changed = (one for one in {*self.old, *self.new} if self.old.get(one) != self.new.get(one))
        return sorted(set(changed).difference(self.work))
