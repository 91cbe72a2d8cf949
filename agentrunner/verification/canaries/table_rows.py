"""Whether each row of a table that a program loops over is really tested.

A product can empty a table, or consume the rest of it, as soon as it is called. Then later rows
decide nothing. Where another value in a row is not noticed, the row is put first. If it makes the
command red there, it is not tested in its own place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from time import monotonic

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.canaries.canary_trees import CommandOnTrees
from agentrunner.verification.inputs.inline_programs import for_people
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import language_of, program_language
from agentrunner.verification.syntax.regions import regions_of_tests
from agentrunner.verification.syntax.tables import Row, Table, table_of_lines, tables_in

Passes = Callable[[str], Awaitable[bool]]
"""Runs a command on a tree; raises what running in rooms raises."""
Tables = Sequence[tuple[str, Table]]
"""Tables, each with its file."""
MOST_TABLES = 4
MOST_ROWS = 10
"""Rows of one table that are tried, the last ones first."""
ROWS_SEC, TEST_SEC = 90, 20
"""Seconds for all tables of a program, and for those of one file of named tests."""


async def row_not_asked(command: CommandOnTrees, passes: Passes) -> str:
    """Why a program cannot fail in a row of its table; "" where no such row was found."""
    found = await asyncio.to_thread(_tables_of_programs, command)
    return await _first_not_asked(_Rows(command, passes), found, ROWS_SEC)


async def row_of_test_not_asked(command: CommandOnTrees, passes: Passes, path: str) -> str:
    """The same for the tests in one file, which `passes` runs, and the tables they loop over."""
    found = await asyncio.to_thread(_tables_of_test, command, path)
    return await _first_not_asked(_Rows(command, passes), found, TEST_SEC)


async def case_not_asked(command: CommandOnTrees, passes: Passes, path: str) -> str:
    """Why tests of one file that report each row of a table by itself do not ask a row; else "".

    Where another value in all rows is noticed, it has to be in each.
    """
    found = await asyncio.to_thread(_tables_of_test, command, path)
    async for _, _, row in _Rows(command, passes).unnoticed(found, TEST_SEC):
        return f"a case passes with another value in {_shown(row)} in {for_people(path)}"
    return ""


class _Rows(Struct, frozen=True):
    """Tries rows with other values."""

    command: CommandOnTrees
    passes: Passes

    async def green(self, path: str, edits: Sequence[Edit]) -> bool:
        """Whether the command passes with edits in a file."""
        return await self.passes(await self.command.edited({path: edits}))

    async def unnoticed(
        self, tables: Tables, seconds: float
    ) -> AsyncIterator[tuple[str, Table, Row]]:
        """The rows in which alone another value is not noticed, though it is in all together."""
        deadline = monotonic() + seconds
        for path, table in tables[:MOST_TABLES]:
            if await self.green(path, [row.edit for row in table.rows]):
                continue  # what was changed is not what it expects
            for row in reversed(table.rows[-MOST_ROWS:]):
                if monotonic() > deadline:
                    return
                if await self.green(path, [row.edit]):
                    yield path, table, row


async def _first_not_asked(rows: _Rows, tables: Tables, seconds: float) -> str:
    async for path, table, row in rows.unnoticed(tables, seconds):
        if row is table.rows[0]:
            continue
        if not await rows.green(path, table.first(row, changed=False)) or not await rows.green(
            path, table.first(row, changed=True)
        ):
            return f"it never asks {_shown(row)} where that stands in {for_people(path)}"
    return ""


def _shown(row: Row) -> str:
    return repr(row.text.strip()[:60])


def _tables_of_test(command: CommandOnTrees, path: str) -> Tables:
    language = language_of(path)
    source = command.read(path) or b""
    tables = tables_in(source, language) if language else []
    regions = regions_of_tests(source, language)
    if regions and all(one.kind in OF_TESTS_ALONE for one in regions):
        # Tests inside of a product file, whose other tables are the product's.
        tables = [
            table for table in tables if any(one.holds(table.rows[0].start) for one in regions)
        ]
    return [(path, table) for table in tables]


def _tables_of_programs(command: CommandOnTrees) -> Tables:
    read, entries = command.read, command.world.snapshots.list(command.world.new)
    found: list[tuple[str, Table]] = []
    reads_lines = bool(READS.search(command.target.shell))
    there = [one for one in command.inputs.deciding if one.path in entries]
    for one in there:
        if one.region:
            continue
        source = read(one.path) or b""
        if language := program_language(one.path, source):
            tables = tables_in(source, language, alone=one.kind == "fixture")
            found += [(one.path, table) for table in tables]
        text = source.decode("utf-8", "replace") if language == "sh" else ""
        reads_lines = reads_lines or bool(READS.search(text))
    for one in there if reads_lines else ():
        if one.kind == "fixture" and language_of(one.path) is None:
            table = table_of_lines(read(one.path) or b"")
            found += [(one.path, table)] if table else []
    return found


OF_TESTS_ALONE = ("doctest", "item", "module")
"""Parts of a product file outside of which its tests have nothing of their own."""
READS = lazy_regex(r"\bread\s+-?\w")
"""How a shell script loops over lines."""
