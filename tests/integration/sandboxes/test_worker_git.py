"""git in a worker's box: what agents do with the index works, and nothing of the user's moves."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import CommandResult, Request, Sandbox
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.gitdirs import worker_git
from tests.kit.repository import git
from tests.kit.sandbox_place import SHAPES, Place, available

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


@pytest.fixture(params=["bwrap", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    return available(request.param)


@pytest.fixture
async def box(kind: str, place: Place, repo: Path) -> AsyncIterator[Sandbox]:
    async with place.opened_in(kind, repo) as sandbox:
        yield sandbox


@pytest.fixture(params=SHAPES)
def repo(request: pytest.FixtureRequest, place: Place) -> Path:
    return place.repository(request.param)


async def sh(box: Sandbox, place: Place, repo: Path, script: str) -> CommandResult:
    mounts = worker_git(repo, place.home.parent / "git")
    return await box.run(Request(("sh", "-ec", script), repo, mounts=mounts, timeout_sec=60))


@pytest.mark.series(2)
async def test_the_index_can_be_written_and_no_ref(box: Sandbox, place: Place, repo: Path) -> None:
    before = place.git_data(repo)
    done = await sh(box, place, repo, WORK)
    seen = done.stdout.decode().splitlines()
    assert (done.exit_code, seen) == (0, [*STATUS, "new", "hello"]), done.stderr.decode()
    for command in REFUSED:
        refused = await sh(box, place, repo, f"echo x >another; git add another; {command}")
        assert refused.exit_code != 0, command
        assert refused.stderr.strip(), "git says nothing"
    assert place.git_data(repo) == before
    assert (repo / "moved.txt").exists()


@pytest.mark.series(2)
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
