"""A command line with a repository of its own, and an engine that only records what it is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentrunner import cli
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.run_folder import RunFolder
from tests.unit.commands.fake_engine import FakeEngine


@dataclass
class Shell:
    """A command line with a repository of its own."""

    repo: Path
    engine: FakeEngine
    capture: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str) -> int:
        code = cli.call(cli.app, list(arguments), "agentrunner")
        self.out, self.err = self.capture.readouterr()
        return code

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def add_run(self, run_id: str, **fields: Any) -> None:
        state = self.repo.parent / "state"
        RunFolder.create(state, run_id)
        known: Mapping[str, Any] = {
            "task_id": run_id[:-5], "title": "T", "repo": str(self.repo), "state": "FAILED",
            "started_at": f"2026-11-21T05:00:0{len(list((state / 'runs').iterdir()))}Z",
        }  # fmt: skip
        RunIndex(state).record(RunRow(run_id=run_id, **{**known, **fields}))
