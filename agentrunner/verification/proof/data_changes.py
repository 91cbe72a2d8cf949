"""Whether a part of the changes in expected data alone turns the old code green.

Expected data is data that the PRD permits to change, and code that the command compares as a text.
A command compares code if it turns red with one more comment, and with one more blank, which it
could not notice by running the code. Code that only tests use, where the task names other code as
the work, is treated in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.file_names import means
from agentrunner.verification.inputs.references import (
    C_INCLUDE,
    JS_IMPORT,
    PHP_REQUIRE,
    RUBY_REQUIRE,
    family_of,
)
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.world import SnapshotTrees

OWN_DATA = "what it expects is data that the task lets the worker change, and that it needs so"
BY_DATA = "was changed so that the old code passes by that alone"
IMPORTS = (C_INCLUDE, JS_IMPORT, PHP_REQUIRE, RUBY_REQUIRE)
"""Ways to name a file in order to run it."""
COMMENTS = {
    **dict.fromkeys(("python", "ruby", "perl", "shell"), "#"),
    **dict.fromkeys(("javascript", "c", "php", "go", "rust", "jvm", "dotnet"), "//"),
}
NO_COMMENT = lazy_regex(rb"(?m)\?>|^__(?:END|DATA)__$|^[^\S\n]*<")
"""Text in which an added last line would not be a comment."""
FIRST_LINE = lazy_regex(rb"(?m)^(?!#!)[^\n]*[^\s\\][^\S\n]*$")
MOST_CODE = 8
MOST_TESTS = 2_000


async def turned_by_data(
    exam: Examination, target: Target, names: Sequence[str] = ()
) -> tuple[str, Collection[str]]:
    """The path of such data, and those of `names` that it turns green; ("", ()) for none.

    Without names the command is asked as a whole. Raises what running in rooms raises.
    """

    world, differential = exam.world, exam.differential

    async def turned(tree: str) -> set[str]:
        ran = await exam.run(target, tree, names)
        if names and ran.results is not None:
            return {name for name in names if ran.results.passed(name)}
        return set(names or [target.id]) if ran.passed else set()

    if beside := await asyncio.to_thread(differential.changed_beside, world, target):
        tree = await asyncio.to_thread(differential.with_paths, world.old, world.new, beside)
        if turned_by_helpers := await turned(tree):
            return ", ".join(beside), turned_by_helpers
    texts = await asyncio.to_thread(differential.single_changes_of_data, world, target)
    named = await asyncio.to_thread(_compared_code, exam, target)

    async def are_compared(paths: Sequence[str]) -> bool:
        for change in (_with_comment, _with_space):
            tree = await asyncio.to_thread(_with_change, world, paths, change)
            if len(await turned(tree)) == max(len(names), 1):
                return False
        return True

    if named and await are_compared(named):
        code = named if len(named) == 1 else [one for one in named if await are_compared([one])]
        tree = await asyncio.to_thread(differential.with_paths, world.old, world.new, code)
        if turned_by_code := await turned(tree):
            return ", ".join(code), turned_by_code
        texts += await asyncio.to_thread(differential.single_changes, world, code)
    for path, old_texts in texts:
        for text in old_texts:
            tree = await asyncio.to_thread(differential.with_text, world.old, path, text)
            if turned_by_text := await turned(tree):
                return path, turned_by_text
    return "", ()


async def find_tests_of_new_data(
    exam: Examination, target: Target, names: Sequence[str] = ()
) -> Collection[str]:
    """Those of `names` that fail with such data as it was; without names the command's id.

    What they expect is then the worker's word. Raises what running in rooms raises.
    """
    world, differential = exam.world, exam.differential
    paths = await asyncio.to_thread(differential.rewritten_data, world, target)
    if not paths:
        return ()
    tree = await asyncio.to_thread(differential.with_paths, world.new, world.old, paths)
    ran = await exam.run(target, tree, names)
    if ran.results is None or not names:
        return () if ran.passed else (names or [target.id])
    return [name for name in names if not ran.results.passed(name)]


def _compared_code(exam: Examination, target: Target) -> list[str]:
    """Changed code whose path an input of the proof contains, other than to run it. Blocks."""
    world = exam.world
    paths = [path for path in world.product if path in world.old_paths and family_of(path)]
    paths = [path for path in paths if family_of(path) in COMMENTS]
    inputs = exam.differential.inputs(world.old, [target])
    tests = [path for path in sorted(world.old_paths) if paths and inputs.input_at(path)]
    raw = world.snapshots.read_many(world.old, tests[:MOST_TESTS])
    texts = [(one or b"").decode("utf-8", "replace") for one in raw.values()]
    for pattern in IMPORTS:
        texts = [pattern.sub("", text) for text in texts]
    deciding = "\n".join(texts)
    found = [path for path in paths if means(path, deciding)]
    return [path for path in found if not NO_COMMENT.search(world.now(path) or b"<")][:MOST_CODE]


def _with_change(
    world: SnapshotTrees, paths: Sequence[str], change: Callable[[str, bytes], bytes]
) -> str:
    """The tree that is handed over, with a change in these files that does not alter behaviour."""
    made = {path: change(path, world.now(path) or b"") for path in paths}
    return world.snapshots.with_texts(world.new, made)


def _with_comment(path: str, source: bytes) -> bytes:
    gap = b"\n\n\n" if family_of(path) == "python" else b"\n\n"
    return source.rstrip(b"\n") + gap + to_bytes(f"{COMMENTS[family_of(path)]} made here\n")


def _with_space(_: str, source: bytes) -> bytes:
    """The source with a blank behind its first line of code: the number of lines stays."""
    return FIRST_LINE.sub(rb"\g<0> ", source, count=1)
