"""Where a plan is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.errors import LockHeld
from agentrunner.storage.locks import me
from agentrunner.storage.plan_folder import plan_folder


def test_a_repository_has_one_folder_whatever_it_is_called_by(tmp_path: Path) -> None:
    repo = tmp_path / "My Shop"
    repo.mkdir()
    link = tmp_path / "link"
    link.symlink_to(repo)
    folder = plan_folder(tmp_path / "state", repo)
    assert folder == plan_folder(tmp_path / "state", link)
    assert folder.root.parent == tmp_path / "state" / "plans"
    assert folder.root.name.startswith("my-shop-")
    assert not folder.root.exists()


def test_repositories_of_one_name_have_a_folder_each(tmp_path: Path) -> None:
    names = {plan_folder(tmp_path, tmp_path / parent / "shop").root for parent in ("a", "b")}
    assert len(names) == 2


def test_a_name_without_letters_is_a_folder_too(tmp_path: Path) -> None:
    assert plan_folder(tmp_path, tmp_path / "お店").root.name.startswith("repository-")


def test_one_process_carries_a_plan_out(tmp_path: Path) -> None:
    folder = plan_folder(tmp_path / "state", tmp_path)
    folder.make()
    assert folder.root.stat().st_mode & 0o777 == 0o700
    held = folder.lock()
    held.acquire(me("", "2026-01-01T00:00:00Z"))
    with pytest.raises(LockHeld, match="this plan is held by another process"):
        folder.lock().acquire(me("", "2026-01-01T00:00:00Z"))
    held.close()
