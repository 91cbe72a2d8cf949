"""Links of installed packages into the repository are found where pip and setuptools write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.verification.rooms.room import editable_installs


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("_shop.pth", "{repo}/src\n", True),
        ("__editable___shop_1_0_finder.py", "MAPPING = {{'shop': '{repo}/shop'}}\n", True),
        ("shop.egg-link", "{repo}\n.", True),
        ("other.pth", "/somewhere/else\nimport site\n", False),
        ("shop/__init__.py", "# {repo}\n", False),
    ],
)
def test_a_link_into_the_repository_is_found(
    tmp_path: Path, name: str, text: str, found: bool
) -> None:
    packages = tmp_path / "venv/lib/python3.11/site-packages"
    file = packages / name
    file.parent.mkdir(parents=True)
    file.write_text(text.format(repo=tmp_path / "repo"))
    wanted = [f".venv/lib/python3.11/site-packages/{name}"] if found else []
    assert editable_installs([(".venv", tmp_path / "venv")], tmp_path / "repo") == wanted


def test_what_is_not_there_or_cannot_be_read_is_no_link(tmp_path: Path) -> None:
    packages = tmp_path / "venv/lib/python3.11/site-packages"
    (packages / "folder.pth").mkdir(parents=True)
    (packages / "bytes.pth").write_bytes(b"\xff\xfe" * 10)
    folders = [("venv", tmp_path / "venv"), ("gone", tmp_path / "gone")]
    assert editable_installs(folders, tmp_path / "repo") == []
