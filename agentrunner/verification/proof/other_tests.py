"""Whether the worker's tests still pass in other words: where they accept no other value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

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

    def narrow(path: str, text: bytes) -> bytes:
        language = language_of(path)
        return text if language is None else narrowed(text, language, asked)

    red = await red_in_other_words(run, target, snapshots, world, places, narrow)
    return dict.fromkeys(red, ACCEPTS_MORE)


async def red_in_other_words(
    run: Run,
    target: Target,
    snapshots: Snapshots,
    world: SnapshotTrees,
    places: Mapping[str, Sequence[str]],
    change: Callable[[str, bytes], bytes],
) -> list[str]:
    """Tests at `places`, by path, in files that `change` makes different, that fail there.

    Raises what running in rooms raises.
    """
    changed, names = await asyncio.to_thread(_changed_files, snapshots, world, places, change)
    if not changed:
        return []
    tree = await asyncio.to_thread(snapshots.with_texts, world.new, changed)
    ran = await run(target, tree, names)
    red = {test.name for test in ran.results.red} if ran.results is not None else set()
    return [name for name in names if name in red]


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
