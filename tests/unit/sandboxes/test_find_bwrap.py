from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes import bwrap_program
from agentrunner.sandboxes.bwrap_program import find_bwrap, unavailable
from tests.kit.files import write


def make(folder: Path) -> Path:
    return write(folder, {"bwrap": "#!/bin/sh\n"}) / "bwrap"


def test_the_first_on_the_path(tmp_path: Path) -> None:
    mine = make(tmp_path / "bin")
    environ = {"PATH": f"{tmp_path}/none:{mine.parent}"}
    assert find_bwrap(environ, tmp_path / "repo") == mine


def test_never_from_the_repository_nor_a_relative_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "repo"
    evil = make(repo / "bin")
    elsewhere = tmp_path / "links"
    elsewhere.mkdir()
    (elsewhere / "bwrap").symlink_to(evil)
    monkeypatch.chdir(evil.parent)
    mine = make(tmp_path / "bin")
    environ = {"PATH": f".::bin:{evil.parent}:{elsewhere}:{mine.parent}"}
    assert find_bwrap(environ, repo) == mine


def test_without_any_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_module(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(bwrap_program, "import_module", no_module)
    monkeypatch.setattr(bwrap_program, "USUAL_FOLDERS", ())
    with pytest.raises(SandboxUnavailable) as caught:
        find_bwrap({"PATH": str(tmp_path)}, tmp_path)
    assert "apt install bubblewrap" in caught.value.remedy


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "bwrap: Creating new namespace failed: max_*_namespaces exceeded (ENOSPC)",
            "switched off",
        ),
        ("bwrap: setting up uid map: Permission denied", "does not let"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "does not let"),
        (
            "bwrap: No permissions to create new namespace, likely because of the kernel",
            "does not let",
        ),
        ("bwrap: Can't find source path /x: No such file or directory", "could not make"),
    ],
)
def test_complaints_are_explained(words: str, reason: str) -> None:
    error = unavailable(words)
    assert reason in error.message and words in error.message
    assert bool(error.remedy) == (reason != "could not make")
