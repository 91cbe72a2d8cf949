"""Whether tests ask what an option is for: one that passes without it as well does not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection

from agentrunner.git.snapshots import Snapshots
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.syntax.words import options
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

SAME = "every test that gives `{}`, which the requirements name, also passes without it"
MOST = 3
"""So many options are tried."""


async def not_asked_for(
    run: Run,
    target: Target,
    snapshots: Snapshots,
    world: SnapshotTrees,
    places: dict[str, list[str]],
    asked: str,
    now: Results,
) -> str:
    """Why the tests at `places`, by path, do not ask what a new option is for; else "".

    Any test that passes `now` may ask it. Raises what running in rooms raises.
    """
    for name, text in list(options(asked).items())[:MOST]:
        tree = await asyncio.to_thread(_tree_without, snapshots, world, places, name)
        if tree is None:
            continue
        ran = await run(target, tree, ())
        if ran.results is not None and not any(now.passed(one.name) for one in ran.results.red):
            return SAME.format(text)
    return ""


def _tree_without(
    snapshots: Snapshots, world: SnapshotTrees, places: dict[str, list[str]], name: str
) -> str | None:
    """The new tree whose tests do not give an option that is new; None where none gives one."""
    given = re.compile(to_bytes(rf"--{re.escape(name)}(?![\w-])"))
    read, read_old = snapshots.reader(world.new), snapshots.reader(world.old)
    entries = snapshots.list(world.new)
    if not _is_new(given, read, read_old, world.product):
        return None
    changed: dict[str, bytes] = {}
    for path in places:
        text = read(path)
        if path not in entries or text is None or not given.search(text):
            continue
        changed[path] = without_option(text, name)
    return snapshots.with_texts(world.new, changed) if changed else None


def _is_new(
    given: re.Pattern[bytes], read: ReadFile, read_old: ReadFile, paths: Collection[str]
) -> bool:
    return any(
        given.search(read(path) or b"") and not given.search(read_old(path) or b"")
        for path in paths
    )


def without_option(source: bytes, name: str) -> bytes:
    """A source that does not give an option, with its value: not as an argument, nor in a line."""
    option = rf"--{re.escape(name)}(?:=[^\s\"'`,)\]]*)?"
    alone = rf"[bfr]?(?P<q>[\"'`]){option}(?P=q)"
    for pattern in (
        rf",\s*{alone}",
        rf"{alone}\s*,\s*",
        rf"(?<=[\[(])\s*{alone}\s*(?=[\])])",
        rf"\s{option}(?![\w=-])",
    ):
        source = re.sub(to_bytes(pattern), b"", source)
    return source
