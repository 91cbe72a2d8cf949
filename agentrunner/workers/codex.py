"""The worker for OpenAI's Codex CLI, `codex exec --json`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping

from agentrunner.workers import fact
from agentrunner.workers.base import OutputWatch, Reports, WireName, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, resumed
from agentrunner.workers.streams import (
    MAX_COMMAND_CHARS,
    code_of,
    count_of,
    dict_of,
    list_of,
    text_of,
)

TESTED = "0.169.0"
KEY_ENV = "AR_MODEL_KEY"
ACCOUNT_ENV = "AR_ACCOUNT_ID"
_EFFORT = r'model_reasoning_effort=("?)(low|medium|high)\1'

_ALWAYS = (
    # Each of these phones home or costs 5 s without a network.
    ("--disable", "plugins"),
    ("-c", "analytics.enabled=false"),
    ("-c", "check_for_update_on_startup=false"),
    # Hides variables named *KEY*, *SECRET*, *TOKEN* from the commands that the model runs.
    ("-c", "shell_environment_policy.ignore_default_excludes=false"),
)
FINAL = r'^\{"type":"turn\.(completed|failed)"'
RETRY = r'^\{"type":"error","message":"Reconnecting\.\.\. '
_RECONNECTING = "Reconnecting... "
"""Followed by "2/5 (why)" or, if there is no network, forever by "waiting for network (why)"."""
_SHELLS = {"sh", "bash", "zsh"}


class CodexWorker(CliWorker):
    """Builds the command line and reads the event stream of the Codex CLI."""

    kind = "codex-cli"
    title = "The Codex CLI"
    binary = "codex"
    binary_env = "AGENTRUNNER_CODEX"
    package = "@openai/codex"
    native = "vendor/*/bin/codex"
    tested = TESTED
    verified = f"codex {TESTED}, real"
    cure = f"npm install -g @openai/codex@{TESTED}"
    key_names: tuple[str, ...] = ("CODEX_API_KEY", "OPENAI_API_KEY")
    wire: WireName = "openai"
    reports = Reports(exit_codes=True, actions=True, tokens=True, resume=True, schema=True)
    confines_itself = True
    flag_rules: Mapping[str, str] = {"-c": _EFFORT, "--config": _EFFORT}
    tool_rules: Mapping[str, str] = {"model_reasoning_effort": "low|medium|high"}
    lost_session = "no rollout found for thread id"
    version_env: Mapping[str, str] = {"CODEX_HOME": "/nonexistent"}
    key_env = KEY_ENV
    stop_signal = "INT"
    watch = OutputWatch(final=FINAL, retry=RETRY, login=LOGIN_PROMPT)

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `codex exec`, or `codex exec resume` if the call names a session."""
        home = call.home / "codex"
        model = self.model_of(call)
        session = resumed(call)
        # Few retries: AgentRunner owns time limits, and Codex repeats a 401 five times.
        provider = provider_table(self.url_of(call), retries=2, idle_sec=120)
        words = [
            *("exec", "--json", "--skip-git-repo-check", "-C", str(call.workdir)),
            *(("-m", model) if model else ()),
            *("-c", "model_provider=ar", "-c", f"model_providers.ar={provider}"),
            *_confinement(call.sandboxed),
            *(word for option in _ALWAYS for word in option),
            *("-o", str(call.home / "last-message.txt")),
            *(w for name, value in call.tool_specific.items() for w in ("-c", f"{name}={value}")),
            *self.flags_of(call),
            *(("resume", session) if session else ()),
            "-",
        ]
        # Codex refuses a CODEX_HOME under TMPDIR, and its own sandbox then fails silently.
        return self.prepare(call, home, words, {"CODEX_HOME": str(home)})

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        """Yield the facts in one event. Usage is the whole thread's, including earlier runs."""
        kind = record.get("type")
        if kind == "thread.started":
            yield fact.Session(text_of(record.get("thread_id")))
        elif kind == "turn.started":
            yield fact.TurnBegan()
        elif kind == "turn.completed":
            usage = dict_of(record.get("usage"))
            tokens = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
            yield fact.Tokens(*tokens, scope="session")
            yield fact.Finished(clean=True)
        elif kind == "turn.failed":
            yield _trouble(record)
            yield fact.Finished(clean=False)
        elif kind == "error":
            yield _trouble(record)
        elif kind in ("item.started", "item.completed"):
            yield from _of_item(dict_of(record.get("item")), done=kind == "item.completed")


def provider_table(base_url: str, *, retries: int, idle_sec: int) -> str:
    """Return our own model provider, as TOML; `idle_sec` is how long its stream may be silent."""
    # The built-in one ignores the base URL or tries a WebSocket for 7 s.
    fields = {
        "name": "ar",
        "base_url": base_url,
        "env_key": KEY_ENV,
        "wire_api": "responses",
        "request_max_retries": retries,
        "stream_max_retries": retries,
        "stream_idle_timeout_ms": idle_sec * 1000,
    }
    # For these ASCII texts and numbers a JSON value is a TOML value.
    settings = [f"{key}={json.dumps(value)}" for key, value in fields.items()]
    # With a login the provider needs the account; without the variable nothing is sent.
    settings.append(f'env_http_headers={{"chatgpt-account-id"="{ACCOUNT_ENV}"}}')
    return "{" + ",".join(settings) + "}"


def _confinement(sandboxed: bool) -> tuple[str, ...]:
    # Codex's own sandbox inside ours fails silently, with exit 0.
    if sandboxed:
        return ("--dangerously-bypass-approvals-and-sandbox",)
    return ("-s", "workspace-write")


def _of_item(item: Mapping[str, object], *, done: bool) -> Iterator[fact.Fact]:
    kind = item.get("type")
    name = text_of(item.get("id"))
    if kind == "command_execution":
        tool = fact.ToolUse("shell", command=_command(item))
        code, status = code_of(item.get("exit_code")), text_of(item.get("status"))
        yield (
            fact.ToolEnded(name, False, code, status, tool) if done else fact.ToolBegan(name, tool)
        )
    elif kind == "agent_message" and done:
        yield fact.WorkerMessage(text_of(item.get("text")))
    elif kind == "error" and done:
        yield fact.Trouble(_message(item), fatal=False)
    elif kind == "file_change" and done and item.get("status") == "completed":
        for change in map(dict_of, list_of(item.get("changes"))):
            yield fact.FileChanged(text_of(change.get("path")), fact.change_of(change.get("kind")))
    elif done and kind in ("mcp_tool_call", "web_search", "todo_list"):
        yield fact.ToolEnded(name, tool=fact.ToolUse(str(kind)))


def _trouble(record: Mapping[str, object]) -> fact.Fact:
    message = _message(record)
    return fact.Retrying(message) if message.startswith(_RECONNECTING) else fact.Trouble(message)


def _command(item: Mapping[str, object]) -> str:
    """Return the command as the model wrote it, without the `/bin/bash -lc '…'` around it."""
    command = text_of(item.get("command"))
    if len(command) <= MAX_COMMAND_CHARS:
        try:
            words = shlex.split(command)
        except ValueError:
            words = []
        if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc"):
            command = words[2]
    return command


def _message(record: Mapping[str, object]) -> str:
    return text_of(record.get("message")) or text_of(dict_of(record.get("error")).get("message"))
