"""What lies in a submodule, and whether its remote has it."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.git.submodules import (
    by_submodule,
    commits_of_remotes,
    remote_has,
    submodules_in,
)
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
    read(project, *words)


def read(project: Project, *words: str) -> str:
    folder = project.repo / "parts/lib"
    who = ("-c", "user.name=w", "-c", "user.email=w@example.invalid")
    command = ["git", *ALLOW, *who, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def has(project: Project, place: Path, known: list[str] | None = None) -> bool:
    """Whether a remote has what the folder holds, by what is `known`: what it says now."""
    snapshots = Snapshots(place, project.repo)
    entries = snapshots.list(snapshots.take().tree)
    if known is None:
        known = remotes(project)
    return remote_has(snapshots.git, project.repo, "parts/lib", entries, known)


def remotes(project: Project) -> list[str]:
    return commits_of_remotes(project.repo, project.repo / ".git/index").get("parts/lib", [])


def test_only_what_a_remote_has_is_handed_over(project: Project, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert list(submodules_in(project.repo / ".git/index")) == ["parts/lib"]
    assert has(project, store)
    (project.repo / "parts/lib/lib.py").write_text("x = 3\n")
    assert not has(project, store), "dirty"
    git(project, "commit", "-qam", "of its own")
    assert not has(project, store), "a commit that nobody else has"
    git(project, "push", "-q", "origin", "HEAD:refs/heads/new")
    assert has(project, store)
    git(project, "fetch", "-q", "origin")
    known = remotes(project)
    git(project, "checkout", "-q", "FETCH_HEAD")
    assert has(project, store, known), "moved to what the remote had"
    git(project, "checkout", "-q", "HEAD~1")
    assert has(project, store, known[1:]), "and to what that came from"
    (project.repo / "parts/lib/new.py").write_text("")
    assert not has(project, store), "a file more"


def test_a_reference_that_a_worker_writes_says_nothing_of_a_remote(
    project: Project, tmp_path: Path
) -> None:
    known, store = remotes(project), tmp_path / "store"
    (project.repo / "parts/lib/lib.py").write_text("x = 3\n")
    git(project, "commit", "-qam", "of its own")
    git(project, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert has(project, store) and not has(project, store, known)
    assert not has(project, store, []), "a repository that was not there"


def test_a_walk_that_git_cannot_end_is_a_no(project: Project, tmp_path: Path) -> None:
    (project.repo / "parts/lib/lib.py").write_text("x = 3\n")
    git(project, "commit", "-qam", "of its own")
    assert not has(project, tmp_path / "store", ["1" * 40])


def test_a_known_commit_that_was_not_fetched_refuses_nothing(
    project: Project, tmp_path: Path
) -> None:
    known = ["1" * 40, *remotes(project)]
    git(project, "fetch", "-q", "origin")
    newest = [read(project, "rev-parse", "FETCH_HEAD")]
    assert has(project, tmp_path / "store", [*known[:1], *newest])
    assert has(project, tmp_path / "store", known)


@pytest.mark.parametrize("content", [b"gitdir: a\0b\n", b"\xff\xfe\0", b"", b"gitdir: ../loop\n"])
def test_a_git_file_that_names_no_folder_has_no_remote(
    project: Project, tmp_path: Path, content: bytes
) -> None:
    known = remotes(project)
    (project.repo / "parts/loop").symlink_to("loop")
    pointer = project.repo / "parts/lib/.git"
    pointer.write_bytes(content)
    of_index = submodules_in(project.repo / ".git/index")["parts/lib"]
    assert remotes(project) in ([], [of_index])
    git_of_store = Snapshots(tmp_path / "store", project.repo).git
    assert not remote_has(git_of_store, project.repo, "parts/lib", {}, known)


def test_a_commit_that_is_not_what_its_name_says_leads_nowhere(
    project: Project, tmp_path: Path
) -> None:
    folder = project.repo / "parts/lib"
    git(project, "commit", "-q", "--allow-empty", "-m", "between")
    git(project, "commit", "-q", "--allow-empty", "-m", "known")
    known = [read(project, "rev-parse", "HEAD")]
    between = read(project, "rev-parse", "HEAD~1")
    git(project, "checkout", "-q", "HEAD~2")
    (folder / "lib.py").write_text("x = 3\n")
    git(project, "commit", "-qam", "of its own")
    assert not has(project, tmp_path / "store", known)
    text = read(project, "cat-file", "commit", between)
    parent, own = read(project, "rev-parse", "HEAD~1"), read(project, "rev-parse", "HEAD")
    (tmp_path / "commit").write_text(text.replace(parent, own))
    forged = read(project, "hash-object", "-w", "-t", "commit", str(tmp_path / "commit"))
    objects = project.repo / ".git/modules/parts/lib/objects"
    target = objects / between[:2] / between[2:]
    target.chmod(0o644)
    target.write_bytes((objects / forged[:2] / forged[2:]).read_bytes())
    assert not has(project, tmp_path / "store", known)


def test_a_folder_of_a_commit_that_is_not_what_its_name_says_is_no_remotes(
    project: Project, tmp_path: Path
) -> None:
    """git compares the topmost folder of a commit with its name, and none below."""
    folder = project.repo / "parts/lib"
    (folder / "deep").mkdir()
    (folder / "deep/a.py").write_text("x = 1\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "with a folder")
    known, tree = [read(project, "rev-parse", "HEAD")], read(project, "rev-parse", "HEAD:deep")
    assert has(project, tmp_path / "store", known)
    (folder / "deep/a.py").write_text("x = 3\n")
    git(project, "commit", "-qam", "of its own")
    forged = read(project, "rev-parse", "HEAD:deep")
    git(project, "reset", "-q", "--soft", "HEAD~1")
    objects = project.repo / ".git/modules/parts/lib/objects"
    target = objects / tree[:2] / tree[2:]
    target.chmod(0o644)
    target.write_bytes((objects / forged[:2] / forged[2:]).read_bytes())
    assert not has(project, tmp_path / "another store", known)


def test_an_object_at_which_git_ends_is_no_remotes(project: Project, tmp_path: Path) -> None:
    git(project, "commit", "-q", "--allow-empty", "-m", "of its own")
    known = [read(project, "rev-parse", "HEAD")]
    assert has(project, tmp_path / "store", known)
    damaged = project.repo / ".git/modules/parts/lib/objects" / known[0][:2] / known[0][2:]
    damaged.chmod(0o644)
    damaged.write_bytes(zlib.compress(b"committ 3\0abc"))
    assert not has(project, tmp_path / "another store", known)


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
    assert submodules_in(tmp_path / "missing") == {}
