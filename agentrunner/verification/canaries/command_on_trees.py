"""A command that decides, and all that canaries of it are made of and run on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from agentrunner.verification.evidence.target import Measured, Run, Target
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.trees import with_edits
from agentrunner.verification.world import SnapshotTrees


class CommandOnTrees(Struct, frozen=True):
    """A command, and the trees that it runs on. Methods raise what running in rooms raises."""

    run: Run
    target: Target
    world: SnapshotTrees
    inputs: Inputs
    """What decides what the command says."""

    async def on(self, tree: str, only: Sequence[str] = ()) -> Measured:
        """Run it on a tree; of its tests only those named, if any are named."""
        return await self.run(self.target, tree, only)

    async def passes(self, tree: str) -> bool:
        """Whether it passes on a tree."""
        return (await self.on(tree)).passed

    async def edited(self, edits: Mapping[str, Iterable[Edit]]) -> str:
        """The new tree with edits in its files, by path."""
        return await asyncio.to_thread(with_edits, self.world.snapshots, self.world.new, edits)

    @property
    def read(self) -> ReadFile:
        """Reads files of the new tree. Blocks."""
        return self.world.now
