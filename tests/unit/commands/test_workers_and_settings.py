"""`workers`, `config show`, and what `run --dry-run` says of a choice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrunner import cli
from agentrunner.config.hosts import checked_host
from agentrunner.discovery.agents import adapter
from agentrunner.registry import WORKERS
from agentrunner.screens.worker_table import settings_screen, workers_screen
from tests.kit.files import write

Golden = Callable[[str, str], None]

TASK = "version: 1\ntask: {prd: {text: x}, test: 'true'}\nrunner: {sandbox: {kind: bwrap}}\n"


class Shell:
    """A command line on a machine of its own."""

    def __init__(self, place: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.place, self._capture = place, capture
        self.bin = place / "bin"
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        code = cli.call(cli.app, list(arguments), "agentrunner")
        self.out, self.err = self._capture.readouterr()
        return code

    def install(self, name: str, version: str) -> None:
        write(self.bin, {name: f"#!/bin/sh\necho '{version}'\n"})


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    repo = tmp_path / "shop"
    for folder in (repo / ".git", tmp_path / "bin"):
        folder.mkdir(parents=True)
    (repo / "t.yaml").write_text(TASK)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    clean = [
        name for kind in WORKERS if kind != "command" for name in adapter(kind, None).key_names
    ]
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CODE_OAUTH_TOKEN", *clean):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_MODEL", "AGENTRUNNER_META_MODEL", "OPENAI_BASE_URL", "META_TIMEOUT_SEC"):
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path, capsys)


def test_every_cli_is_listed_with_what_it_needs_and_reports(shell: Shell) -> None:
    shell.install("codex", "codex-cli 0.169.0")
    assert shell("workers", "--json") == 0
    rows = {row["kind"]: row for row in map(json.loads, shell.out.splitlines())}
    assert list(rows) == [kind for kind in WORKERS if kind not in ("command", "mock")]
    codex = rows["codex-cli"]
    assert (codex["path"], codex["version"]) == (str(shell.bin / "codex"), "0.169.0")
    assert codex["keys"] == {"CODEX_API_KEY": False, "OPENAI_API_KEY": False}
    assert codex["login"]["usable"] is False
    assert codex["reports"]["exit_codes"] is True
    assert rows["claude-code"]["path"] is None
    assert rows["claude-code"]["cure"].startswith("npm install")
    for row in rows.values():
        assert row["verified"]
        assert [checked_host(host) for host in row["needs"]["hosts"]] == row["needs"]["hosts"]


def test_workers_that_others_add_are_listed_and_a_broken_one_hides_none(shell: Shell) -> None:
    settings = shell.place / ".config/agentrunner/config.yaml"
    settings.parent.mkdir(parents=True)
    place = "agentrunner.workers.aider:AiderWorker"
    settings.write_text(f"extensions: {{workers: {{nice: '{place}', gone: 'nowhere_at:All'}}}}\n")
    assert shell("workers", "--json") == 0
    rows = {row["kind"]: row for row in map(json.loads, shell.out.splitlines())}
    assert list(rows)[-2:] == ["nice", "gone"] and rows["codex-cli"]["from"] is None
    assert rows["nice"]["from"] == place and rows["nice"]["reports"]
    assert "No module named 'nowhere_at'" in rows["gone"]["problem"]
    assert shell("workers") == 0
    assert f"nice  not installed\n  from     {place}\n" in shell.out
    assert "gone  does not load\n" in shell.out


def test_the_list_for_people(golden: Golden) -> None:
    rows: list[dict[str, Any]]
    reports = {"exit_codes": True, "actions": True, "tokens": True, "cost": False}
    rows = [
        {
            "kind": "codex-cli", "path": "/home/hana/bin/codex", "version": "0.170.0",
            "tested": "0.169.0", "verified": "codex 0.169.0, real", "problem": "", "cure": "c",
            "needs": {"memory": "1g", "hosts": [], "sandbox": False}, "reports": reports,
            "keys": {"CODEX_API_KEY": True, "OPENAI_API_KEY": False},
            "login": {"usable": False, "text": "Codex is not logged in", "cure": "codex login"},
        },
        {
            "kind": "cursor-cli", "path": None, "version": "", "tested": "",
            "verified": "built from its documentation; not run", "problem": "Not found.",
            "cure": "get \x1b[31mit", "reports": {},
            "needs": {"memory": "", "hosts": ["*.cursor.sh:443"], "sandbox": True},
            "keys": {}, "login": None,
        },
        {
            "kind": "qwen-code", "path": "/opt/qwen", "version": "", "tested": "0.15.10",
            "verified": "qwen 0.15.10, real", "problem": "/opt/qwen does not run: exit 1",
            "cure": "c", "reports": reports, "keys": {"OPENAI_API_KEY": False}, "login": None,
            "needs": {"memory": "2g", "hosts": [], "sandbox": False},
        },
    ]  # fmt: skip
    golden("screens/workers.txt", workers_screen(rows, "/home/hana") + "\n")


def test_settings_for_people(golden: Golden) -> None:
    settings = [
        ("runner.budget.usd", "5", "/home/hana/.config/agentrunner/config.yaml:2"),
        ("runner.meta.model", "gpt-5.5", "OPENAI_MODEL"),
        ("runner.worker.flags", json.dumps(["--long-flag"] * 6), "task.yaml:9"),
    ]
    files = [
        ("/repo/agentrunner.yaml", False),
        ("/home/hana/.config/agentrunner/config.yaml", True),
    ]
    golden("screens/config.txt", settings_screen(settings, files, "/home/hana") + "\n")


def test_config_show_without_and_with_a_task(shell: Shell) -> None:
    assert shell("config", "show") == 0
    assert shell.out.startswith("Every setting has its default.\n")
    own = shell.place / ".config" / "agentrunner" / "config.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("runner: {budget: {usd: 2}}\n")
    assert shell("config", "show", "t.yaml") == 0
    assert shell.out.splitlines()[:2] == [
        "runner.budget.usd    2      ~/.config/agentrunner/config.yaml:1",
        "runner.sandbox.kind  bwrap  t.yaml:3",
    ]
    assert "~/.config/agentrunner/config.yaml  read" in shell.out
    place = "agentrunner.workers.aider:AiderWorker"
    own.write_text(f"notify: bell\nextensions:\n  workers: {{nice: '{place}'}}\n")
    assert shell("config", "show") == 0
    where = "~/.config/agentrunner/config.yaml"
    rows = [" ".join(line.split()) for line in shell.out.splitlines()]
    assert f"notify bell {where}:1" in rows and f"extensions.workers.nice {where}:3" in rows
    assert place in rows
    own.write_text("runner: {budgte: {}}\n")
    assert shell("config", "show") == 2
    assert "did you mean budget?" in shell.err


def header(text: str) -> str:
    """The top of the screen, on one line."""
    return " ".join(text.split("Nothing was started")[0].split())


def test_the_choice_is_shown_with_its_reason(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.install("claude", "2.1.197 (Claude Code)")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "1" * 30)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "1" * 30)
    assert shell("run", "t.yaml", "--dry-run") == 0
    top = header(shell.out)
    assert "planner openai-chat gpt-5.5 at api.openai.com" in top
    assert "(chosen: OPENAI_API_KEY is set)" in top
    assert "worker claude-code 2.1.197" in top and "(chosen: ANTHROPIC_API_KEY is set)" in top


def test_what_is_named_is_not_chosen(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.install("claude", "2.1.197")
    shell.install("codex", "0.169.0")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "1" * 30)
    monkeypatch.setenv("CODEX_API_KEY", "sk-" + "1" * 30)
    assert shell("run", "t.yaml", "--planner", "checklist", "--worker", "Codex", "--dry-run") == 0
    assert "chosen" not in shell.out
    assert "worker codex-cli 0.169.0" in header(shell.out)


def test_nobody_to_choose_ends_with_five_and_the_ways(shell: Shell) -> None:
    shell.install("codex", "0.169.0")
    assert shell("run", "-g", "x", "--dry-run") == 5
    assert "Nothing here can plan this task" in header(shell.out)
    assert shell("run", "-g", "x") == 5
    assert "error[no-planner]" in shell.err and "--test CMD" in shell.err
    assert shell("run", "t.yaml") == 5
    assert "error[worker-not-ready]" in shell.err and "export CODEX_API_KEY=…" in shell.err
    assert not (shell.place / "state" / "runs").exists()


def test_a_policy_keeps_a_kind_out_of_the_choice(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.install("claude", "2.1.197")
    shell.install("codex", "0.169.0")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-" + "1" * 30)
    monkeypatch.setenv("CODEX_API_KEY", "sk-" + "1" * 30)
    policy = shell.place / "policy.yaml"
    policy.write_text("version: 1\nworker: {kinds: [claude-code]}\nmeta: {kinds: [checklist]}\n")
    policy.chmod(0o600)
    assert shell("run", "t.yaml", "--dry-run", "--policy", str(policy)) == 0
    top = header(shell.out)
    assert "planner checklist (no model) (chosen:" in top
    # A policy's path is too long for one line.
    assert "; not claude-code:" in top.split("worker ")[0]
    assert "; not codex-cli:" in top.split("worker ")[1]


def test_an_extension_that_fails_is_told_with_the_line_that_failed(shell: Shell) -> None:
    broken = shell.place / "mine.py"
    broken.write_text("\nraise ValueError('no such thing')\n")
    own = f"extensions:\n  workers: {{mine: {broken}:Mine}}\n"
    write(shell.place, {".config/agentrunner/config.yaml": own})
    assert shell("run", "-g", "x", "--test", "true", "--worker", "mine", "--planner", "mock") == 2
    assert f"nosuchthing({broken}:2)" in "".join(shell.err.split())
