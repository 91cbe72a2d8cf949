"""Command lines of the CLIs that plan, what they print, and what is wanted before they start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.config.spec import TaskSpec
from agentrunner.errors import AgentRunnerError, InfraError, UsageError
from agentrunner.launching.access import CliCredential
from agentrunner.launching.launch import CliLaunch
from agentrunner.launching.route import Cassette, EgressRoute
from agentrunner.planners.base import ChatMessage, PlannerRequest
from agentrunner.planners.claude_code import ClaudePlanner
from agentrunner.planners.cli_base import CliAnswer, CliCall, CliPlanner
from agentrunner.planners.cli_sandbox import CliFolders
from agentrunner.planners.codex_cli import CodexPlanner
from agentrunner.planners.factory import make_planner
from agentrunner.workers.base import WorkerCommand
from tests.kit.fault_server import MakeSpec

CLIS = {"codex-cli": CodexPlanner, "claude-code": ClaudePlanner}
NOBODY = {"HOME": "/nonexistent", "CODEX_HOME": "/nonexistent"}
KEYS = {**NOBODY, "CODEX_API_KEY": "k" * 20, "ANTHROPIC_API_KEY": "k" * 20}
TOKEN = {**NOBODY, "CLAUDE_CODE_OAUTH_TOKEN": "t" * 20}
REQUEST = PlannerRequest("next_action", (ChatMessage("user", "?"),), {"type": "object"}, {}, 0)


def call(
    *, repo: bool = False, isolated: bool = True, token_env: str = "", prompt: str = "?"
) -> CliCall:
    place = CliFolders(
        home=Path("/run/call"),
        work=Path("/run/repo"),
        repo=Path("/src/shop") if repo else None,
        isolated=isolated,
    )
    shown = CliCredential(None, "https://provider.example", "shown-key", token_env)
    base_url = "http://127.0.0.1:8787" if isolated else shown.base_url
    return CliCall(place, REQUEST, "You decide.", prompt, shown, base_url)


def environment(command: WorkerCommand, call: CliCall) -> Mapping[str, str]:
    """What the command gets in its sandbox."""
    return CliLaunch(command, call.shown, EgressRoute(), call.place.work, 60).request().env


def client(kind: str, make_spec: MakeSpec) -> CliPlanner:
    made = make_planner(make_spec(kind=kind), KEYS)
    assert isinstance(made, CliPlanner)
    return made


@pytest.mark.parametrize("kind", CLIS)
def test_nothing_of_the_conversation_and_no_key_is_on_the_command_line(
    make_spec: MakeSpec, kind: str
) -> None:
    prompt = "--dangerously-skip-permissions\n$(touch x) \N{SNOWMAN}"
    asked = call(prompt=prompt)
    command = client(kind, make_spec).command(asked, "/bin/cli", "m-1")
    assert command.stdin == prompt.encode()
    words = " ".join(command.argv)
    assert "You decide." not in words and "touch x" not in words and "shown-key" not in words
    assert "m-1" in command.argv
    assert "You decide." in (command.files or {}).values()
    assert "shown-key" in environment(command, asked).values()


@pytest.mark.parametrize("kind", CLIS)
def test_the_model_is_the_gateway_where_there_is_a_sandbox(make_spec: MakeSpec, kind: str) -> None:
    for isolated, url in ((True, "http://127.0.0.1:8787"), (False, "https://provider.example")):
        command = client(kind, make_spec).command(call(isolated=isolated), "/bin/cli", None)
        assert url in " ".join(command.argv)


def test_codex_is_confined_by_us_or_by_itself(make_spec: MakeSpec) -> None:
    codex = client("codex-cli", make_spec)
    bypass = "--dangerously-bypass-approvals-and-sandbox"
    assert bypass in codex.command(call(), "codex", None).argv
    bare = codex.command(call(isolated=False), "codex", None).argv
    assert bypass not in bare and bare[bare.index("-s") + 1] == "read-only"
    assert "shell_tool" in bare
    assert "shell_tool" not in codex.command(call(repo=True), "codex", None).argv


def test_claude_has_tools_only_to_read(make_spec: MakeSpec) -> None:
    claude = client("claude-code", make_spec)
    argv = claude.command(call(), "claude", None).argv
    assert argv[argv.index("--tools") + 1] == ""
    argv = claude.command(call(repo=True), "claude", None).argv
    assert argv[argv.index("--tools") + 1] == "Read,Grep,Glob"
    assert argv[argv.index("--add-dir") + 1] == "/src/shop"


def test_a_login_of_claude_is_not_bare(make_spec: MakeSpec) -> None:
    claude = client("claude-code", make_spec)
    with_key, name = call(), "CLAUDE_CODE_OAUTH_TOKEN"
    command = claude.command(with_key, "claude", None)
    assert "--bare" in command.argv
    assert environment(command, with_key)["ANTHROPIC_API_KEY"] == "shown-key"
    with_login = call(token_env=name)
    command = claude.command(with_login, "claude", None)
    assert "--bare" not in command.argv
    env = environment(command, with_login)
    assert env[name] == "shown-key" and "ANTHROPIC_API_KEY" not in env


async def test_a_token_and_no_key_are_shown_to_the_gateway_only(make_spec: MakeSpec) -> None:
    meta = make_planner(make_spec(kind="claude-code"), TOKEN)
    assert isinstance(meta, CliPlanner)
    assert meta.describe() == "claude-code its own model, with its login"
    shown = await meta._access.credential(600, gateway=True)
    assert shown.upstream is not None
    assert (shown.upstream.credential, shown.upstream.scheme) == ("t" * 20, "bearer")
    assert shown.key == shown.upstream.placeholder and shown.token_env == "CLAUDE_CODE_OAUTH_TOKEN"
    bare = await meta._access.credential(600, gateway=False)
    assert (bare.upstream, bare.key) == (None, "t" * 20)


# -- what keeps it from starting ------------------------------------------------------------------


def refusal(spec: TaskSpec, environ: dict[str, str], **how: Any) -> AgentRunnerError:
    with pytest.raises(AgentRunnerError) as caught:
        make_planner(spec, environ, **how)
    return caught.value


@pytest.mark.parametrize("kind", CLIS)
def test_neither_key_nor_login(make_spec: MakeSpec, kind: str) -> None:
    error = refusal(make_spec(kind=kind), NOBODY)
    assert isinstance(error, InfraError)
    assert error.code == "no-planner-key" and "export" in error.remedy


@pytest.mark.parametrize("kind", CLIS)
def test_the_login_is_wanted_and_not_there(make_spec: MakeSpec, kind: str) -> None:
    assert refusal(make_spec(kind=kind, auth="login"), KEYS).code == "login-missing"


def test_a_login_goes_nowhere_else(make_spec: MakeSpec) -> None:
    spec = make_spec(kind="claude-code", auth="login", base_url="https://example.invalid")
    error = refusal(spec, TOKEN)
    assert isinstance(error, UsageError) and error.code == "login-base-url"
    # Nor does it step in for a key that is meant for another server.
    spec = make_spec(kind="claude-code", base_url="https://example.invalid")
    assert refusal(spec, TOKEN).code == "no-planner-key"


@pytest.mark.parametrize("kind", CLIS)
def test_a_key_crosses_no_network_in_the_clear(make_spec: MakeSpec, kind: str) -> None:
    error = refusal(make_spec(kind=kind, base_url="http://example.invalid"), KEYS)
    assert error.code == "base-url-refused"
    own = "http://192.168.1.20:8080/v1"
    error = refusal(make_spec(kind=kind, base_url=own), KEYS)
    assert "runner.meta.allow_plain_http=true" in error.remedy
    client = make_planner(make_spec(kind=kind, base_url=own, allow_plain_http=True), KEYS)
    assert "with " in client.describe()


@pytest.mark.parametrize("kind", CLIS)
def test_the_program_is_nowhere(
    make_spec: MakeSpec, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for name in ("AGENTRUNNER_CODEX", "AGENTRUNNER_CLAUDE"):
        monkeypatch.delenv(name, raising=False)
    error = refusal(make_spec(kind=kind).with_sandbox(kind="bwrap"), KEYS)
    assert isinstance(error, InfraError)
    assert error.code == "planner-missing" and error.remedy.startswith("npm install -g ")


@pytest.mark.parametrize("kind", CLIS)
def test_without_a_box_there_is_no_gateway_to_record_at(
    make_spec: MakeSpec, kind: str, tmp_path: Path
) -> None:
    spec = make_spec(kind=kind).with_sandbox(kind="none")
    error = refusal(spec, KEYS, cassette=Cassette(tmp_path / "t"))
    assert (type(error), error.path) == (UsageError, "--record")


# -- what they print ------------------------------------------------------------------------------


def lines(*events: Any) -> bytes:
    return b"\n".join(json.dumps(event).encode() for event in events)


def message(text: str) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"type": "agent_message", "text": text}}


USAGE = {"input_tokens": 12, "cached_input_tokens": 5, "output_tokens": 3}


def test_codex_says_its_last_message_where_the_turn_was_completed(make_spec: MakeSpec) -> None:
    codex = client("codex-cli", make_spec)
    done = {"type": "turn.completed", "usage": USAGE}
    assert codex.read(lines(message("a"), message("b"), done)) == CliAnswer(
        "b", True, input_tokens=12, cached_tokens=5, output_tokens=3
    )
    failed = {"type": "turn.failed", "error": {"message": "no such model"}}
    assert codex.read(lines(message("a"), failed)) == CliAnswer(error="no such model")
    assert codex.read(lines(message("a"))) == CliAnswer()


def result(**fields: Any) -> bytes:
    usage = {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 3}
    return lines({"type": "result", "is_error": False, "usage": usage, **fields})


def test_claude_says_the_value_of_its_schema_else_prose(make_spec: MakeSpec) -> None:
    claude = client("claude-code", make_spec)
    said = claude.read(result(result="…", structured_output={"a": "é"}, total_cost_usd=0.5))
    assert (said.text, said.completed, said.usd) == ('{"a": "é"}', True, 0.5)
    assert (said.input_tokens, said.cached_tokens, said.output_tokens) == (12, 5, 3)
    assert claude.read(result(result="I will not.")).text == "I will not."
    retries = "error_max_structured_output_retries"
    said = claude.read(result(is_error=True, subtype=retries, errors=["after 5 attempts"]))
    assert (said.text, said.completed) == ("after 5 attempts", True)


def test_claude_calls_an_error_a_success(make_spec: MakeSpec) -> None:
    said = client("claude-code", make_spec).read(
        result(is_error=True, subtype="success", api_error_status=404, result="no such model")
    )
    assert (said.text, said.completed) == ("", False)
    assert (said.error, said.kind) == ("no such model", "model")


@pytest.mark.parametrize("kind", CLIS)
@given(data=st.binary() | st.recursive(
    st.none() | st.text() | st.integers() | st.floats(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from(["type", "item", "usage", "result", "error", "is_error", "errors"]), inner
    ),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_whatever_is_printed_is_read(kind: str, data: bytes) -> None:
    reader = CLIS[kind].read
    answer = reader(None, data)  # type: ignore[arg-type]  # it needs nothing of itself
    assert isinstance(answer.text, str) and not (answer.error and answer.completed)
