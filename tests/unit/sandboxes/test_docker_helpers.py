"""Programs that hold a registry's credentials are not taken from the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.docker.images import check_helpers
from tests.kit.files import write


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a program, beside a folder with another; one is in the settings."""
    for folder in ("repo", "repo/bin", "usual"):
        write(tmp_path / folder, {"docker-credential-keys": "#!/bin/sh\n"})
    (tmp_path / "links").mkdir()
    (tmp_path / "links/docker-credential-keys").symlink_to("../repo/docker-credential-keys")
    (tmp_path / "repo/out").symlink_to("../usual")
    (tmp_path / "past").symlink_to("repo/out")
    settings = {"credHelpers": {"registry.example": "keys"}}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


@pytest.mark.parametrize(
    "search", [".", "", "bin", "{place}/repo/bin", "{place}/links", "{place}/past"]
)
def test_one_in_the_repository_is_refused(
    repo: Path, monkeypatch: pytest.MonkeyPatch, search: str
) -> None:
    monkeypatch.setenv("PATH", f"{search.format(place=repo.parent)}:/usr/bin")
    with pytest.raises(SandboxUnavailable) as caught:
        check_helpers(repo)
    assert caught.value.code == "image-helper"
    assert "docker-credential-keys" in caught.value.message


@pytest.mark.parametrize("search", ["{place}/usual:{place}/repo", "/usr/bin"])
def test_one_elsewhere_and_none_at_all_are_no_concern(
    repo: Path, monkeypatch: pytest.MonkeyPatch, search: str
) -> None:
    monkeypatch.setenv("PATH", search.format(place=repo.parent))
    check_helpers(repo)
