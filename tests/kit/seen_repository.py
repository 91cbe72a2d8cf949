"""A repository as planners see it, with a secret that nobody may be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentrunner.discovery.seeing.diffs import Diff, diff_of
from agentrunner.discovery.seeing.looks import Looker
from agentrunner.git.snapshots import Snapshots
from agentrunner.protocol import Look
from tests.kit.files import write
from tests.kit.repository import uncommitted

KEY = "sk-secret-of-the-host"


def redact(text: str) -> str:
    return text.replace(KEY, "[KEY redacted]")


class SeenRepository:
    """A repository before and after a worker."""

    def __init__(self, tmp_path: Path) -> None:
        self.repo = uncommitted(tmp_path / "repo", {})
        self.snapshots = Snapshots(tmp_path / "store", self.repo)
        self.before = ""

    def write(self, files: dict[str, str | bytes]) -> None:
        write(self.repo, files)

    def begin(self, files: dict[str, str | bytes]) -> None:
        self.write(files)
        self.before = self.snapshots.take().tree

    def diff(self, **how: Any) -> Diff:
        return diff_of(self.snapshots, self.before, self.snapshots.take().tree, redact, **how)

    def looker(self, **outputs: str) -> Looker:
        now = self.snapshots.take().tree
        return Looker(self.snapshots, self.before, now, redact, outputs.get)

    def look(self, **form: Any) -> str:
        return self.looker().answer([Look.model_validate(form)])
