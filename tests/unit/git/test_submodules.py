"""What lies in a submodule, and whether its remote has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.git.submodules import by_submodule, remote_has, submodules_in
from tests.kit.project import Project

ALLOW = ("-c", "protocol.file.allow=always")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """With a submodule, whose remote has two commits; the first is checked out."""
    inner = Project.make(tmp_path / "inner", {"lib.py": "x = 1\n"})
    made = Project.make(tmp_path, {"a.py": "1\n"})
    made.git(*ALLOW, "submodule", "add", "-q", str(inner.repo), "parts/lib")
    made.git("commit", "-q", "-m", "with a submodule")
    inner.write({"lib.py": "x = 2\n"})
    inner.git("commit", "-q", "-a", "-m", "second")
    return made


def git(project: Project, *words: str) -> None:
    folder = project.repo / "parts/lib"
    who = ("-c", "user.name=w", "-c", "user.email=w@example.invalid")
    subprocess.run(["git", *ALLOW, *who, *words], cwd=folder, check=True, capture_output=True)


def has(project: Project, place: Path) -> bool:
    snapshots = Snapshots(place, project.repo)
    entries = snapshots.list(snapshots.take().tree)
    return remote_has(snapshots.git, project.repo, "parts/lib", entries)


def test_only_what_a_remote_has_is_handed_over(project: Project, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert submodules_in(project.repo / ".git/index") == ["parts/lib"]
    assert has(project, store)
    (project.repo / "parts/lib/lib.py").write_text("x = 3\n")
    assert not has(project, store), "dirty"
    git(project, "commit", "-qam", "of its own")
    assert not has(project, store), "a commit that nobody else has"
    git(project, "push", "-q", "origin", "HEAD:refs/heads/new")
    assert has(project, store)
    git(project, "fetch", "-q", "origin")
    git(project, "checkout", "-q", "FETCH_HEAD")
    assert has(project, store), "moved to what the remote has"
    (project.repo / "parts/lib/new.py").write_text("")
    assert not has(project, store), "a file more"


def test_a_repository_that_the_run_made_is_a_submodule_to_be(project: Project) -> None:
    fresh = project.repo / "fresh"
    subprocess.run(["git", "init", "-q", str(fresh)], check=True)
    old = {"parts/lib/lib.py": ("100644", ""), "a.py": ("100644", "")}
    paths = ["a.py", "fresh/b.py", "parts/lib/deep/c.py", "parts/d.py"]
    found = by_submodule(paths, ["parts/lib"], project.repo, old)
    assert found == {"fresh": ["fresh/b.py"], "parts/lib": ["parts/lib/deep/c.py"]}
    assert by_submodule(paths, [], project.repo, {**old, "fresh/x": ("100644", "")}) == {}


def test_what_cannot_be_read_is_not_had_by_a_remote(project: Project, tmp_path: Path) -> None:
    (project.repo / ".git/modules/parts/lib/HEAD").write_text("ref: refs/heads/none\n")
    assert not has(project, tmp_path / "store")
    (project.repo / "parts/lib/.git").unlink()
    assert not has(project, tmp_path / "store")
    assert submodules_in(tmp_path / "missing") == []
