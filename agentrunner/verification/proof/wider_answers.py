"""Whether the worker's tests accept other values beside the one that people name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.syntax.alternatives import narrowed
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

ACCEPTS_MORE = "it passes by a value that it accepts beside the one that the task names"


async def find_wider_answers(
    run: Run,
    target: Target,
    snapshots: Snapshots,
    world: SnapshotTrees,
    places: Mapping[str, Sequence[str]],
    asked: str,
) -> dict[str, str]:
    """Tests at `places`, by path, that fail where they accept only what `asked` names; and why.

    Raises what running in rooms raises.
    """
    made = await asyncio.to_thread(_narrowed, snapshots, world, places, asked)
    if made is None:
        return {}
    tree, names = made
    ran = await run(target, tree, names)
    red = {test.name for test in ran.results.red} if ran.results is not None else set()
    return {name: ACCEPTS_MORE for name in names if name in red}


def _narrowed(
    snapshots: Snapshots, world: SnapshotTrees, places: Mapping[str, Sequence[str]], asked: str
) -> tuple[str, list[str]] | None:
    """The new tree with tests that accept only what is named, and the tests of these files."""
    read, entries = snapshots.reader(world.new), snapshots.list(world.new)
    changed: dict[str, bytes] = {}
    names: list[str] = []
    for path, tests in places.items():
        text, language = read(path), language_of(path)
        if path not in entries or text is None or language is None:
            continue
        if (less := narrowed(text, language, asked)) != text:
            changed[path] = less
            names += tests
    return (snapshots.with_texts(world.new, changed), names) if changed else None
