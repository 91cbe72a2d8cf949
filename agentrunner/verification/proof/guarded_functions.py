"""Whether other tests ask each function that the work altered.

A fix that takes something away, a warning or a second line, has a test that also passes where the
function does nothing. That is no gap where other tests turn red there: the work can't be left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from agentrunner.verification.proof.all_tests import AllTests
from agentrunner.verification.proof.trees_without_work import TreesWithoutWork
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.emptied_functions import changed_functions, last_name
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

MOST_GUARDED = 3
"""So many functions are emptied one by one."""


async def are_guarded(
    trees: TreesWithoutWork,
    run: Run,
    target: Target,
    world: SnapshotTrees,
    now: Results | None,
    refused: Mapping[str, str],
) -> bool:
    """Whether nothing was added, and tests that are not `refused` ask each altered function.

    `now` are the results of `target`, where they are known. False where there are more functions
    than `MOST_GUARDED`. Raises what running in rooms raises.
    """
    names = await asyncio.to_thread(_altered_names, trees, world)
    if not 0 < len(names) <= MOST_GUARDED or await trees.emptied(world, added=True) is not None:
        return False
    others = AllTests(run, target, world, now, refused)
    for name in names:
        tree = await trees.emptied(world, name)
        if tree is None or not await others.is_red(tree):
            return False
    return True


def _altered_names(trees: TreesWithoutWork, world: SnapshotTrees) -> list[str]:
    """Last names of the functions that were altered; none where a file of the work is in no
    language that is known."""
    read, read_old = trees.snapshots.reader(world.new), trees.snapshots.reader(world.old)
    names: set[str] = set()
    for path in world.product:
        language, after = language_of(path), read(path)
        if language is None or after is None:
            return []
        _, functions = changed_functions(read_old(path), after, language)
        names |= {last_name(one) for one in functions}
    return sorted(names)
