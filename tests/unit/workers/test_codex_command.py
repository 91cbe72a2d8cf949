from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.errors import UsageError
from agentrunner.workers.base import WorkerCommand, WorkerRequest
from agentrunner.workers.codex import CodexWorker
from tests.kit.files import write

SECRET = "sk-secret-0123456789"
PROVIDER = (
    'model_providers.ar={name="ar",base_url="http://127.0.0.1:9/v1",env_key="AR_MODEL_KEY",'
    'wire_api="responses",request_max_retries=2,stream_max_retries=2,'
    'stream_idle_timeout_ms=120000,env_http_headers={"chatgpt-account-id"="AR_ACCOUNT_ID"}}'
)


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    return make_program(tmp_path / "bin" / "codex")


def make_program(path: Path, text: str = "#!/bin/sh\necho codex-cli 1.2.3\n") -> Path:
    write(path.parent, {path.name: text})
    path.chmod(0o755)
    return path


def order(prompt: str = "do it", **changes: object) -> WorkerRequest:
    home = Path("/state/box")
    fields: dict[str, object] = {
        "worker_run_id": "w1",
        "prompt": prompt,
        "workdir": Path("/src/repo"),
        "home": home,
        "prompt_file": home / "prompt.md",
    }
    return WorkerRequest(**(fields | changes))  # type: ignore[arg-type]


def command(binary: Path, call: WorkerRequest | None = None, **spec: object) -> WorkerCommand:
    settings = WorkerSpec.model_validate({"command": [str(binary)], **spec})
    return CodexWorker(settings).command(call or order())


def provider(made: WorkerCommand) -> dict[str, object]:
    word = next(word for word in made.argv if word.startswith("model_providers.ar="))
    table = tomllib.loads(word)
    fields = table["model_providers"]["ar"]
    assert isinstance(fields, dict)
    return fields


def test_the_whole_command_line(binary: Path) -> None:
    made = command(binary, model="gpt-5.5", base_url="http://127.0.0.1:9/v1")
    assert made.argv == (
        *(str(binary), "exec", "--json", "--skip-git-repo-check", "-C", "/src/repo"),
        *("-m", "gpt-5.5", "-c", "model_provider=ar"),
        "-c",
        PROVIDER,
        "--dangerously-bypass-approvals-and-sandbox",
        *("--disable", "plugins", "-c", "analytics.enabled=false"),
        *("-c", "check_for_update_on_startup=false"),
        *("-c", "shell_environment_policy.ignore_default_excludes=false"),
        *("-o", "/state/box/last-message.txt", "-"),
    )
    assert made.stdin == b"do it"
    assert made.key_env == "AR_MODEL_KEY"
    assert made.stop_signal == "INT"


def test_the_provider_is_openai_unless_the_task_says_otherwise(binary: Path) -> None:
    assert provider(command(binary))["base_url"] == "https://api.openai.com/v1"
    named = command(binary, base_url="http://model.test/v1?a=%22")
    assert provider(named)["base_url"] == "http://model.test/v1?a=%22"


@pytest.mark.parametrize("url", ["ftp://x", "http://a b", 'http://a\n"', "model.test/v1"])
def test_a_base_url_that_is_none_is_refused(binary: Path, url: str) -> None:
    with pytest.raises(UsageError) as refusal:
        command(binary, base_url=url)
    assert refusal.value.path == "runner.worker.base_url"


def test_a_resumed_session_comes_before_the_prompt(binary: Path) -> None:
    made = command(binary, order(mode="resume", session_id="abc"))
    assert made.argv[-3:] == ("resume", "abc", "-")


def test_resume_without_a_session_is_a_fresh_one(binary: Path) -> None:
    assert "resume" not in command(binary, order(mode="resume")).argv


def test_without_our_sandbox_the_bypass_flag_is_not_used(binary: Path) -> None:
    argv = command(binary, order(sandboxed=False)).argv
    assert "--dangerously-bypass-approvals-and-sandbox" not in argv
    assert argv[argv.index("-s") + 1] == "workspace-write"


def test_the_model_of_the_call_wins_and_none_is_none(binary: Path) -> None:
    argv = command(binary, order(model="b"), model="a").argv
    assert argv[argv.index("-m") + 1] == "b"
    assert "-m" not in command(binary).argv


def test_the_tasks_flags_come_after_the_models(binary: Path) -> None:
    argv = command(binary, order(flags=("-c", "x=1")), flags=["-c", "x=2"]).argv
    assert argv[-5:] == ("-c", "x=1", "-c", "x=2", "-")


def test_codex_home_is_in_the_runs_folder_and_not_under_tmpdir(binary: Path) -> None:
    made = command(binary)
    home, scratch = Path(made.env["CODEX_HOME"]), Path(made.env["TMPDIR"])
    assert home.parent == Path("/state/box")
    assert not home.is_relative_to(scratch)
    assert set(made.folders) == {home, scratch}


@pytest.mark.parametrize("prompt", ["--help", "-c x=y", "\n", "$(touch x)", "日本語 \u2028"])
def test_the_prompt_is_never_an_argument(binary: Path, prompt: str) -> None:
    made = command(binary, order(prompt))
    assert made.argv == command(binary).argv
    assert made.stdin == prompt.encode()


def test_no_secret_is_in_the_command(binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    made = command(binary, env={"CODEX_API_KEY": SECRET})
    assert SECRET not in repr(made)


@pytest.mark.parametrize("setting", ["codex", "./codex", ["codex", "exec"], ["bin/codex"]])
def test_the_command_setting_is_one_absolute_path(setting: object) -> None:
    with pytest.raises(UsageError):
        CodexWorker(WorkerSpec.model_validate({"command": setting}))


def test_the_binary_is_found_by_setting_then_environment_then_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = (make_program(tmp_path / name / "codex") for name in "abc")
    monkeypatch.setenv("PATH", str(three.parent))
    monkeypatch.delenv("AGENTRUNNER_CODEX", raising=False)
    assert CodexWorker(WorkerSpec()).program() == str(three)
    monkeypatch.setenv("AGENTRUNNER_CODEX", str(two))
    assert CodexWorker(WorkerSpec()).program() == str(two)
    assert CodexWorker(WorkerSpec(command=str(one))).program() == str(one)


def test_a_missing_binary_is_said_with_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("AGENTRUNNER_CODEX", raising=False)
    worker = CodexWorker(WorkerSpec())
    assert worker.probe().path is None
    assert "not found" in worker.probe().problem
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert re.match(r"npm install -g @openai/codex@\d", worker.probe().cure)
    # npm's own folder is root's on most systems.
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert worker.probe().cure.startswith("npm install -g --prefix ~/.local @openai/codex@")
    assert worker.command(order()).argv[0] == "codex"  # as an image has it


def test_the_version_is_probed(binary: Path) -> None:
    probe = CodexWorker(WorkerSpec(command=str(binary))).probe()
    assert (probe.path, probe.version, probe.problem) == (binary, "1.2.3", "")


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "not a program"])
def test_a_binary_that_does_not_run_is_a_problem_and_no_exception(
    tmp_path: Path, text: str
) -> None:
    broken = make_program(tmp_path / "codex", text)
    probe = CodexWorker(WorkerSpec(command=str(broken))).probe()
    assert probe.path == broken
    assert "does not run" in probe.problem
