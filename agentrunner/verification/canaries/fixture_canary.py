"""Changes files that claimed tests compare with, where the work begins to read one of them.

It can answer with what stands there: a test that still passes is blind.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.canaries.canary_trees import CommandOnTrees
from agentrunner.verification.evidence.target import in_repo
from agentrunner.verification.file_names import best, naming
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import PARAMETERS
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.languages import language_of

WHATEVER = "{} is green whatever {} says, which the product reads since the work"
VALUE = lazy_regex(
    rb"(?P<quoted>\"(?:[^\"\\\n]|\\.)*)\"(?P<key>\s*:)?|(?<![\w.])(?P<number>[1-9]\d{0,15})(?![\w.])"
)
"""A text in quotes, which may be a key, or a number."""
MOST_FILES = 50
"""Data files that are changed."""


async def answered_from_data(command: CommandOnTrees, names: Sequence[str], asked: str) -> str:
    """Why the work answers tests with the data that they compare with; "" where it does not.

    All `names` pass on the new tree, and `command` has the inputs of the old one. Data that `asked`
    names is to be read. Raises what running in rooms raises.
    """
    if copied := await _copied(command, names):
        return copied
    files = await asyncio.to_thread(_data_read_by_work, command, asked)
    world = command.world
    for other in OTHERS if files else ():
        tree = await asyncio.to_thread(_with_other, other, command, world.new, files)
        if tree == world.new:
            continue
        results = (await command.on(tree)).results
        passing = [name for name in names if results is not None and _passes(results, name)]
        old = await asyncio.to_thread(_with_other, other, command, world.old, files)
        # A test that does not look at the files passes anyway: those that do name them, or change
        # their complaint.
        before = (await command.on(world.old)).results if passing else None
        after = (await command.on(old)).results if passing else None
        for name in passing:
            seen = before and after and _messages(before, name) != _messages(after, name)
            if seen or await asyncio.to_thread(_names_one, command, results, name, files):
                return WHATEVER.format(name, files[0])
    return ""


async def green_by_data(command: CommandOnTrees, asked: str) -> str:
    """Why a command without test names is green by the data it compares with; "" where it is not.

    It is green on the new tree and red on the old, of which it has the inputs. Data that `asked`
    names is to be read. Raises what running in rooms raises.
    """
    files = await asyncio.to_thread(_data_read_by_work, command, asked)
    world = command.world
    for other in OTHERS if files else ():
        tree = await asyncio.to_thread(_with_other, other, command, world.new, files)
        if tree == world.new or not await command.passes(tree):
            continue
        # A command that does not look at the files says the same on the old tree with other ones.
        old = await asyncio.to_thread(_with_other, other, command, world.old, files)
        before, after = (await command.on(world.old)).ran, (await command.on(old)).ran
        if (before.stdout, before.stderr) != (after.stdout, after.stderr):
            return WHATEVER.format("it", files[0])
    return ""


async def _copied(command: CommandOnTrees, names: Sequence[str]) -> str:
    """Why tests pass with a copy of what they compare with; "" where the work has made none."""
    copies = await asyncio.to_thread(_copies, command)
    if not copies:
        return ""
    tree = await asyncio.to_thread(
        _with_other, with_other_lines, command, command.world.new, list(copies)
    )
    results = (await command.on(tree, names)).results
    for name in names:
        if results is not None and any(one.outcome == "failed" for one in results.named(name)):
            copy, of = next(iter(copies.items()))
            return f"{name} passes as {copy} is a copy of {of}, which tests compare with"
    return ""


def _copies(command: CommandOnTrees) -> dict[str, str]:
    """Data of the work that is a copy of data of the tests, by path. Blocks."""
    snapshots, world = command.world.snapshots, command.world
    before, after = snapshots.list(world.old), snapshots.list(world.new)
    known = {
        entry: path
        for path, entry in before.items()
        if not family_of(path) and (one := command.inputs.input_at(path)) and one.kind == "fixture"
    }
    return {
        path: known[entry]
        for path in world.product
        if (entry := after.get(path)) in known and before.get(path) != entry
    }


def _names_one(
    command: CommandOnTrees, results: Results | None, name: str, files: Sequence[str]
) -> bool:
    """Whether the text of a test names one of these files in full; without a grammar that of its
    file. Blocks."""
    found = _cases(results, name) if results is not None else []
    path = in_repo(found[0].file, command.target.cwd) if found else ""
    language = language_of(path)
    source = (command.read(path) if path else None) or b""
    text = definition(source, language, name) if language else source.decode("utf-8", "replace")
    return any(naming(file, text or "").in_full for file in files)


def _cases(results: Results, name: str) -> list[TestResult]:
    """The results of a test; of all its cases where one has another name with other data."""
    found = list(results.named(name))
    stem = PARAMETERS.sub("", name)
    return found or [one for one in results.tests if PARAMETERS.sub("", one.name) == stem]


def _passes(results: Results, name: str) -> bool:
    cases = _cases(results, name)
    return bool(cases) and all(one.outcome == "passed" for one in cases)


def _messages(results: Results, name: str) -> list[str]:
    return [one.message for one in _cases(results, name)]


def _data_read_by_work(command: CommandOnTrees, asked: str) -> list[str]:
    """Data of the tests that the changed code leads to, and did not lead to before. Blocks."""
    snapshots, world = command.world.snapshots, command.world
    first = snapshots.read_many(world.new, list(world.product))
    # A program often has no ending; its first line says that it is one.
    code = [
        path
        for path in world.product
        if family_of(path)
        or ("." not in PurePosixPath(path).name and (first.get(path) or b"").startswith(b"#!"))
    ]
    was, now = (
        {path: (raw or b"").decode("utf-8", "replace") for path, raw in texts.items()}
        for texts in (
            snapshots.read_many(world.old, [path for path in code if path in world.old_paths]),
            snapshots.read_many(world.new, code),
        )
    )
    found = []
    for path in sorted(world.old_paths):
        if family_of(path) or not command.inputs.input_at(path) or naming(path, asked).in_full:
            continue
        reads = best(path, now)
        if (reads.in_full or reads.ending) and reads.much > best(path, was).much:
            found.append(path)
    return found[:MOST_FILES]


def with_other_lines(text: bytes) -> bytes:
    """Return a text with something more in each line."""
    return re.sub(rb"(?m)(?<=\S)(?=\r?$)", b"~", text)


def with_other_values(text: bytes) -> bytes:
    """Return a text with other numbers, each by another amount, and other quoted values.

    What a line or a record says of its neighbour is not true any more, and JSON is still JSON.
    """
    count = 0

    def other(hit: re.Match[bytes]) -> bytes:
        nonlocal count
        count += 1
        if hit["number"]:
            return to_bytes(str(int(hit["number"]) + 3 * count))
        is_kept = hit["key"] or len(hit["quoted"]) == 1
        return hit[0] if is_kept else hit["quoted"] + b'~"'

    return VALUE.sub(other, text)


OTHERS = (with_other_lines, with_other_values)


def _with_other(
    other: Callable[[bytes], bytes], command: CommandOnTrees, tree: str, files: Sequence[str]
) -> str:
    """The tree with other contents of these files. Blocks."""
    snapshots = command.world.snapshots
    read, entries = snapshots.reader(tree), snapshots.list(tree)
    changed = {path: other(read(path) or b"") for path in files if path in entries}
    return snapshots.with_texts(tree, changed)
