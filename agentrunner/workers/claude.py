"""The worker for Anthropic's Claude Code, `claude -p`.

Not with `--bare`: it ignores the repository's CLAUDE.md, lacks the tool that writes files, and does
not accept a login.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers import fact
from agentrunner.workers.base import FailureKind, OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, session_flags
from agentrunner.workers.failures import kind_of_status
from agentrunner.workers.streams import count_of, dict_of, list_of, text_of

TESTED = "2.1.197"
KEY_ENV = "ANTHROPIC_API_KEY"
_URL = "ANTHROPIC_BASE_URL"
_EFFORT = "low|medium|high"
_TURNS = r"[1-9]\d{0,3}"
_TOOLS = "Bash,Edit,Write,Read,Glob,Grep,NotebookEdit,TodoWrite"
"""The tools allowed without our sandbox; the web is not included."""
FINAL = r'^\{"type":"result"'
RETRY = r'^\{"type":"system","subtype":"api_retry"'
SYNTHETIC = "<synthetic>"
"""The model name of Claude Code's own messages, such as the text of an error."""
_EXIT_CODE = lazy_regex(r"Exit code (-?\d{1,10})\b")
_ERRORS: dict[str, FailureKind] = {
    "authentication_failed": "auth",
    "billing_error": "rate_limit",
    "rate_limit": "rate_limit",
    "invalid_request": "protocol",
    "server_error": "server",
    "model_not_found": "model",
}


class ClaudeWorker(CliWorker):
    """Builds the command line and reads the event stream of Claude Code."""

    kind = "claude-code"
    title = "Claude Code"
    binary = "claude"
    binary_env = "AGENTRUNNER_CLAUDE"
    tested = TESTED
    verified = f"claude {TESTED}, real"
    cure = f"npm install -g @anthropic-ai/claude-code@{TESTED}"
    key_names = (KEY_ENV,)
    wire = "anthropic"
    reports = Reports(actions=True, tokens=True, cost=True, resume=True, schema=True)
    confines_itself = True
    flag_rules: Mapping[str, str] = {"--effort": _EFFORT, "--max-turns": _TURNS}
    tool_rules: Mapping[str, str] = {"effort": _EFFORT, "max-turns": _TURNS}
    lost_session = r"No conversation found with session ID"
    key_env = KEY_ENV
    stop_signal = "INT"
    watch = OutputWatch(final=FINAL, retry=RETRY, login=LOGIN_PROMPT)

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `claude -p`, with an id for a new session."""
        home = call.home / "claude"
        model, url = self.model_of(call), self.url_of(call)
        settings = (w for name, value in call.tool_specific.items() for w in (f"--{name}", value))
        words = [
            *("-p", "--output-format", "stream-json", "--verbose"),
            *(("--model", model) if model else ()),
            *session_flags(call),
            *_permissions(call.sandboxed),
            # The same variable in the repository's .claude/settings.json would override the
            # environment, and send the calls, and the key, elsewhere.
            *("--settings", json.dumps({"env": {_URL: url}})),
            *settings,
            *self.flags_of(call),
        ]
        env = {
            "CLAUDE_CONFIG_DIR": str(home),
            # Otherwise every command fails on a read-only root, and the run still is a success.
            "CLAUDE_CODE_TMPDIR": str(call.home / "tmp"),
            _URL: url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # AgentRunner waits for quotas itself; ten doubling delays are minutes.
            "CLAUDE_CODE_MAX_RETRIES": "2",
            # As root it refuses the bypass flag without this.
            **({"IS_SANDBOX": "1"} if call.sandboxed else {}),
        }
        prepared = self.prepare(call, home, words, env)
        # The login's token has its own variable; a key beside it would win.
        return replace(prepared, key_env="") if call.login else prepared

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        """Yield the facts in one event. What a sub-agent does counts as this run's own."""
        kind, subtype = record.get("type"), record.get("subtype")
        if kind == "system" and subtype == "init":
            yield from fact.stream_began(record)
        elif kind == "system" and subtype == "api_retry":
            status, error = record.get("error_status"), text_of(record.get("error"))
            yield fact.Retrying(f"{status or ''} {error}".strip(), kind_of(status, error))
        elif kind == "assistant":
            yield from _of_assistant(record)
        elif kind == "user":
            for part in map(dict_of, list_of(dict_of(record.get("message")).get("content"))):
                if part.get("type") == "tool_result":
                    yield _result(part)
        elif kind == "result":
            yield from _of_end(record)


def _permissions(sandboxed: bool) -> tuple[str, ...]:
    if sandboxed:
        return ("--dangerously-skip-permissions",)
    # The other modes deny Write or Bash, and the run still reports success.
    return ("--permission-mode", "dontAsk", "--allowedTools", _TOOLS)


def kind_of(status: object, error: str) -> FailureKind | None:
    """Return the failure kind of a status, or of Claude Code's own name for an error."""
    return _ERRORS.get(error) or kind_of_status(status)


def _of_assistant(record: Mapping[str, object]) -> Iterator[fact.Fact]:
    message = dict_of(record.get("message"))
    if message.get("model") == SYNTHETIC:
        return  # the error that the result event reports, too
    for part in map(dict_of, list_of(message.get("content"))):
        if part.get("type") == "text":
            yield fact.WorkerMessage(text_of(part.get("text")))
        elif part.get("type") == "tool_use":
            name, given = text_of(part.get("name")), dict_of(part.get("input"))
            yield fact.ToolBegan(text_of(part.get("id")), _tool(name, given))


def _tool(name: str, given: Mapping[str, object]) -> fact.ToolUse:
    if name == "Bash":
        return fact.ToolUse(name, command=text_of(given.get("command")))
    if name in ("Write", "Edit", "MultiEdit", "NotebookEdit"):
        path = text_of(given.get("file_path")) or text_of(given.get("notebook_path"))
        return fact.ToolUse(name, path=path)
    return fact.ToolUse(name)


def _result(part: Mapping[str, object]) -> fact.ToolEnded:
    """Return the end of a tool. Only failures report an exit code; without one it may be any."""
    failed = part.get("is_error") is True
    code = _EXIT_CODE.match(_text_in(part.get("content"))) if failed else None
    number = int(code[1]) if code else None
    return fact.tool_ended(text_of(part.get("tool_use_id")), failed=failed, code=number)


def _text_in(content: object) -> str:
    if isinstance(content, list):
        return "".join(text_of(dict_of(part).get("text")) for part in content)
    return text_of(content)


def _of_end(record: Mapping[str, object]) -> Iterator[fact.Fact]:
    """Yield the facts in the last event. An error of the API is a `success` with `is_error`."""
    yield fact.Session(text_of(record.get("session_id")))
    usage = dict_of(record.get("usage"))
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    yield fact.Tokens(
        sum(count_of(usage.get(name)) for name in read), count_of(usage.get("output_tokens"))
    )
    usd = record.get("total_cost_usd")
    if isinstance(usd, int | float) and not isinstance(usd, bool) and 0 <= usd < 1e9:
        yield fact.Cost(float(usd))
    for denial in map(dict_of, list_of(record.get("permission_denials"))):
        yield fact.ToolDenied(text_of(denial.get("tool_name")))
    subtype, text = text_of(record.get("subtype")), text_of(record.get("result"))
    clean = subtype == "success" and record.get("is_error") is False
    if not clean:
        errors = " ".join(filter(None, map(text_of, list_of(record.get("errors")))))
        kind = kind_of_status(record.get("api_error_status"))
        yield fact.Trouble(text or errors or subtype, kind)
    yield fact.Finished(clean, text if clean and text else None)
