"""A worker that began counts, also while no log has it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from agentrunner.engine.retention import forget
from agentrunner.engine.unrecorded import has_worked
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import Ledger


@pytest.mark.parametrize("at_work", [True, False])
def test_a_worker_of_which_no_log_knows_has_begun(tmp_path: Path, at_work: bool) -> None:
    run = RunFolder.create(tmp_path, "t-7f3a")
    with closing(Ledger(run).claim("t-7f3a-1")) as claim:
        assert not has_worked(run)  # a claim starts nothing
        (claim.dir / "started.json").write_text("{}", "utf-8")
        if not at_work:
            claim.close()
        assert has_worked(run)
        forget(tmp_path, "t-7f3a")
    assert run.root.is_dir()
