"""git in a clean room: it sees what is handed over, and nothing of the user's moves."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.base import CommandResult, Request, Sandbox
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.verification.rooms.room import Rooms
from agentrunner.verification.rooms.sealed import Sealed
from tests.kit.sandbox_place import SHAPES, Place, available

WORK = """
git ls-files
echo -- && git status --short
echo -- && git diff --exit-code && git diff-files --exit-code
git log --oneline | wc -l
git show :new.txt && git cat-file -p HEAD:file.txt
echo -- && git diff --cached --stat
echo more >> file.txt && git status --short file.txt
git commit -qam later && git log --oneline | wc -l
"""


@pytest.fixture(params=["bwrap", "docker", "none"])
def kind(request: pytest.FixtureRequest) -> str:
    return available(request.param)


@pytest.fixture
async def box(kind: str, place: Place, repo: Path) -> AsyncIterator[Sandbox]:
    async with place.opened_in(kind, repo) as sandbox:
        yield sandbox


@pytest.fixture(params=SHAPES)
def repo(request: pytest.FixtureRequest, place: Place) -> Path:
    return place.repository(request.param, **{".gitignore": "*.log\n.env\n"})


async def in_a_room(box: Sandbox, place: Place, repo: Path, script: str) -> CommandResult:
    """Sealed first, then changed as a worker does, then run on what is handed over."""
    snapshots = Snapshots(place.root / "store", repo)
    snapshots.take()
    sealed = Sealed(place.root / "sealed", repo)
    sealed.seal(snapshots)
    (repo / ".env").write_text("KEY=1\n")
    (repo / "new.txt").write_text("new\n")
    (repo / "third.txt").write_text("changed\n")
    (repo / "other.txt").unlink(missing_ok=True)
    if box.kind == "none" and (repo / ".git").is_dir():
        (repo / ".git/HEAD").write_text("ref: refs/heads/of-a-worker\n")
        (repo / ".git/index").unlink()
    rooms = Rooms(snapshots, sealed, place.root / "rooms", mounts=box.kind != "none")
    async with rooms.open(snapshots.take().tree) as room:
        copy = room.copy
        request = Request(
            ("sh", "-ec", script), repo, repo_copy=copy.path, mounts=copy.mounts, timeout_sec=60
        )
        return await box.run(request)


async def test_what_is_handed_over_is_the_index(box: Sandbox, place: Place, repo: Path) -> None:
    before = place.git_data(repo) if box.kind != "none" else {}
    done = await in_a_room(box, place, repo, WORK)
    assert done.exit_code == 0, done.stderr.decode()
    files, status, rest, cached = done.stdout.decode().split("--\n", 3)
    own = ["own.txt"] if repo.name == "shared" else []
    names = [".gitignore", "file.txt", "new.txt", *own, "third.txt"]
    assert [name for name in files.split() if "/" not in name] == names
    assert status.splitlines() == ["A  new.txt", "D  other.txt", "M  third.txt"]
    assert "new\nhello\n" in rest
    assert "3 files changed" in cached
    assert " M file.txt" in cached
    if box.kind != "none":
        assert place.git_data(repo) == before


async def test_a_repository_without_git(place: Place) -> None:
    shutil.rmtree(place.repo / ".git")
    box = BwrapSandbox(place.spec(), environ={"PATH": os.environ["PATH"]}, host_home=place.user)
    done = await in_a_room(box, place, place.repo, "git status || echo none")
    assert done.stdout.decode() == "none\n"
    await box.close()
