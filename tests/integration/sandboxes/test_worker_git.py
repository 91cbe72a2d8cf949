"""git in a worker's box: what agents do with the index works, and nothing of the user's moves."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import CommandResult, Request, Sandbox
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.worker_git import worker_git
from agentrunner.testing.sandboxes.workbench import git
from tests.kit.docker import docker, require_docker
from tests.kit.layers import tree_of

from .conftest import Place

WORK = """
git mv file.txt moved.txt
git rm -q --cached other.txt
echo new >new.txt
git add new.txt
printf '%s\n' 'diff --git a/third.txt b/third.txt' 'index 0..1 100644' '--- a/third.txt' \
    '+++ b/third.txt' '@@ -1 +1 @@' '-third' '+applied' >/tmp/patch
git apply --index /tmp/patch
git status --short
git diff --cached --stat >/dev/null
git show :new.txt
git cat-file -p HEAD:file.txt
"""
STATUS = ["R  file.txt -> moved.txt", "A  new.txt", "D  other.txt", "M  third.txt", "?? other.txt"]
REFUSED = ("git commit -m x", "git stash", "git checkout -b side", "git tag t", "git config a.b c")


def plain(place: Place) -> Path:
    return place.repo


def worktree(place: Place) -> Path:
    folder = place.root / "linked"
    git(place.repo, "worktree", "add", "-q", str(folder), "-b", "linked")
    return folder


def shared(place: Place) -> Path:
    """A clone that borrows the objects of another repository."""
    folder = place.root / "shared"
    git(place.root, "clone", "-q", "--shared", str(place.repo), str(folder))
    (folder / "own.txt").write_text("own\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "own")
    return folder


@pytest.fixture(params=["bwrap", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "docker":
        require_docker()
    return str(request.param)


@pytest.fixture(params=[plain, worktree, shared], ids=lambda make: make.__name__)
def repo(request: pytest.FixtureRequest, place: Place) -> Path:
    for name in ("other", "third"):
        (place.repo / f"{name}.txt").write_text(f"{name}\n")
    git(place.repo, "add", ".")
    git(place.repo, "commit", "-qm", "second")
    make: Callable[[Place], Path] = request.param
    return make(place)


@pytest.fixture
async def box(kind: str, place: Place, repo: Path) -> AsyncIterator[Sandbox]:
    reads = (place.repo / ".git/objects",) if repo.name == "shared" else ()
    spec = replace(place.spec(read_paths=reads), repo=repo)
    sandbox: Sandbox = (
        docker(spec)
        if kind == "docker"
        else BwrapSandbox(spec, environ={"PATH": os.environ["PATH"]}, host_home=place.user)
    )
    await sandbox.open()
    yield sandbox
    await sandbox.close()


async def sh(box: Sandbox, place: Place, repo: Path, script: str) -> CommandResult:
    mounts = worker_git(repo, place.home.parent / "git")
    return await box.run(Request(("sh", "-ec", script), repo, mounts=mounts, timeout_sec=60))


async def test_the_index_can_be_written_and_no_ref(box: Sandbox, place: Place, repo: Path) -> None:
    before = state_of(place, repo)
    done = await sh(box, place, repo, WORK)
    seen = done.stdout.decode().splitlines()
    assert (done.exit_code, seen) == (0, [*STATUS, "new", "hello"]), done.stderr.decode()
    for command in REFUSED:
        refused = await sh(box, place, repo, f"echo x >another; git add another; {command}")
        assert refused.exit_code != 0, command
        assert refused.stderr.strip(), "git says nothing"
    assert state_of(place, repo) == before
    assert (repo / "moved.txt").exists()


async def test_repositories_that_a_command_makes_are_not_touched_by_it(
    box: Sandbox, place: Place, repo: Path
) -> None:
    """As the fixtures of a suite do; nobody has set an identity for them."""
    script = """
    git init -q /tmp/made && cd /tmp/made && echo a >a && git add a && git commit -qm first
    git log --format='%an <%ae>' && git config user.name Own && git commit -q --allow-empty -m b
    git log -1 --format=%an && git stash list && git status --short
    """
    done = await sh(box, place, repo, script)
    assert done.exit_code == 0, done.stderr.decode()
    assert done.stdout.decode().splitlines() == ["Agent <agent@localhost>", "Own"]


async def test_a_repository_without_commits_and_one_without_git(place: Place) -> None:
    fresh, none = place.root / "fresh", place.root / "none"
    for folder in (fresh, none):
        folder.mkdir()
        (folder / "a").write_text("a\n")
    git(fresh, "init", "-q")
    spec = replace(place.spec(), repo=fresh)
    box = BwrapSandbox(spec, environ={"PATH": os.environ["PATH"]}, host_home=place.user)
    done = await sh(
        box, place, fresh, "git add a && git status --short && git commit -qm x || true"
    )
    assert done.stdout.decode().splitlines() == ["A  a"]
    assert not (fresh / ".git/index").exists()
    assert worker_git(none, place.home.parent / "git") == ()
    await box.close()


def state_of(place: Place, repo: Path) -> dict[str, str]:
    """All of git's data, with sizes and times, of both repositories."""
    folders = [place.repo / ".git", *([repo / ".git"] if (repo / ".git").is_dir() else [])]
    found: dict[str, str] = {}
    for folder in folders:
        found |= {f"{folder}/{name}": text for name, text in tree_of(folder, text=False).items()}
    return found
