"""The new tree with the worker's tests in other words, and whether they still pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.target import Measured, Run, Target
from agentrunner.verification.world import SnapshotTrees


async def run_changed_tests(
    run: Run,
    target: Target,
    snapshots: Snapshots,
    world: SnapshotTrees,
    places: Mapping[str, Sequence[str]],
    change: Callable[[str, bytes], bytes],
) -> tuple[Measured, list[str]] | None:
    """Run the tests at `places`, by path, with files as `change` makes them; None for no change.

    Returns the names of the tests in changed files as well. Raises what running in rooms raises.
    """
    changed, names = await asyncio.to_thread(_changed_files, snapshots, world, places, change)
    if not changed:
        return None
    tree = await asyncio.to_thread(snapshots.with_texts, world.new, changed)
    return await run(target, tree, names), names


def _changed_files(
    snapshots: Snapshots,
    world: SnapshotTrees,
    places: Mapping[str, Sequence[str]],
    change: Callable[[str, bytes], bytes],
) -> tuple[dict[str, bytes], list[str]]:
    read, entries = snapshots.reader(world.new), snapshots.list(world.new)
    changed, names = dict[str, bytes](), list[str]()
    for path, tests in places.items():
        text = read(path)
        if path in entries and text is not None and (other := change(path, text)) != text:
            changed[path] = other
            names += tests
    return changed, names
