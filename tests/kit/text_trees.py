"""Snapshots of two trees that exist as texts only."""

from __future__ import annotations

from typing import Any


class TextTrees:
    """Stands in for `Snapshots` where trees are listed and read."""

    def __init__(self, old: dict[str, str], new: dict[str, str]) -> None:
        self.trees = {"old": old, "new": new}

    def list(self, tree: str) -> dict[str, Any]:
        return dict(self.trees[tree])

    def reader(self, tree: str) -> Any:
        return lambda path: self.trees[tree][path].encode() if path in self.trees[tree] else None
