"""`doctor --fix`: each offered, done after a yes, and only named where nobody can be asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agentrunner.commands import fixing, setup
from agentrunner.commands.console import Output
from agentrunner.sandboxes.docker.recipes import ALL_IN_ONE
from agentrunner.screens.doctor import DoctorItem, DoctorReport
from tests.kit.fake_engine import fake_engine
from tests.unit.commands.shell import Shell


@pytest.fixture
def doctor(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    report = DoctorReport(
        "here", [("Boxes", [DoctorItem("ok", "bwrap", "0.9")])], "Ready", ready=True
    )
    monkeypatch.setattr(setup, "examine", lambda *_, **__: report)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return shell


def test_without_a_terminal_it_only_names_what_it_can_do(doctor: Shell) -> None:
    assert doctor("doctor", "--fix") == 0
    assert "not done  add .agent-runner/ to .gitignore" in doctor.out
    assert "agentrunner doctor --fix --yes" in doctor.out
    assert not (doctor.repo / ".gitignore").exists()


def test_with_yes_it_is_done_and_once(doctor: Shell) -> None:
    assert doctor("doctor", "--fix", "--yes", "--json") == 0
    done = json.loads(doctor.out)["fixes"]
    assert [one["done"] for one in done] == [True, True]
    assert (doctor.repo / ".gitignore").read_text() == ".agent-runner/\n"
    settings = doctor.repo.parent / ".config" / "agentrunner" / "config.yaml"
    assert "# notify:" in settings.read_text()
    assert doctor("config", "show") == 0, "what was written can be read"
    assert doctor("doctor", "--fix") == 0 and "There is nothing to fix." in doctor.out
    assert doctor("doctor", "--yes") == 2
    assert doctor("doctor", "--fix", "--sandbox", "bwrap") == 2


def test_what_fails_is_said_and_the_rest_is_done(doctor: Shell) -> None:
    (doctor.repo / ".gitignore").symlink_to("elsewhere")
    assert doctor("doctor", "--fix", "--yes") == 0
    assert "is a link and is left alone." in " ".join(doctor.out.split())
    assert "done      write a file for your settings" in doctor.out


def test_an_image_is_built_on_an_engine_that_has_none_and_once(
    doctor: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_engine(tmp_path / "docker.sock") as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        assert doctor("doctor", "--fix") == 0 and engine.built == []
        name = ALL_IN_ONE.image
        told = f"build the Docker image {name}: A Docker engine answers and has no image of ours."
        assert told in " ".join(doctor.out.split())
        assert doctor("doctor", "--fix", "--yes", "--json") == 0
        done = json.loads(doctor.out)["fixes"][-1]
        assert done == {"what": f"build the Docker image {name}", "done": True, "text": name}
        assert engine.built == [name] and f"Built {name}, sha256:" in doctor.err
        assert doctor("doctor", "--fix") == 0 and "There is nothing to fix." in doctor.out


def test_an_image_that_cannot_be_built_is_told_and_offered_again(
    doctor: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_engine(tmp_path / "docker.sock", build=500) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        assert doctor("doctor", "--fix", "--yes") == 0
        assert "not done  build the Docker image" in doctor.out and "fake 500" in doctor.out
        assert doctor("doctor", "--fix") == 0 and "build the Docker image" in doctor.out


def test_bubblewrap_goes_into_our_own_environment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentrunner.sandboxes import bwrap_program

    monkeypatch.setattr(bwrap_program, "USUAL_FOLDERS", ())
    monkeypatch.setattr(bwrap_program, "bundled_bwrap", lambda: None)
    offered = [fix for fix in fixing.fixes(tmp_path, {"PATH": ""}, "codex-cli") if fix.readies]
    assert [sys.prefix in fix.why for fix in offered] == [True]
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert not [fix for fix in fixing.fixes(tmp_path, {"PATH": ""}, "codex-cli") if fix.readies]
    assert fixing.carry_out([], yes=True, output=Output()) == []
