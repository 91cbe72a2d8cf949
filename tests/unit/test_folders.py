"""Folders are walked and removed, however deep they are."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.folders import remove_tree, walk
from tests.kit.files import put


def test_folders_deeper_than_a_path_may_be_long_are_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "beside").touch()
    here = os.open(top, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("a name of some length", dir_fd=here)
        below = os.open("a name of some length", os.O_RDONLY, dir_fd=here)
        os.close(os.open("a file", os.O_CREAT | os.O_WRONLY, dir_fd=below))
        os.close(here)
        here = below
    os.chmod(here, 0o500)  # noqa: PTH101
    os.close(here)
    remove_tree(str(top))
    assert not top.exists()


def test_folders_are_walked_as_python_walks_them(tmp_path: Path) -> None:
    put(tmp_path, "a/b/c.py", "a/d.py", "e/f/g.py", "h.py")
    (tmp_path / "a/link").symlink_to(tmp_path / "e")
    assert list(walk(tmp_path)) == list(os.walk(tmp_path))
    found = []
    for _, folders, names in walk(tmp_path):
        folders[:] = [name for name in folders if name != "b"]
        found += names
    assert sorted(found) == ["d.py", "g.py", "h.py"]
