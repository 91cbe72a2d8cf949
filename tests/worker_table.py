"""What each worker CLI really does here, as a table.

    python -m tests.worker_table [KIND …] [--write]

Runs every CLI that is installed (scripts/install-codex.sh, install-claude.sh, install-workers.sh)
in bubblewrap, through the gateway, against a scripted model: twice as it should go, and once for
each thing that can go wrong (tests/kit/cells.py). Takes minutes. `--write` puts the table into
docs/reference/workers.md; without it, it is only printed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.registry import WORKERS
from agentrunner.workers.base import Worker
from agentrunner.workers.member import make_worker
from tests.kit.cells import CELLS, cells_of
from tests.kit.portrait import Portrait, portrait
from tests.kit.trials import Bench, installed

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "workers.md"
BEGIN = "<!-- written by python -m tests.worker_table --write -->"
END = "<!-- end of the table -->"
KINDS = tuple(kind for kind in WORKERS if kind not in ("command", "mock"))
AT_ONCE = 2
FACTS = ("real run here", "edit seen", "session resumed", "usage", "counted", "exit codes")
"""Rows above those of the faults."""
NOT_RUN = "not run"


@dataclass
class Column:
    """One CLI."""

    kind: str
    cells: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What could not be verified, or was not as expected, in sentences."""


async def column(kind: str, turn: asyncio.Semaphore) -> Column:
    """Run one CLI through everything."""
    worker = make_worker(WorkerSpec(kind=kind))
    program = await asyncio.to_thread(installed, kind)
    if program is None or not worker.wire:
        return _not_run(kind, worker, missing=program is None)
    made = Column(kind)
    probe = make_worker(WorkerSpec(kind=kind, command=[str(program)])).probe()
    made.cells["real run here"] = probe.version or "yes"
    if probe.version != probe.tested:
        told = probe.version or "no version"
        made.notes.append(f"`{kind}` tells {told}; its adapter was built for {probe.tested}.")
    async with turn:
        with tempfile.TemporaryDirectory() as place:
            seen = await portrait(Path(place) / "p", kind, program)
    _paint(made, worker, seen)
    await asyncio.gather(*(_fault(made, kind, program, name, turn) for name in _names(kind)))
    _say(f"{kind}: done")
    return made


def _not_run(kind: str, worker: Worker, *, missing: bool) -> Column:
    why = "it is not installed here" if missing else "its model cannot be another one's"
    note = f"`{kind}` was not run: {why}. It is {worker.verified}."
    return Column(kind, {"real run here": NOT_RUN}, [note])


def _paint(made: Column, worker: Worker, seen: Portrait) -> None:
    made.cells |= {
        "edit seen": _word(seen.edited),
        "session resumed": _word(seen.resumed, none="keeps none"),
        "usage": _word(seen.usage, none="reports none"),
        "counted": _word(seen.counted),
        "exit codes": seen.exit_codes,
    }
    if seen.usage is False:
        made.notes.append(
            f"`{made.kind}`: its own count leaves calls out that the server saw; the gateway's not."
        )
    if (seen.exit_codes == "all") != worker.reports.exit_codes:
        made.notes.append(f"`{made.kind}`: its adapter says otherwise about exit codes.")


async def _fault(
    made: Column, kind: str, program: Path, name: str, turn: asyncio.Semaphore
) -> None:
    cell = next(cell for cell in CELLS if cell.name == name)
    async with turn:
        with tempfile.TemporaryDirectory() as place:
            seen = await Bench(Path(place) / "p", kind, program).run(cell.trial)
    outcome, expected = seen.came.outcome, cell.expected(kind)
    made.cells[name] = f"`{outcome}`"
    _say(f"{kind}: {name}: {outcome}, {seen.supervised.duration_sec:.1f} s")
    if outcome != expected:
        made.cells[name] += " (!)"
        made.notes.append(f"`{kind}`, {name}: `{expected}` was expected. {seen.came.error}")


def _names(kind: str) -> list[str]:
    return [cell.name for cell in cells_of(kind)]


def _word(value: bool | None, none: str = "–") -> str:
    return none if value is None else "yes" if value else "**no**"


def table(columns: Sequence[Column]) -> str:
    """The table and the notes below it, in Markdown."""
    rows = [*FACTS, *(cell.name for cell in CELLS)]
    lines = [
        "| | " + " | ".join(f"`{one.kind}`" for one in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for row in rows:
        values = (one.cells.get(row, "–") for one in columns)
        lines.append(f"| {row} | " + " | ".join(values) + " |")
    notes = [f"* {note}" for one in columns for note in one.notes]
    return "\n".join([*lines, "", *notes]).rstrip() + "\n"


def write(text: str) -> None:
    """Put the table in its place on the page."""
    page = PAGE.read_text("utf-8")
    before, found, rest = page.partition(BEGIN)
    _, ends, after = rest.partition(END)
    if not found or not ends:
        raise SystemExit(f"{PAGE} has no place for the table")
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", "utf-8")


async def columns_of(kinds: Sequence[str]) -> list[Column]:
    """All of them, a few runs at a time."""
    turn = asyncio.Semaphore(AT_ONCE)
    return await asyncio.gather(*(column(kind, turn) for kind in kinds))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.worker_table", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", choices=[[], *KINDS])
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    asked = parser.parse_args()
    text = table(asyncio.run(columns_of(asked.kinds or KINDS)))
    print(text, end="")  # noqa: T201
    if asked.write:
        write(text)


if __name__ == "__main__":
    main()
