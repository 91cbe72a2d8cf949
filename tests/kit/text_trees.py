"""Snapshots of two trees that exist as texts only."""

from __future__ import annotations

from typing import Any, cast

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.inspection.both_trees import BothTrees


def both_trees(old: dict[str, str], new: dict[str, str]) -> BothTrees:
    """Trees in which all but files called test are product."""
    product, work = (
        sorted(path for path in paths if "test" not in path)
        for paths in (old, [path for path in {**old, **new} if old.get(path) != new.get(path)])
    )
    return BothTrees.of(cast(Snapshots, TextTrees(old, new)), "old", "new", product, work)


class TextTrees:
    """Stands in for `Snapshots` where trees are listed and read."""

    def __init__(self, old: dict[str, str], new: dict[str, str]) -> None:
        self.trees = {"old": old, "new": new}

    def list(self, tree: str) -> dict[str, Any]:
        return dict(self.trees[tree])

    def reader(self, tree: str) -> Any:
        return lambda path: self.trees[tree][path].encode() if path in self.trees[tree] else None
