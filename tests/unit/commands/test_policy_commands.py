"""`--policy` on the command line, and what validate, doctor and schema tell of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.policy_findings import login_findings, policy_findings
from tests.kit.token_issuer import EMAIL, TokenIssuer
from tests.unit.commands.fake_engine import TASK


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A policy, with a repository as the current folder."""
    repo = tmp_path / "shop"
    (repo / ".git").mkdir(parents=True)
    (repo / "t.yaml").write_text(f"{TASK}runner: {{budget: {{usd: 5}}}}\n", encoding="utf-8")
    monkeypatch.chdir(repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("AGENTRUNNER_POLICY", raising=False)
    monkeypatch.setenv("CODEX_API_KEY", "k")  # somebody has to be there to work
    path = tmp_path / "policy.yaml"
    path.touch(mode=0o600)
    return path


def call(*arguments: str | Path) -> int:
    return cli.call(cli.app, [str(argument) for argument in arguments], "agentrunner")


def test_validate_names_the_policy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("version: 1\nbudget: {usd: 5}\n", encoding="utf-8")
    assert call("validate", "t.yaml", "--policy", file) == 0
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    assert f"policy  {file} (sha256 {digest})" in capsys.readouterr().out


@pytest.mark.parametrize("command", [("validate",), ("run",), ("run", "--dry-run")])
def test_a_breach_is_exit_2_with_both_lines(
    command: tuple[str, ...], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("version: 1\nbudget: {usd: 1}\n", encoding="utf-8")
    assert call(*command, "t.yaml", "--policy", file) == 2
    told = capsys.readouterr().err
    assert "error[policy-breach]: runner.budget.usd is 5; the policy allows 1." in told
    assert "at t.yaml:8     runner: {budget: {usd: 5}}" in told
    assert f"policy: {file}:2" in told
    assert not (tmp_path / "state" / "runs").exists()


def test_the_variable_does_the_same_and_both_count(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("version: 1\nbudget: {usd: 1}\n", encoding="utf-8")
    wide = file.with_name("wide.yaml")
    wide.touch(mode=0o600)
    wide.write_text("version: 1\n", encoding="utf-8")
    monkeypatch.setenv("AGENTRUNNER_POLICY", str(file))
    assert call("validate", "t.yaml") == 2
    assert call("validate", "t.yaml", "--policy", wide) == 2


def test_doctor_tells_what_is_in_force(file: Path, tmp_path: Path) -> None:
    file.write_text("version: 1\n", encoding="utf-8")
    (finding,) = policy_findings(file, {"HOME": str(tmp_path)}, tmp_path / "shop")
    assert (finding.mark, finding.name) == ("ok", "policy")
    assert finding.text.startswith("~/policy.yaml (sha256 ")
    file.chmod(0o666)
    (finding,) = policy_findings(file, {}, tmp_path / "shop")
    assert (finding.mark, finding.cure) == ("FAIL", f"chmod go-w {file}")


def test_doctor_tells_of_logins_without_a_token(tmp_path: Path) -> None:
    with TokenIssuer() as issuer:
        document = issuer.write_login(tmp_path / ".codex" / "auth.json")
    codex, claude = login_findings(["codex-cli", "command", "claude-code"], {"HOME": str(tmp_path)})
    assert (codex.mark, codex.name) == ("ok", "codex-cli")
    assert EMAIL in codex.text and "expires 20" in codex.text
    assert not any(token in codex.text for token in document["tokens"].values())
    assert (claude.mark, claude.name) == ("--", "claude-code")
    assert "claude setup-token" in claude.cure


def test_the_schema_of_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("schema", "policy") == 0
    schema = json.loads(capsys.readouterr().out)
    assert set(schema["properties"]) >= {"sandbox", "worker", "meta", "budget", "completion"}
