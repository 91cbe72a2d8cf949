"""`doctor` says Ready exactly where `run` would begin."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from agentrunner.commands import planner_probe
from agentrunner.commands.chosen import Taken, chosen
from agentrunner.commands.obstacles import obstacles
from agentrunner.commands.planner_probe import NOT_ASKED
from tests.kit.bwrap import require_bwrap
from tests.unit.commands.test_workers_and_settings import Shell, shell

__all__ = ["shell"]  # a fixture

BASE_URL = "runner:\n  worker:\n    base_url: http://127.0.0.1:9/v1\n"


def settings(shell: Shell, text: str) -> None:
    place = shell.place / ".config" / "agentrunner" / "config.yaml"
    place.parent.mkdir(parents=True)
    place.write_text(text)


def lacks(shell: Shell) -> str:
    """What keeps a task that names nobody from starting, as `doctor` reports it."""
    taken = chosen(Path.cwd(), os.environ, shell.place / "state", True, None)
    lack = taken.lacking(in_image=False)
    return lack.text if lack else ""


def refused(shell: Shell) -> bool:
    """Whether `run` would refuse the same task."""
    words = ("-g", "x", "--test", "true", "--sandbox", "bwrap")
    return shell("run", *words, "--dry-run") == 5


@pytest.mark.parametrize(
    ("text", "environ", "lacking"),
    [
        (BASE_URL, {}, ""),
        (BASE_URL, {"CODEX_API_KEY": "sk-" + "1" * 30}, ""),
        ("runner: {worker: {kind: codex-cli}}\n", {}, "needs a key for its model"),
        ("runner: {worker: {kind: codex-cli}}\n", {"CODEX_API_KEY": "sk-" + "1" * 30}, ""),
        ("runner: {worker: {kind: claude-code}}\n", {}, "claude"),
        ("runner: {worker: {kind: mock}}\n", {}, ""),
        ("runner: {worker: {kind: command, command: [sh, no/agent.sh]}}\n", {}, "is not there"),
        ("runner: {worker: {kind: mock}, meta: {kind: openai-chat}}\n", {}, "OPENAI_API_KEY"),
        ("{}\n", {}, "nothing that may be used has a way to its model"),
    ],
)
def test_the_same_is_missing(
    text: str,
    environ: dict[str, str],
    lacking: str,
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    shell.install("codex", "codex-cli 0.169.0")
    settings(shell, text)
    said = lacks(shell)
    assert (lacking in said) if lacking else not said
    assert refused(shell) is bool(lacking)


def test_a_key_without_a_cli_is_enough_only_where_an_image_may_have_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "1" * 30)
    taken = chosen(Path.cwd(), os.environ, shell.place / "state", True, None)
    lack = taken.lacking(in_image=False)
    assert lack is not None and lack.name == "worker" and "is not found" in lack.text
    assert taken.lacking(in_image=True) is None
    assert refused(shell)


def test_without_git_nothing_begins(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.install("codex", "codex-cli 0.169.0")
    for name in ("sh", "env", "cat"):
        (shell.bin / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(shell.bin))
    [item] = obstacles(Path.cwd(), shell.place / "state", "")
    assert (item.mark, item.name, item.cure) == ("FAIL", "git", "install git")
    assert shell("doctor", "--no-try") == 5
    assert "ok git branch" not in " ".join(shell.out.split())
    assert "Not ready: git: git is not installed" in " ".join(shell.out.split())


def test_a_bare_repository_is_not_called_none(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    monkeypatch.chdir(bare)
    assert shell("doctor", "--no-try") == 5
    said = " ".join(shell.out.split())
    assert "is a bare repository" in said and "it works without" not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}\n", "the change and the repository: runner.meta.see is repo, the default"),
        ("runner: {meta: {see: change}}\n", "the change: runner.meta.see is change, "),
        ("runner: {meta: {see: nothing}}\n", "nothing of the code: runner.meta.see is nothing, "),
    ],
)
def test_doctor_says_what_the_planner_sees_and_who_says_so(
    text: str, words: str, shell: Shell
) -> None:
    settings(shell, text)
    environ = {**os.environ, "OPENAI_API_KEY": "sk-not-real"}
    taken = chosen(Path.cwd(), environ, shell.place / "state", True, None)
    [item] = [one for one in taken.items if one.name == "planner sees"]
    assert item.text.startswith(words)
    assert "default" in item.text or "config.yaml" in item.text


def test_a_planner_that_was_not_asked_is_not_called_good(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on this machine is connected to, and nothing is sent to any model."""
    settings(shell, "runner: {worker: {kind: mock}, meta: {kind: openai-chat}}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "1" * 30)

    def looks() -> Taken:
        place = shell.place / "state"
        return chosen(Path.cwd(), os.environ, place, True, None, connect=True)

    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{host}:{port}/v1")
        told = next(item for item in looks().items if item.name == NOT_ASKED)
        assert "takes a connection; nothing was sent" in told.text
        assert (
            "agentrunner doctor --planner" in told.cure and looks().lacking(in_image=False) is None
        )
    lack = looks().lacking(in_image=False)
    assert lack is not None and f"{port} takes no connection" in lack.text
    assert "doctor --planner" in lack.cure
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert any(item.name == NOT_ASKED and item.cure for item in looks().items), "nothing is tried"


def test_names_and_addresses_together_are_waited_for_so_long(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(shell, "runner: {worker: {kind: mock}, meta: {kind: openai-chat}}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "1" * 30)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setattr(planner_probe, "CONNECT_SEC", 0.05)
    found = threading.Event()

    def endless(*_: object, **__: object) -> list[object]:
        found.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", endless)
    taken = chosen(Path.cwd(), os.environ, shell.place / "state", True, None, connect=True)
    found.set()
    lack = taken.lacking(in_image=False)
    assert lack is not None
    assert "localhost:1 takes no connection: no answer within 0.05 s" in lack.text


def test_a_dry_run_misses_a_script_that_only_the_sandbox_hides(
    shell: Shell, tmp_path: Path
) -> None:
    require_bwrap()
    script = shell.place / "elsewhere" / "agent.sh"
    script.parent.mkdir()
    script.write_text("true\n")
    hidden = f"runner: {{worker: {{kind: command, command: [sh, {script}]}}}}\n"
    settings(shell, hidden)
    assert refused(shell)
    assert "not in the sandbox" in " ".join(shell.out.split())
    shown = ("--set", f"runner.sandbox.read_paths=[{script.parent}]")
    words = ("-g", "x", "--test", "true", "--sandbox", "bwrap", "--dry-run", *shown)
    assert shell("run", *words) == 0
