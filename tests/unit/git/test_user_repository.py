"""A remote and what is checked out are as git has them, and nothing that settings name is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.git.user_repository import UserRepository
from tests.kit.repository import committed, git


@pytest.fixture
def theirs(tmp_path: Path) -> UserRepository:
    (tmp_path / "home").mkdir()
    place = committed(tmp_path / "shop", {"a": "a"})
    return UserRepository(place, {"HOME": str(tmp_path / "home")})


def test_an_address_is_rewritten_as_settings_say(theirs: UserRepository, tmp_path: Path) -> None:
    assert theirs.remote() == ""
    git(theirs.repo, "remote", "add", "origin", "forge:shop.git")
    assert theirs.remote() == "forge:shop.git"
    rewrite = '[url "https://forge.example/team/"]\n\tinsteadOf = forge:\n'
    (tmp_path / "home" / ".gitconfig").write_text(rewrite)
    assert theirs.remote() == "https://forge.example/team/shop.git"
    assert theirs.remote("upstream") == ""


def test_nothing_that_settings_name_is_run(theirs: UserRepository, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "alias.config"):
        git(theirs.repo, "config", name, f"!touch {mark}" if "alias" in name else f"touch {mark}")
    git(theirs.repo, "remote", "add", "origin", f"ext::touch {mark}")
    assert theirs.remote() == f"ext::touch {mark}"
    theirs.branch_at("main")
    assert not mark.exists()


def test_checked_out_branches_are_known_with_their_folders(
    theirs: UserRepository, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(theirs.repo, "worktree", "add", "-q", "-b", "topic", str(linked))
    there = {"main": theirs.repo, "topic": linked}
    assert theirs.checked_out() == there
    beside = UserRepository(linked, theirs.environ)
    assert beside.checked_out() == there
    assert beside.branch_at("topic") == git(linked, "rev-parse", "HEAD").strip()
    assert beside.branch_at("other") is None
    git(theirs.repo, "checkout", "-q", "--detach")
    assert theirs.checked_out() == {"topic": linked}
