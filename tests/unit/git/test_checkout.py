"""A commit in the user's checkout, and whose name it bears: read as data, no hook, no filter."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.git.checkout import Checkout, CheckoutState
from agentrunner.git.identity import identity_of
from agentrunner.git.private_clone import CloneStore, Identity
from agentrunner.git.worktree import WorktreePlace, prepare
from tests.kit.project import Project
from tests.kit.repository import AT, WHO, plant_hooks


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path, {"a.txt": "a\n", "b.txt": "b\n", "gone.txt": "x\n"})


@pytest.fixture
def checkout(project: Project, tmp_path: Path) -> Checkout:
    return Checkout(CloneStore(tmp_path / "clone.git", project.repo))


def made(checkout: Checkout, before: CheckoutState, *paths: str) -> str:
    return checkout.clone.commit(
        checkout.clone.repo, paths, parents=(before.commit,), message="m\n", author=WHO, at=AT
    )


def test_the_branch_and_these_entries_step_and_nothing_else(
    checkout: Checkout, project: Project
) -> None:
    before = checkout.standing()
    assert before == CheckoutState("main", project.git("rev-parse", "HEAD").strip())
    project.write({"a.txt": "changed\n", "b.txt": "mine\n", "new.txt": "new\n"})
    (project.repo / "gone.txt").unlink()
    commit = made(checkout, before, "a.txt", "new.txt", "gone.txt")
    for _ in range(2):  # once more changes nothing
        checkout.step(commit, before, ["a.txt", "new.txt", "gone.txt"])
        assert project.git("rev-parse", "main").strip() == commit
        assert project.git("status", "--porcelain") == " M b.txt\n"
    assert project.git("log", "--format=%s") == "m\nstart\n"


def test_a_checkout_whose_hash_is_sha256_steps_as_any(checkout: Checkout, project: Project) -> None:
    shutil.rmtree(project.repo / ".git")
    project.git("init", "-q", "-b", "main", "--object-format=sha256")
    project.git("add", "-A")
    project.git("commit", "-qm", "start")
    before = checkout.standing()
    project.write({"a.txt": "changed\n"})
    (project.repo / "gone.txt").unlink()
    commit = made(checkout, before, "a.txt", "gone.txt")
    checkout.step(commit, before, ["a.txt", "gone.txt"])
    assert project.git("rev-parse", "main").strip() == commit
    assert project.git("status", "--porcelain") == ""


def test_no_hook_runs(checkout: Checkout, project: Project) -> None:
    plant_hooks(
        project.repo, project.repo / "ran", "post-index-change", "post-commit", "pre-commit"
    )
    project.git("config", "core.fsmonitor", f"touch {project.repo}/ran; false")
    before = checkout.standing()
    project.write({"a.txt": "changed\n"})
    checkout.step(made(checkout, before, "a.txt"), before, ["a.txt"])
    assert not (project.repo / "ran").exists()


def test_what_was_staged_or_moved_meanwhile_is_left_alone(
    checkout: Checkout, project: Project
) -> None:
    before = checkout.standing()
    project.write({"a.txt": "changed\n"})
    commit = made(checkout, before, "a.txt")
    project.git("add", "a.txt")
    with pytest.raises(UsageError) as staged:
        checkout.step(commit, before, ["a.txt"])
    project.git("commit", "-qm", "mine")
    with pytest.raises(UsageError) as moved:
        checkout.step(commit, before, ["a.txt"])
    assert (staged.value.code, moved.value.code) == ("staged-changes", "head-moved")
    assert project.git("log", "-1", "--format=%s") == "mine\n"


def test_an_index_that_cannot_be_read_counts_as_staged(
    checkout: Checkout, project: Project
) -> None:
    project.git("update-index", "--split-index")
    with pytest.raises(UsageError) as refused:
        checkout.standing()
    assert refused.value.code == "staged-changes"


def test_the_author_is_who_the_settings_say(
    checkout: Checkout, project: Project, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environ = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    checkout.clone.fetch()
    nobody = identity_of(checkout.clone, environ)
    assert nobody.name and nobody.email.startswith(f"{nobody.name}@")
    (home / ".gitconfig").write_text("[user]\n name = Hana\n email = hana@example.org\n")
    assert identity_of(checkout.clone, environ) == WHO
    project.git("config", "user.name", "Work <x>\n")
    assert identity_of(checkout.clone, environ) == Identity("Work x", "hana@example.org")
    told = {**environ, "GIT_AUTHOR_NAME": "Env"}
    assert identity_of(checkout.clone, told) == Identity("Env", "hana@example.org")
    (project.repo / ".git" / "config").write_text("[broken")
    assert identity_of(checkout.clone, environ) == WHO


def test_what_is_taken_along_is_what_differs_from_a_fresh_checkout(
    project: Project, tmp_path: Path
) -> None:
    project.write({".gitattributes": "*.crlf text eol=crlf\n", ".gitignore": "secret\nout/\n"})
    (project.repo / "x.crlf").write_bytes(b"one\r\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "more")
    project.write({"a.txt": "edited\n", "secret": "s", "out/x": "o", "deep/new": "n"})
    (project.repo / "b.txt").chmod(0o755)
    (project.repo / "link").symlink_to("/etc/passwd")
    inner = project.repo / "inner"
    inner.mkdir()
    (inner / ".git").mkdir()
    (inner / "file").write_text("x")
    place = WorktreePlace(tmp_path / "place")
    found = prepare(place, project.repo, ".agent-runner", clean=False, branch="mine")
    assert found.carried == ("a.txt", "b.txt", "deep/new", "link")
    assert found.left == ("inner",)
    assert (place.work / "a.txt").read_text() == "edited\n"
    assert (place.work / "link").is_symlink()
    assert (place.work / "b.txt").stat().st_mode & 0o111
    assert not (place.work / "secret").exists()
    assert sorted(path.name for path in place.root.iterdir()) == ["clone.git", "work"]
    place.remove()
    assert not place.root.exists()
