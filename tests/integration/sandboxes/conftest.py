from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Sandbox, SandboxOrder
from agentrunner.sandboxes.choose import make_sandbox
from agentrunner.testing.sandboxes.workbench import git
from tests.kit.bwrap import require_bwrap


def absent(reason: str) -> None:
    """Skip on a person's machine, fail on CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True)
class Place:
    """A repository, a run's folder and a home to build boxes from."""

    root: Path
    repo: Path
    home: Path
    user: Path

    def spec(self, **fields: object) -> SandboxOrder:
        return SandboxOrder(**{"repo": self.repo, "home": self.home, **fields})  # type: ignore[arg-type]

    def box(self, kind: str = "bwrap", **fields: object) -> Sandbox:
        environ = {"PATH": os.environ["PATH"]}
        return make_sandbox(
            kind, self.spec(**fields), environ, self.user, state_root=self.root / "state"
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    require_bwrap()
    repo, home, user = tmp_path / "repo", tmp_path / "state/runs/1/box", tmp_path / "user"
    for folder in (repo, home, user):
        folder.mkdir(parents=True)
    (repo / "file.txt").write_text("hello\n")
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "first")
    yield Place(tmp_path, repo, home, user)
    held = [
        line for line in Path("/proc/self/mounts").read_text().splitlines() if str(repo) in line
    ]
    assert not held, "a mount is left on the host"
