from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.spec import RunnerSection
from agentrunner.errors import ProtocolError
from agentrunner.protocol import WorkerCall
from agentrunner.workers.member import make_members
from agentrunner.workers.policy import MAX_PROMPT_BYTES, check_call
from tests.kit.task_specs import task_spec_of


def asked(**changes: object) -> WorkerCall:
    """A call that is not validated, so that each rule has to hold by itself."""
    usual = {"worker_type": "codex-cli", "mode": "exec", "prompt": "Do it."}
    return WorkerCall.model_construct(**usual | changes)  # type: ignore[arg-type]


def check(call: WorkerCall, **spec: object) -> None:
    settings = WorkerSpec.model_validate(spec)
    check_call(call, make_members(task_spec_of(runner=RunnerSection(worker=settings))))


def refusal(call: WorkerCall, **spec: object) -> str:
    """Where the call is refused."""
    with pytest.raises(ProtocolError) as refused:
        check(call, **spec)
    assert refused.value.fault == "invalid"
    assert refused.value.message.startswith("refused by the task: ")
    return refused.value.path


@pytest.mark.parametrize(
    "call",
    [
        asked(),
        asked(worker_type="codex"),
        asked(worker_type="Codex_CLI"),
        asked(mode="resume"),
        asked(model=""),
        asked(model="gpt-5.5"),
        asked(flags=["-c", "model_reasoning_effort=high"]),
        asked(flags=["--config", 'model_reasoning_effort="low"']),
        asked(flags=["--config=model_reasoning_effort=medium"]),
        asked(env={"CI": "1", "LC_ALL": "C.UTF-8", "NODE_ENV": "test"}),
        asked(prompt="--help"),
        asked(prompt="-c x=y\n$(touch x)"),
        asked(prompt="x" * MAX_PROMPT_BYTES),
    ],
    ids=range(13),
)
def test_what_the_task_allows(call: WorkerCall) -> None:
    check(call, model="gpt-5.5")


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
    asked(worker_type="claude-code"),
    asked(worker_type="mock"),
    asked(worker_type=""),
    asked(worker_type="codex-cli; rm -rf /"),
    asked(mode="fork"),
    asked(mode=""),
    asked(model="gpt-6"),
    asked(model="gpt-5.5 --oss"),
    asked(tool_specific={"x": 1}),
    asked(prompt=" \n"),
    asked(prompt="a\0b"),
    asked(prompt="\ud800"),
    asked(prompt="あ" * (MAX_PROMPT_BYTES // 3 + 1)),
    *(asked(flags=flags) for flags in HOSTILE_FLAGS),
    *(asked(env=env) for env in HOSTILE_ENV),
]


@pytest.mark.parametrize("call", HOSTILE, ids=range(len(HOSTILE)))
def test_what_the_task_does_not_allow(call: WorkerCall) -> None:
    place = refusal(call, model="gpt-5.5")
    changed = [name for name in vars(call) if getattr(call, name) != getattr(asked(), name)]
    assert place.split(".")[:2] == ["worker_call", *changed]


def test_the_place_names_the_flag() -> None:
    flags = ["-c", "model_reasoning_effort=low", "--oss"]
    assert refusal(asked(flags=flags)) == "worker_call.flags.2"


def test_a_model_is_refused_where_the_task_names_others_and_left_out_where_it_names_none() -> None:
    check(asked(model="gpt-5.5"))
    check(asked(model="none"), model="gpt-5.4")
    assert refusal(asked(model="gpt-5.5"), models=["gpt-5.4"]) == "worker_call.model"


def test_the_mock_answers_to_every_type() -> None:
    for kind in ("codex-cli", "claude-code", "anything"):
        check(asked(worker_type=kind), kind="mock")


def test_a_command_worker_takes_no_flags() -> None:
    call = asked(worker_type="command", flags=["-c", "model_reasoning_effort=low"])
    assert refusal(call, kind="command", command=["sh"]) == "worker_call.flags.0"
