from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agentrunner.engine.retention import remove_dead_sockets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    deep = tmp_path / ("long" * 30) / "sock"  # more than a socket's address can hold
    deep.mkdir(parents=True)
    return deep


def bound(folder: Path, name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    descriptor = os.open(folder, os.O_RDONLY)
    listener.bind(f"/proc/self/fd/{descriptor}/{name}")
    os.close(descriptor)
    return listener


def test_only_sockets_without_a_listener_are_removed(folder: Path) -> None:
    (folder / "file.txt").write_text("kept")
    (folder / "link.sock").symlink_to(folder / "proxy.sock")
    bound(folder, "gateway.sock").close()
    with bound(folder, "proxy.sock") as listener:
        listener.listen()
        assert remove_dead_sockets(folder) == ["gateway.sock"]
    assert sorted(path.name for path in folder.iterdir()) == ["file.txt", "link.sock", "proxy.sock"]
    assert remove_dead_sockets(folder) == ["proxy.sock"]


def test_a_folder_that_is_gone_or_a_link_is_nothing_to_do(folder: Path) -> None:
    bound(folder, "gateway.sock").close()
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert remove_dead_sockets(folder / "absent") == []
    assert remove_dead_sockets(link) == []
    assert (folder / "gateway.sock").exists()
