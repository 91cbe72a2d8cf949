"""Expected data that was changed: does a part of its changes alone make the old code green?

Such is data that the PRD lets change, and code that the command compares as a text: it turns red
with one more comment in that, and with one more blank, which nothing that runs the code can tell.
So is code that only tests use, where what was asked for names other code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Sequence

from agentrunner.git.restore import Entry
from agentrunner.verification.differential import Differential
from agentrunner.verification.file_names import means
from agentrunner.verification.inputs.leads import (
    C_INCLUDE,
    JS_IMPORT,
    PHP_REQUIRE,
    RUBY_REQUIRE,
    family_of,
)
from agentrunner.verification.target import Measured, Run, Target
from agentrunner.verification.world import SnapshotTrees

OWN_DATA = "what it expects is data that the task lets the worker change, and that it needs so"
BY_DATA = "was changed so that the old code passes by that alone"
IMPORTS = (C_INCLUDE, JS_IMPORT, PHP_REQUIRE, RUBY_REQUIRE)
"""What names a file to run it."""
COMMENTS = {
    **dict.fromkeys(("python", "ruby", "perl", "shell"), "#"),
    **dict.fromkeys(("javascript", "c", "php", "go", "rust", "jvm", "dotnet"), "//"),
}
NO_COMMENT = re.compile(rb"(?m)\?>|^__(?:END|DATA)__$|^\s*<")
"""Text in which a last line is no comment."""
FIRST_LINE = re.compile(rb"(?m)^(?!#!)[^\n]*[^\s\\][^\S\n]*$")
MOST = 8
MOST_TESTS = 2_000


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

    def turned(ran: Measured) -> set[str]:
        if names and ran.results is not None:
            return {name for name in names if ran.results.passed(name)}
        return set(names or [target.id]) if ran.passed else set()

    if beside := await asyncio.to_thread(differential.changed_beside, world, target):
        tree = await asyncio.to_thread(differential.with_paths, world.old, world.new, beside)
        if by_them := turned(await run(target, tree, names)):
            return ", ".join(beside), by_them
    texts = await asyncio.to_thread(differential.single_changes_of_data, world, target)
    named = await asyncio.to_thread(_code_that_is_named, differential, world, target)

    async def are_compared(paths: Sequence[str]) -> bool:
        for change in (_with_comment, _with_space):
            tree = await asyncio.to_thread(_changed, differential, world, paths, change)
            if len(turned(await run(target, tree, names))) == max(len(names), 1):
                return False
        return True

    if named and await are_compared(named):
        code = named if len(named) == 1 else [one for one in named if await are_compared([one])]
        tree = await asyncio.to_thread(differential.with_paths, world.old, world.new, code)
        if by_all := turned(await run(target, tree, names)):
            return ", ".join(code), by_all
        texts += await asyncio.to_thread(differential.single_changes, world, code)
    for path, several in texts:
        for text in several:
            tree = await asyncio.to_thread(differential.with_text, world.old, path, text)
            if by_one := turned(await run(target, tree, names)):
                return path, by_one
    return "", ()


async def that_need_new_data(
    run: Run,
    differential: Differential,
    target: Target,
    world: SnapshotTrees,
    names: Sequence[str] = (),
) -> Collection[str]:
    """Those of `names` that do not pass with such data as it was; without names the command's id.

    What they expect is the worker's word then. Raises what runs in rooms raise.
    """
    paths = await asyncio.to_thread(differential.rewritten_data, world, target)
    if not paths:
        return ()
    tree = await asyncio.to_thread(differential.with_paths, world.new, world.old, paths)
    ran = await run(target, tree, names)
    if ran.results is None or not names:
        return () if ran.passed else (names or [target.id])
    return [name for name in names if not ran.results.passed(name)]


def _code_that_is_named(
    differential: Differential, world: SnapshotTrees, target: Target
) -> list[str]:
    """Changed code whose path something that decides holds, and not only to run it."""
    paths = [path for path in world.product if path in world.old_paths and family_of(path)]
    paths = [path for path in paths if family_of(path) in COMMENTS]
    inputs = differential.inputs(world.old, [target])
    tests = [path for path in sorted(world.old_paths) if paths and inputs.counts(path)]
    raw = differential.snapshots.read_many(world.old, tests[:MOST_TESTS])
    texts = [(one or b"").decode("utf-8", "replace") for one in raw.values()]
    for pattern in IMPORTS:
        texts = [pattern.sub("", text) for text in texts]
    deciding = "\n".join(texts)
    now = differential.snapshots.reader(world.new)
    found = [path for path in paths if means(path, deciding)]
    return [path for path in found if not NO_COMMENT.search(now(path) or b"<")][:MOST]


def _changed(
    differential: Differential,
    world: SnapshotTrees,
    paths: Sequence[str],
    change: Callable[[str, bytes], bytes],
) -> str:
    """The tree that is handed over with a change in these files that code does not know of."""
    snapshots = differential.snapshots
    read, entries = snapshots.reader(world.new), snapshots.list(world.new)
    made: dict[str, Entry | None] = {
        path: (entries[path][0], snapshots.write_blob(change(path, read(path) or b"")))
        for path in paths
    }
    return snapshots.combine(world.new, made)


def _with_comment(path: str, source: bytes) -> bytes:
    gap = b"\n\n\n" if family_of(path) == "python" else b"\n\n"
    return source.rstrip(b"\n") + gap + f"{COMMENTS[family_of(path)]} made here\n".encode()


def _with_space(_: str, source: bytes) -> bytes:
    """With a blank at the end of its first line of code: nothing that counts lines sees it."""
    return FIRST_LINE.sub(rb"\g<0> ", source, count=1)
