"""The real Codex and Claude Code through everything that can go wrong, as whole worker runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.member import make_worker
from tests.kit.cells import Cell, cells_of
from tests.kit.portrait import portrait
from tests.kit.trials import Bench, program_of

KINDS = ("codex-cli", "claude-code")
TABLE = [
    pytest.param(kind, cell, id=f"{kind}: {cell.name}") for kind in KINDS for cell in cells_of(kind)
]


@pytest.mark.series(9)
@pytest.mark.parametrize(("kind", "cell"), TABLE)
async def test_a_run_comes_to_what_it_was(kind: str, cell: Cell, tmp_path: Path) -> None:
    program = program_of(kind)
    began = datetime.now(UTC)
    seen = await Bench(tmp_path, kind, program).run(cell.trial)
    assert seen.came.outcome == cell.expected(kind), f"{seen.came}\n{seen.said}"
    counted = (seen.used.total.input_tokens, seen.used.total.output_tokens)
    assert counted == (seen.told.input_tokens, seen.told.output_tokens)
    assert (seen.came.error == "") == (seen.came.outcome == "completed")
    assert seen.supervised.duration_sec < 30 and not seen.supervised.leftovers
    if cell.name == "429":
        reset = datetime.fromisoformat(seen.came.reset_at)
        assert timedelta(minutes=59) < reset - began < timedelta(minutes=62)
    if cell.name == "interrupt":
        assert seen.changed == ("started",)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cli_shows_what_its_adapter_promises(kind: str, tmp_path: Path) -> None:
    seen = await portrait(tmp_path, kind, program_of(kind))
    promised = make_worker(WorkerSpec(kind=kind)).reports.exit_codes
    assert (seen.edited, seen.resumed, seen.usage, seen.counted) == (True,) * 4, seen
    assert (seen.exit_codes == "all") == promised
