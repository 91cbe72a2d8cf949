"""The worker for Anthropic's Claude Code, `claude -p`.

Not with `--bare`: it ignores the repository's CLAUDE.md, lacks the tool that writes files, and does
not accept a login.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from agentrunner.workers import fact
from agentrunner.workers.base import OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.claude_stream import FINAL, RETRY, facts_of
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, session_flags

TESTED = "2.1.197"
KEY_ENV = "ANTHROPIC_API_KEY"
_URL = "ANTHROPIC_BASE_URL"
_EFFORT = "low|medium|high"
_TURNS = r"[1-9]\d{0,3}"
_TOOLS = "Bash,Edit,Write,Read,Glob,Grep,NotebookEdit,TodoWrite"
"""The tools allowed without our sandbox; the web is not included."""


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
    default_url = "https://api.anthropic.com"
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

    def facts(self, record: Mapping[str, object]) -> Iterable[fact.Fact]:
        return facts_of(record)


def _permissions(sandboxed: bool) -> tuple[str, ...]:
    if sandboxed:
        return ("--dangerously-skip-permissions",)
    # The other modes deny Write or Bash, and the run still reports success.
    return ("--permission-mode", "dontAsk", "--allowedTools", _TOOLS)
