"""A file of a commit is read once, however often a command leads to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from agentrunner.plans.execution.merging.commit_sandbox import CommitSandbox


class Store:
    """Stands for a clone and its git; knows `there`, and counts."""

    def __init__(self) -> None:
        self.git = self
        self.asked: list[str] = []

    def run(self, *command: str) -> bytes:
        self.asked.append(command[-1])
        return b"100644 blob 1\tthere\n" if command[-1] == "there" else b""

    def read(self, commit: str, path: str) -> bytes:
        return b"words"


def test_each_file_is_asked_for_once() -> None:
    store, nothing = Store(), cast(Any, None)
    sandbox = CommitSandbox(
        cast(Any, store), nothing, "commit", Path(), sandbox=nothing, measurer=nothing
    )
    assert [sandbox._read(path) for path in ("there", "gone") * 3] == [b"words", None] * 3
    assert store.asked == ["there", "gone"]
