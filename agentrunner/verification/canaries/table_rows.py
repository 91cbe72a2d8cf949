"""Whether each row of a table that a program loops over is really tested.

A product can empty a table, or consume the rest of it, as soon as it is called. Then later rows
decide nothing. Where another value in a row is not noticed, the row is put first. If it makes the
command red there, it is not tested in its own place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic

from agentrunner.git.snapshots import Snapshots
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.inline_programs import for_people
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.programs import program_language
from agentrunner.verification.syntax.tables import Table, table_of_lines, tables_in
from agentrunner.verification.trees import with_edits
from agentrunner.verification.world import SnapshotTrees

Passes = Callable[[str], Awaitable[bool]]
MOST_TABLES = 4
MOST_ROWS = 10
"""Rows of one table that are tried, the last ones first."""
ROWS_SEC, TEST_SEC = 90, 20
"""Seconds for all tables of a program, and for those of one file of named tests."""


async def row_not_asked(
    passes: Passes, snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs, shell: str
) -> str:
    """Why a program cannot fail in a row of its table; "" where no such row was found.

    Raises what `passes` does.
    """
    found = await asyncio.to_thread(_tables_of_programs, snapshots, world, inputs, shell)
    return await _first_not_asked(passes, snapshots, world, found, ROWS_SEC)


async def row_of_test_not_asked(
    passes: Passes, snapshots: Snapshots, world: SnapshotTrees, path: str
) -> str:
    """The same for the tests in one file, which `passes` runs, and the tables they loop over."""
    language = language_of(path)
    source = await asyncio.to_thread(lambda: snapshots.reader(world.new)(path) or b"")
    found = [(path, table) for table in tables_in(source, language)] if language else []
    return await _first_not_asked(passes, snapshots, world, found, TEST_SEC)


async def case_not_asked(
    passes: Passes, snapshots: Snapshots, world: SnapshotTrees, path: str
) -> str:
    """Why tests of one file that report each row of a table by itself do not ask a row; else "".

    Where another value in all rows is noticed, it has to be in each.
    """
    language = language_of(path)
    source = await asyncio.to_thread(lambda: snapshots.reader(world.new)(path) or b"")
    deadline = monotonic() + TEST_SEC

    async def green(edits: Sequence[Edit]) -> bool:
        tree = await asyncio.to_thread(with_edits, snapshots, world.new, {path: edits})
        return await passes(tree)

    for table in tables_in(source, language)[:MOST_TABLES] if language else ():
        if await green([row.edit for row in table.rows]):
            continue  # what was changed is not what it expects
        for row in reversed(table.rows[-MOST_ROWS:]):
            if monotonic() > deadline:
                return ""
            if await green([row.edit]):
                shown = row.text.strip()[:60]
                return f"a case passes with another value in {shown!r} in {for_people(path)}"
    return ""


async def _first_not_asked(
    passes: Passes,
    snapshots: Snapshots,
    world: SnapshotTrees,
    tables: Sequence[tuple[str, Table]],
    seconds: float,
) -> str:
    deadline = monotonic() + seconds

    async def green(path: str, edits: Sequence[Edit]) -> bool:
        tree = await asyncio.to_thread(with_edits, snapshots, world.new, {path: edits})
        return await passes(tree)

    for path, table in tables[:MOST_TABLES]:
        if await green(path, [row.edit for row in table.rows]):
            continue  # what was changed is not what it expects
        for row in reversed(table.rows[-MOST_ROWS:]):
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


def _tables_of_programs(
    snapshots: Snapshots, world: SnapshotTrees, inputs: Inputs, shell: str
) -> list[tuple[str, Table]]:
    read, entries = snapshots.reader(world.new), snapshots.list(world.new)
    found: list[tuple[str, Table]] = []
    reads_lines = bool(READS.search(shell))
    for input_ in inputs.tests:
        if input_.path not in entries or input_.region:
            continue
        source = read(input_.path) or b""
        language = program_language(input_.path, source)
        alone = input_.kind == "fixture"
        if language:
            found += [(input_.path, table) for table in tables_in(source, language, alone=alone)]
        text = source.decode("utf-8", "replace") if language == "sh" else ""
        reads_lines = reads_lines or bool(READS.search(text))
    for input_ in inputs.tests if reads_lines else ():
        if input_.path in entries and input_.kind == "fixture" and language_of(input_.path) is None:
            table = table_of_lines(read(input_.path) or b"")
            found += [(input_.path, table)] if table else []
    return found


READS = lazy_regex(r"\bread\s+-?\w")
"""How a shell script loops over lines."""
