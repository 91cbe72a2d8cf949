"""Programs that run through a table: is each row of it asked?

A product can empty a table, or read the rest of it away, as soon as it is called. Then rows that
stand behind decide nothing. Where another value in a row is not seen, the row is put first: where
it makes the command red there, it is not asked where it stands.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.inputs.inline_programs import for_people
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.programs import program_language
from agentrunner.verification.syntax.rows import Table, last_first, table_of_lines, tables_in
from agentrunner.verification.world import SnapshotTrees

Passes = Callable[[str], Awaitable[bool]]
MOST_TABLES = 4
MOST_ROWS = 10
"""Rows of one table that are asked, the latest first."""
ROWS_SEC, TEST_SEC = 90, 20
"""For all tables of a program, and for those of a file of tests with names."""


async def row_not_asked(
    passes: Passes, snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs, shell: str
) -> str:
    """Why a program cannot say no in a row of its table; "" where none was found.

    Raises what `passes` does.
    """
    found = await asyncio.to_thread(_tables, snapshots, world, inputs, shell)
    return await _first_not_asked(passes, snapshots, world, found, ROWS_SEC)


async def row_of_test_not_asked(
    passes: Passes, snapshots: Snapshots, world: SnapshotTrees, path: str
) -> str:
    """The same for tests in a file, which `passes` asks alone, and the tables they loop over."""
    language = language_of(path)
    source = await asyncio.to_thread(lambda: snapshots.reader(world.new)(path) or b"")
    found = [(path, table) for table in tables_in(source, language)] if language else []
    return await _first_not_asked(passes, snapshots, world, found, TEST_SEC)


async def _first_not_asked(
    passes: Passes,
    snapshots: Snapshots,
    world: SnapshotTrees,
    found: Sequence[tuple[str, Table]],
    seconds: float,
) -> str:
    deadline = monotonic() + seconds

    async def green(path: str, edits: Sequence[Edit]) -> bool:
        return await passes(await asyncio.to_thread(_tree, snapshots, world, path, edits))

    for path, table in found[:MOST_TABLES]:
        if await green(path, [row.edit for row in table.rows]):
            continue  # what was changed is not what it expects
        for row in last_first(table.rows, MOST_ROWS):
            if monotonic() > deadline:
                return ""
            if not await green(path, [row.edit]) or row is table.rows[0]:
                continue
            if not await green(path, table.first(row, changed=False)) or not await green(
                path, table.first(row, changed=True)
            ):
                where = for_people(path)
                return f"it never asks {row.text.strip()[:60]!r} where that stands in {where}"
    return ""


def _tables(
    snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs, shell: str
) -> list[tuple[str, Table]]:
    read, entries = snapshots.reader(world.new), snapshots.list(world.new)
    found: list[tuple[str, Table]] = []
    reads_lines = bool(READS.search(shell))
    for one in inputs.tests:
        if one.path not in entries or one.region:
            continue
        source = read(one.path) or b""
        language = program_language(one.path, source)
        alone = one.kind == "fixture"
        if language:
            found += [(one.path, table) for table in tables_in(source, language, alone=alone)]
        text = source.decode("utf-8", "replace") if language == "sh" else ""
        reads_lines = reads_lines or bool(READS.search(text))
    for one in inputs.tests if reads_lines else ():
        if one.path in entries and one.kind == "fixture" and language_of(one.path) is None:
            table = table_of_lines(read(one.path) or b"")
            found += [(one.path, table)] if table else []
    return found


READS = re.compile(r"\bread\s+-?\w")
"""How a shell runs through lines."""


def _tree(snapshots: Snapshots, world: SnapshotTrees, path: str, edits: Sequence[Edit]) -> str:
    source = snapshots.reader(world.new)(path) or b""
    mode = snapshots.list(world.new)[path][0]
    changed: dict[str, Entry | None] = {path: (mode, snapshots.write_blob(applied(source, edits)))}
    return snapshots.combine(world.new, changed)
