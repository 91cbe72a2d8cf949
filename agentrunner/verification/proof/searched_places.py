"""Puts what a check looked at and no longer finds back in its old place, as it is now.

A search that finds nothing is green also where it has nothing to search: a folder has another name,
or a file is a link now. What the work made of a file has to satisfy the check in the old place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from difflib import SequenceMatcher

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import LINK
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.proof.examination import Examination

LEAST_LIKENESS = 0.6
"""The least likeness of two texts that are one file before and after."""
MOST_FILES = 100
"""Deleted files, and added ones that they are compared with."""
MOST_BYTES = 200_000


async def red_where_it_was(exam: Examination, target: Target, wanted: Collection[str]) -> list[str]:
    """Files that a command no longer looks at, where their new content is red in the old place.

    `wanted` are paths that may be gone. [] where the command is green there as well. Raises what
    running in rooms raises.
    """
    back = await asyncio.to_thread(_as_they_are_now, exam, wanted)
    if not back:
        return []
    snapshots, new = exam.world.snapshots, exam.world.new
    tree = await asyncio.to_thread(snapshots.combine, new, back)
    if (await exam.run(target, tree)).passed:
        return []
    empty_file = ("100644", await asyncio.to_thread(snapshots.write_blob, b""))
    emptied = await asyncio.to_thread(snapshots.combine, new, dict.fromkeys(back, empty_file))
    about_content = (await exam.run(target, emptied)).passed  # else it wants no file there at all
    return sorted(back) if about_content else []


def _as_they_are_now(exam: Examination, wanted: Collection[str]) -> dict[str, Entry | None]:
    """What became of files elsewhere, by their path before the run. Blocks."""
    snapshots, world = exam.world.snapshots, exam.world
    before, after = snapshots.list(world.old), snapshots.list(world.new)
    found: dict[str, Entry | None] = {}
    for path, (mode, _) in before.items():
        if path in after and after[path][0] == LINK != mode:
            place = snapshots.leads_to(world.new, path)
            if place in after:
                found[path] = after[place]
    deleted = [path for path in sorted(exam.total.deleted) if path not in wanted][:MOST_FILES]
    added = [path for path in sorted(exam.total.added) if after[path][0] != LINK][:MOST_FILES]
    texts = snapshots.read_many(world.new, added)
    for path, raw in snapshots.read_many(world.old, deleted).items():
        if new := _successor(path, raw, texts):
            found[path] = after[new]
    return found


def _successor(path: str, before: bytes, texts: dict[str, bytes]) -> str:
    """The added file that a deleted one has become; "" for none."""
    name = path.rpartition("/")[2]
    if len(before) > MOST_BYTES:
        return ""
    likeness = {
        new: SequenceMatcher(None, before.splitlines(), text.splitlines()).ratio()
        + (new.rpartition("/")[2] == name)
        for new, text in texts.items()
        if len(text) <= MOST_BYTES
    }
    best = max(likeness, key=lambda new: likeness[new], default="")
    return best if best and likeness[best] >= LEAST_LIKENESS else ""
