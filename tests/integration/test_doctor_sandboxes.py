"""What `doctor` says of the boxes of this machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.setup import ISOLATION, probe_sandboxes
from agentrunner.sandboxes.choose import image_to_try
from tests.kit.bwrap import require_bwrap
from tests.kit.engine import connected
from tests.kit.project import Project


@pytest.fixture
async def image() -> None:
    """Something to make boxes of; it is small, and kept for others."""
    async with connected():
        await image_to_try("docker", os.environ)


@pytest.mark.usefixtures("image")
async def test_every_kind_is_opened_and_told_in_the_same_words(tmp_path: Path) -> None:
    require_bwrap()
    project = Project.make(tmp_path)
    looks = await probe_sandboxes(project.repo, os.environ, project.state_dir, "codex-cli")
    assert [look.kind for look in looks] == ["docker", "bwrap"]
    for look in looks:
        assert look.problem is None
        assert set(look.held) == set(ISOLATION)
    (docker, engine, images), (bwrap,) = (look.findings() for look in looks)
    assert {docker.mark, engine.mark, images.mark, bwrap.mark} == {"ok"}
    assert "API 1." in engine.text and "cgroup v" in engine.text
    assert "agentrunner/" in images.text
    assert looks[0].held["memory"].startswith("2g")


async def test_without_an_engine_the_other_kind_is_there_and_the_cure_is_told(
    tmp_path: Path,
) -> None:
    require_bwrap()
    project = Project.make(tmp_path)
    environ = {**os.environ, "DOCKER_HOST": "unix:///nonexistent.sock"}
    docker, bwrap = await probe_sandboxes(project.repo, environ, project.state_dir, "codex-cli")
    (finding,) = docker.findings()
    assert finding.mark == "--" and "/nonexistent.sock" in finding.text
    assert "systemctl start docker" in finding.cure
    assert docker.held == {} and bwrap.problem is None


@pytest.mark.usefixtures("image")
async def test_the_screen_has_a_section_for_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_bwrap()
    project = Project.make(tmp_path)
    monkeypatch.chdir(project.repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(project.state_dir))
    settings = tmp_path / "config" / "agentrunner" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("runner: {meta: {kind: mock}, worker: {kind: mock}}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    code = await asyncio.to_thread(cli.call, cli.app, ["doctor"], "agentrunner")
    told = capsys.readouterr().out
    assert code == 0
    for kind in ("docker", "bwrap"):
        assert f"What {kind} holds here" in told
    assert told.count("system calls") == 2 and "takes " in told
