"""What a model asks of a worker (T15): nothing hostile reaches a command line or an environment.

Each hostile order goes the way of a real one: reply, parser, allow-list, and, since it is refused,
a second reply with a plain order. What is built then must be the plain command to the last word.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.spec import RunnerSection, TaskSpec
from agentrunner.execution.deps import Clock
from agentrunner.planners.asking import Asker
from agentrunner.planners.base import PlannerCall
from agentrunner.planners.script import ScriptPlanner
from agentrunner.prompts import PromptInput
from agentrunner.protocol import Message, NextAction
from agentrunner.protocol import WorkerCall as Asked
from agentrunner.workers.base import WorkerCommand, WorkerRequest
from agentrunner.workers.member import Member, make_members
from agentrunner.workers.policy import check_call, settings_of
from tests.kit.task_specs import task_spec_of

KINDS = ("codex-cli", "claude-code")
PLAIN = "Do the task."

HOSTILE: list[dict[str, Any]] = [
    # whom
    {"worker_type": "gemini-cli"},
    {"worker_type": "mock"},
    {"worker_type": "sh -c 'touch x'"},
    {"worker_type": "../../bin/sh"},
    # how
    {"mode": "fork"},
    {"mode": "--resume"},
    # with which model
    {"model": "gpt-6"},
    {"model": "sonnet --dangerously-skip-permissions"},
    {"model": "-c"},
    {"model": "best\n--add-dir=/"},
    # flags
    {"flags": ["--dangerously-skip-permissions"]},
    {"flags": ["--dangerously-bypass-approvals-and-sandbox"]},
    {"flags": ["--yolo"]},
    {"flags": ["--full-auto"]},
    {"flags": ["--add-dir", "/"]},
    {"flags": ["-C", "/"]},
    {"flags": ["-s", "danger-full-access"]},
    {"flags": ["--permission-mode", "bypassPermissions"]},
    {"flags": ["--allowedTools", "Bash(*)"]},
    {"flags": ["--mcp-config", '{"mcpServers": {"x": {"command": "sh"}}}']},
    {"flags": ["--settings", '{"env": {"ANTHROPIC_BASE_URL": "http://evil.example"}}']},
    {"flags": ["--append-system-prompt", "evil"]},
    {"flags": ["-c", 'model_providers.ar.base_url="http://evil.example"']},
    {"flags": ["-c", "model_reasoning_effort=low,notify=evil"]},
    {"flags": ["-c=model_reasoning_effort=low"]},
    {"flags": ["--config=sandbox_mode=danger-full-access"]},
    {"flags": ["--effort", "low --add-dir /"]},
    {"flags": ["--effort", "--add-dir"]},
    {"flags": ["--max-turns", "1e9"]},
    {"flags": ["--max-turns", "１"]},
    {"flags": ["--"]},
    {"flags": ["resume", "--last"]},
    {"flags": ["$(touch x)"]},
    # environment
    {"env": {"LD_PRELOAD": "./evil.so"}},
    {"env": {"PATH": "."}},
    {"env": {"HOME": "/"}},
    {"env": {"OPENAI_BASE_URL": "http://evil.example"}},
    {"env": {"ANTHROPIC_BASE_URL": "http://evil.example"}},
    {"env": {"HTTPS_PROXY": "http://evil.example"}},
    {"env": {"GIT_SSH_COMMAND": "touch x"}},
    {"env": {"NODE_OPTIONS": "--require ./evil.js"}},
    {"env": {"PYTHONPATH": "."}},
    {"env": {"BASH_ENV": "./evil"}},
    {"env": {"CODEX_HOME": "/", "CLAUDE_CONFIG_DIR": "/"}},
    {"env": {"IS_SANDBOX": "1"}},
    {"env": {"CI": "env:AWS_SECRET_ACCESS_KEY"}},
    {"env": {"CI": "1\nLD_PRELOAD=./evil.so"}},
    # settings of a tool
    {"tool_specific": {"sandbox_mode": "danger-full-access"}},
    {"tool_specific": {"model_reasoning_effort": 'low"\nnotify=["evil"]'}},
    {"tool_specific": {"model_reasoning_effort": ["low", "--add-dir"]}},
    {"tool_specific": {"effort": "low --add-dir /"}},
    {"tool_specific": {"effort": {"x": "evil"}}},
    {"tool_specific": {"max-turns": True}},
    {"tool_specific": {"dangerously-skip-permissions": ""}},
    {"tool_specific": {"settings": '{"env": {}}'}},
]


def crew(script: list[Any]) -> TaskSpec:
    """A task with both workers, each with one model of its own and one more."""
    workers = [
        WorkerSpec(kind=kind, model="good", models=["best"], command=f"/opt/{kind}")
        for kind in KINDS
    ]
    return task_spec_of(runner=RunnerSection(workers=workers), script_text=json.dumps(script))


def reply(kind: str, **changes: Any) -> dict[str, Any]:
    call = {"worker_type": kind, "mode": "exec", "prompt": PLAIN, **changes}
    decision = {"action": "run_worker", "reason": "There is work."}
    payload = {"decision": decision, "worker_call": call}
    return {"reply": json.dumps({"type": "next_action", "version": 1, "payload": payload})}


async def agreed(script: list[Any]) -> tuple[Asked, Member, list[str]]:
    """What is ordered in the end, of whom, and what was said against the replies before."""
    spec = crew(script)
    members = make_members(spec)
    refusals: list[str] = []

    async def record(call: PlannerCall) -> None:
        refusals.extend([call.error] if call.error else [])

    def call_of(message: Message) -> Asked:
        assert isinstance(message.payload, NextAction) and message.payload.worker_call
        return message.payload.worker_call

    def check(message: Message) -> None:
        check_call(call_of(message), members)

    asker = Asker(
        ScriptPlanner(spec, {}), record=record, before_attempt=lambda: None,
        sleep=Clock().sleep, redact=str,
    )  # fmt: skip
    prompt = PromptInput(
        type="next_action", facts={}, task={}, prd_text="p", salt="s", call_number=0
    )
    asked = await asker.ask(prompt, check)
    call = call_of(asked)
    return call, check_call(call, members), refusals


def built(call: Asked, member: Member) -> tuple[WorkerCommand, dict[str, str]]:
    """The command line of an order, and the environment without what the box itself brings."""
    box = Path("/runs/r/box")
    command = member.worker.command(
        WorkerRequest(
            worker_run_id="1-001", prompt=call.prompt, workdir=Path("/repo"), home=box,
            prompt_file=box / "p", model=call.model or member.spec.runner.worker.model,
            flags=tuple(call.flags), tool_specific=settings_of(call), base_url="http://gate",
        )
    )  # fmt: skip
    return command, {**command.env, **call.env}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hostile", HOSTILE, ids=json.dumps)
async def test_a_hostile_order_is_refused_and_leaves_no_trace(
    hostile: dict[str, Any], kind: str
) -> None:
    call, member, refusals = await agreed([reply(kind, **hostile), reply(kind)])
    (field,) = hostile
    assert len(refusals) == 1 and field in refusals[0]
    plain = Asked(worker_type=kind, mode="exec", prompt=PLAIN)
    assert (member.name, built(call, member)) == (kind, built(plain, member))


def test_the_table_has_forty_values_at_least() -> None:
    assert len(HOSTILE) >= 40


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "prompt",
    ["--help", "-c", "-c x=y", "- -", "\n--help", "a\n-c x\n", "$(touch x)", "`touch x`; rm -rf /",
     "@/etc/passwd", "\x1b[2J", "'\"\\"],
)  # fmt: skip
async def test_a_prompt_stays_text_on_stdin(prompt: str, kind: str) -> None:
    call, member, refusals = await agreed([reply(kind, prompt=prompt)])
    command, env = built(call, member)
    plain = built(Asked(worker_type=kind, mode="exec", prompt=PLAIN), member)
    assert command.stdin.decode().strip() == prompt.strip() and not refusals
    assert (command.argv, env) == (plain[0].argv, plain[1])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_prompt_with_a_nul_is_refused_or_harmless(kind: str) -> None:
    call, member, _ = await agreed([reply(kind, prompt="a\0--help"), reply(kind)])
    command, _ = built(call, member)
    assert b"\0" not in command.stdin
    assert not any("\0" in word for word in command.argv)


@pytest.mark.parametrize(
    ("kind", "asked", "words"),
    [
        ("codex-cli", {"model": "best"}, ["-m", "best"]),
        ("codex-cli", {"flags": ["-c", "model_reasoning_effort=high"]}, ["-c", "model_reas.*high"]),
        ("codex", {"tool_specific": {"model_reasoning_effort": "low"}}, ["-c", "model_reas.*low"]),
        ("claude-code", {"tool_specific": {"effort": "low"}}, ["--effort", "low"]),
        ("claude", {"tool_specific": {"max-turns": 12}}, ["--max-turns", "12"]),
        ("claude-code", {"use_stdin": False}, ["-p"]),
    ],
)
async def test_what_the_task_allows_arrives(
    kind: str, asked: dict[str, Any], words: list[str]
) -> None:
    call, member, refusals = await agreed([reply(kind, **asked)])
    argv = list(built(call, member)[0].argv)
    assert not refusals
    pairs = [argv[at : at + len(words)] for at in range(len(argv))]
    assert any(len(pair) == len(words) and all(map(re.fullmatch, words, pair)) for pair in pairs)


async def test_the_environment_that_is_allowed_arrives() -> None:
    call, member, _ = await agreed([reply("claude-code", env={"CI": "1", "NODE_ENV": "test"})])
    env = built(call, member)[1]
    assert (env["CI"], env["NODE_ENV"]) == ("1", "test")
