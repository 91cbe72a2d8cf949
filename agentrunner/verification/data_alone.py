"""Expected data that may change: does one of its changes alone make the old code green?"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from agentrunner.verification.differential import Differential
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

BY_DATA = "was changed so that the old code passes by that alone"


async def turned_by_data(
    run: Run,
    differential: Differential,
    target: Target,
    world: SnapshotTrees,
    names: Sequence[str] = (),
) -> tuple[str, Collection[str]]:
    """The path of such data, and those of `names` that it turns; "" for none.

    Without names the command is asked as a whole. Raises what runs in rooms raise.
    """
    for path, texts in await asyncio.to_thread(differential.single_changes_of_data, world, target):
        for text in texts:
            tree = await asyncio.to_thread(differential.with_text, world.old, path, text)
            ran = await run(target, tree, names)
            if names and ran.results is not None:
                if turned := {name for name in names if ran.results.passed(name)}:
                    return path, turned
            elif ran.passed:
                return path, set(names)
    return "", ()
