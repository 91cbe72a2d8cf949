"""The table of what each worker CLI does: its form, and that the page shows all of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests import worker_table
from tests.kit.cells import CELLS
from tests.worker_table import BEGIN, END, FACTS, KINDS, PAGE, Column, column, table, write


def test_the_page_has_every_cli_and_everything_that_can_go_wrong() -> None:
    text = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].strip()
    head, _, *lines = [line for line in text.splitlines() if line.startswith("|")]
    assert [word.strip(" `") for word in head.split("|")[2:-1]] == list(KINDS)
    names = [line.split("|")[1].strip() for line in lines]
    assert names == [*FACTS, *(cell.name for cell in CELLS)]


def test_what_was_not_run_is_said() -> None:
    text = table(
        [Column("codex-cli", {"ok": "`completed`"}), Column("x", {}, ["`x` was not run."])]
    )
    assert "| ok | `completed` | – |" in text
    assert text.endswith("* `x` was not run.\n")


async def test_a_cli_whose_model_is_its_vendors_is_not_run() -> None:
    made = await column("cursor-cli", asyncio.Semaphore(1))
    assert made.cells == {"real run here": "not run"}
    assert "documentation" in made.notes[0]


def test_only_the_table_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", "utf-8")
    monkeypatch.setattr(worker_table, "PAGE", page)
    write("new\n")
    write("new\n")
    assert page.read_text("utf-8") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    page.write_text("no place", "utf-8")
    with pytest.raises(SystemExit, match="no place"):
        write("new\n")
