"""What a check looked at and does not find any more: put back where it was, as it is now.

A search that finds nothing is green also where it has nothing to search: a folder under another
name, a file that is a link now. What the work made of a file has to satisfy it in the old place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from difflib import SequenceMatcher

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import LINK
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.target import Target

ALIKE = 0.6
"""Of two texts that are one file before and after, at least."""
MOST = 100
"""Files that are gone, and new ones that they are compared with."""
MOST_BYTES = 200_000


async def red_where_it_was(exam: Examination, target: Target, wanted: Collection[str]) -> list[str]:
    """Files that a command no longer looks at, and that are red for it where they were.

    `wanted` are paths that may be gone. [] where it is green there as well. Raises what runs in
    rooms raise.
    """
    back = await asyncio.to_thread(_as_they_are_now, exam, wanted)
    if not back:
        return []
    snapshots, new = exam.verifier.snapshots, exam.world.new
    tree = await asyncio.to_thread(snapshots.combine, new, back)
    if (await exam.run(target, tree)).passed:
        return []
    nothing = ("100644", await asyncio.to_thread(snapshots.write_blob, b""))
    emptied = await asyncio.to_thread(snapshots.combine, new, dict.fromkeys(back, nothing))
    about_content = (await exam.run(target, emptied)).passed  # else it wants no file there at all
    return sorted(back) if about_content else []


def _as_they_are_now(exam: Examination, wanted: Collection[str]) -> dict[str, Entry | None]:
    """By path before the run: what has become of its file elsewhere. Blocks."""
    snapshots, world = exam.verifier.snapshots, exam.world
    before, after = snapshots.list(world.old), snapshots.list(world.new)
    found: dict[str, Entry | None] = {}
    for path, (mode, _) in before.items():
        if path in after and after[path][0] == LINK != mode:
            place = snapshots.leads_to(world.new, path)
            if place in after:
                found[path] = after[place]
    gone = [path for path in sorted(exam.total.deleted) if path not in wanted][:MOST]
    come = [path for path in sorted(exam.total.added) if after[path][0] != LINK][:MOST]
    texts = snapshots.read_many(world.new, come)
    for path, raw in snapshots.read_many(world.old, gone).items():
        if new := _successor(path, raw, texts):
            found[path] = after[new]
    return found


def _successor(path: str, before: bytes, texts: dict[str, bytes]) -> str:
    """The new file that a gone one has become; "" for none."""
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
    return best if best and likeness[best] >= ALIKE else ""
