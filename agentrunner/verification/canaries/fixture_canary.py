"""Removes files that claimed tests compare with: a test that still passes reads something else.

The product can redirect it by another folder, a variable or a function of its own. Whether a test
reads a file at all is seen on the old tree, where it reports the file as missing once it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.file_names import complaints, naming
from agentrunner.verification.inputs.leads import family_of
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.results.model import Results
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

MOST_FILES = 50
"""Data files of one test file that are removed."""


async def not_read(
    run: Run,
    target: Target,
    places: Mapping[str, Sequence[str]],
    snapshots: Snapshots,
    world: SnapshotTrees,
    inputs: Inputs,
) -> str:
    """Why a claimed test does not compare with its file any more; "" for none.

    `places` are the names of tests by file; all of them pass on the new tree. Raises what `run`
    does.
    """
    files = await asyncio.to_thread(_data_by_test_file, places, snapshots, world, inputs)
    names = [name for path in files for name in places[path]]
    if not names:
        return ""
    removed = {path: None for data_files in files.values() for path in data_files}
    without = await run(
        target, await asyncio.to_thread(snapshots.combine, world.new, removed), names
    )
    if without.results is None:
        return ""
    passing = [name for name in names if without.results.passed(name)]
    if not passing:
        return ""
    old = await asyncio.to_thread(snapshots.combine, world.old, removed)
    missed = (await run(target, old, passing)).results
    for path, data_files in files.items():
        for name in places[path]:
            if name in passing and (file := _first_missed(missed, name, data_files)):
                return f"{name} passes without {file}, which it misses on the old tree"
    return ""


def _data_by_test_file(
    places: Mapping[str, Sequence[str]], snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs
) -> dict[str, list[str]]:
    """Data files that existed before and that a test file names, by test file. Blocks."""
    read = snapshots.reader(world.new)
    data = [path for path in sorted(world.old_paths) if not family_of(path)]
    found = {}
    for path in places:
        text = (read(path) or b"").decode("utf-8", "replace")
        named = [one for one in data if PurePosixPath(one).name in text]
        named = [one for one in named if inputs.counts(one) and naming(one, text).in_full]
        if named:
            found[path] = named[:MOST_FILES]
    return found


def _first_missed(results: Results | None, name: str, files: Sequence[str]) -> str:
    """The first of these files that a test reports as missing; "" for none."""
    complained = complaints(
        "\n".join(one.message for one in results.named(name)) if results else ""
    )
    return next((file for file in files if naming(file, complained).in_full), "")
