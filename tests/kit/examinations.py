"""Trees and examinations without snapshots or rooms, whose runs answer as a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.world import SnapshotTrees

UNUSED = cast("Any", None)
Texts = Mapping[str, bytes]


def trees(old: Texts | None = None, new: Texts | None = None, **facts: Any) -> SnapshotTrees:
    """Trees whose files say this before and after; `facts` are their fields."""
    texts: dict[str, Texts] = {"old": old or {}, "new": new or {}}
    snapshots = SimpleNamespace(
        reader=lambda tree: texts[tree].get, list=lambda tree: {}, combine=lambda tree, made: tree
    )
    known = {"kept": "kept", "mixed": "mixed", "changes": (), "old_paths": frozenset()}
    return SnapshotTrees(cast("Any", snapshots), "old", "new", **{**known, "product": (), **facts})


class Scripted(Examination):
    """An examination whose runs are answered by `answer`, and whose verifier says what it says."""

    @classmethod
    def of(
        cls, answer: Callable[[str, Sequence[str]], Measured], *, verifier: Any, differential: Any
    ) -> Scripted:
        """Make one; nothing else of it is used."""
        exam = cls(verifier, differential, trees(), (), UNUSED)
        object.__setattr__(exam, "answer", answer)
        return exam

    async def run(self, target: Target, tree: str, only: Sequence[str] = ()) -> Measured:
        """Answer as the test says."""
        return cast("Measured", vars(self)["answer"](tree, only))
