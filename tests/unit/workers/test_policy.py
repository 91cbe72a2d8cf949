from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentrunner.errors import ProtocolError
from agentrunner.task.spec import WorkerSpec
from agentrunner.workers.make import make_worker
from agentrunner.workers.policy import MAX_PROMPT_BYTES, check_call


@dataclass(frozen=True)
class Asked:
    worker_type: str = "codex-cli"
    mode: str = "exec"
    prompt: str = "Do it."
    model: str | None = None
    flags: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    tool_specific: Mapping[str, Any] = field(default_factory=dict)


def check(asked: Asked, **spec: object) -> None:
    settings = WorkerSpec.model_validate(spec)
    check_call(asked, settings, make_worker(settings))


def refusal(asked: Asked, **spec: object) -> str:
    """Where the call is refused."""
    with pytest.raises(ProtocolError) as refused:
        check(asked, **spec)
    assert refused.value.code == "invalid"
    assert refused.value.message.startswith("refused by the task: ")
    return refused.value.path


@pytest.mark.parametrize(
    "asked",
    [
        Asked(),
        Asked(worker_type="codex"),
        Asked(worker_type="Codex_CLI"),
        Asked(mode="resume"),
        Asked(model=""),
        Asked(model="gpt-5.5"),
        Asked(flags=["-c", "model_reasoning_effort=high"]),
        Asked(flags=["--config", 'model_reasoning_effort="low"']),
        Asked(flags=["--config=model_reasoning_effort=medium"]),
        Asked(env={"CI": "1", "LC_ALL": "C.UTF-8", "NODE_ENV": "test"}),
        Asked(prompt="--help"),
        Asked(prompt="-c x=y\n$(touch x)"),
        Asked(prompt="x" * MAX_PROMPT_BYTES),
    ],
    ids=range(13),
)
def test_what_the_task_allows(asked: Asked) -> None:
    check(asked, model="gpt-5.5")


HOSTILE_FLAGS: list[Sequence[str]] = [
    ["--dangerously-bypass-approvals-and-sandbox"],
    ["--dangerously-skip-permissions"],
    ["--full-auto"],
    ["-m", "gpt-6"],
    ["--model=gpt-6"],
    ["-s", "danger-full-access"],
    ["--add-dir", "/"],
    ["-C", "/"],
    ["--enable", "plugins"],
    ["-p", "evil"],
    ["-"],
    ["resume", "--last"],
    [""],
    ["-c"],
    ["-c", ""],
    ["-c", "model_reasoning_effort=ultra"],
    ["-c", "model_reasoning_effort=low\n"],
    ["-c", "model_reasoning_effort=low,model=x"],
    ["-c", 'model_providers.ar.base_url="http://evil"'],
    ["-c", "shell_environment_policy.ignore_default_excludes=true"],
    ["-c=model_reasoning_effort=low"],
    ["-cmodel_provider=evil"],
    ["--config=sandbox_mode=x"],
    ["-c", "model_reasoning_effort=low", "--oss"],
    ["-c", "model_reasoning_effort=low"] * 20,
]
HOSTILE_ENV: list[Mapping[str, str]] = [
    {"LD_PRELOAD": "/tmp/x.so"},
    {"LD_LIBRARY_PATH": "."},
    {"PATH": "."},
    {"HOME": "/"},
    {"CODEX_HOME": "/"},
    {"OPENAI_BASE_URL": "http://evil"},
    {"ANTHROPIC_BASE_URL": "http://evil"},
    {"HTTPS_PROXY": "http://evil"},
    {"ALL_PROXY": "http://evil"},
    {"http_proxy": "http://evil"},
    {"GIT_SSH_COMMAND": "touch x"},
    {"NODE_OPTIONS": "--require ./x.js"},
    {"PYTHONPATH": "."},
    {"PYTHONSTARTUP": "x"},
    {"BASH_ENV": "./x"},
    {"ENV": "./x"},
    {"PROMPT_COMMAND": "touch x"},
    {"PERL5OPT": "-Mx"},
    {"RUBYOPT": "-rx"},
    {"OPENAI_API_KEY": "sk"},
    {"AR_MODEL_KEY": "sk"},
    {"SSL_CERT_FILE": "x"},
    {"": "x"},
    {"A=B": "x"},
    {"CI\n": "x"},
    {"CI\0": "x"},
    {"Ｃ": "x"},
    {"CI": "env:AWS_SECRET_ACCESS_KEY"},
    {"CI": "literal:x"},
    {"CI": "a\0b"},
    {"CI": "a\nb"},
    {"CI": "\ud800"},
    {"CI": "x" * 1_001},
]
HOSTILE = [
    Asked(worker_type="claude-code"),
    Asked(worker_type="mock"),
    Asked(worker_type=""),
    Asked(worker_type="codex-cli; rm -rf /"),
    Asked(mode="fork"),
    Asked(mode=""),
    Asked(model="gpt-6"),
    Asked(model="gpt-5.5 --oss"),
    Asked(tool_specific={"x": 1}),
    Asked(prompt=" \n"),
    Asked(prompt="a\0b"),
    Asked(prompt="\ud800"),
    Asked(prompt="あ" * (MAX_PROMPT_BYTES // 3 + 1)),
    *(Asked(flags=flags) for flags in HOSTILE_FLAGS),
    *(Asked(env=env) for env in HOSTILE_ENV),
]


@pytest.mark.parametrize("asked", HOSTILE, ids=range(len(HOSTILE)))
def test_what_the_task_does_not_allow(asked: Asked) -> None:
    place = refusal(asked, model="gpt-5.5")
    changed = [name for name in vars(asked) if getattr(asked, name) != getattr(Asked(), name)]
    assert place.split(".")[:2] == ["worker_call", *changed]


def test_the_place_names_the_flag() -> None:
    flags = ["-c", "model_reasoning_effort=low", "--oss"]
    assert refusal(Asked(flags=flags)) == "worker_call.flags.2"


def test_a_model_is_refused_where_the_task_names_none() -> None:
    assert refusal(Asked(model="gpt-5.5")) == "worker_call.model"


def test_the_mock_answers_to_every_type() -> None:
    for kind in ("codex-cli", "claude-code", "anything"):
        check(Asked(worker_type=kind), kind="mock")


def test_a_command_worker_takes_no_flags() -> None:
    asked = Asked(worker_type="command", flags=["-c", "model_reasoning_effort=low"])
    assert refusal(asked, kind="command", command=["sh"]) == "worker_call.flags.0"
