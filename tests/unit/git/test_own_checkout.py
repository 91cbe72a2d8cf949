"""Which commit of AgentRunner runs is told of a checkout of its own, and of nothing else."""

from __future__ import annotations

from pathlib import Path

from agentrunner.git.own_checkout import own_commit
from tests.kit.project import Project


def test_a_checkout_tells_its_commit(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    head = project.git("rev-parse", "HEAD").strip()
    assert own_commit(project.repo) == head[:10]


def test_one_whose_references_are_packed_or_whose_head_is_a_commit_does(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    head = project.git("rev-parse", "HEAD").strip()
    project.git("pack-refs", "--all")
    assert own_commit(project.repo) == head[:10]
    project.git("checkout", "-q", "--detach")
    assert own_commit(project.repo) == head[:10]


def test_a_linked_work_tree_does(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    project.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    head = project.git("rev-parse", "HEAD").strip()
    assert own_commit(tmp_path / "linked") == head[:10]


def test_a_folder_of_packages_inside_a_user_s_repository_tells_none(tmp_path: Path) -> None:
    packages = Project.make(tmp_path).repo / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    assert own_commit(packages) == ""


def test_a_damaged_checkout_tells_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert own_commit(tmp_path) == ""
