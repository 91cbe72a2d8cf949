"""The worker for Google's Gemini CLI, `gemini -o stream-json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from agentrunner.workers import fact
from agentrunner.workers.base import OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, session_flags
from agentrunner.workers.streams import count_of, dict_of, text_of

TESTED = "0.61.0"
KEY_ENV = "GEMINI_API_KEY"
FINAL = r'^\{"type":"result"'
RETRY = r"^Attempt \d+ failed"
"""On stderr; the stream has nothing about retries."""

_SETTINGS = {
    # With a base URL it would otherwise choose an authentication that it then refuses (exit 41).
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    # AgentRunner waits for quotas itself; ten attempts are minutes.
    "general": {"enableAutoUpdate": False, "maxAttempts": 3},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
_CHANGES: dict[str, fact.Change] = {"write_file": "update", "replace": "update"}


class GeminiWorker(CliWorker):
    """Builds the command line and reads the event stream of the Gemini CLI.

    It reports no exit codes of commands, and a failed command is a `success` for it. When stopped
    it exits with 0, so that only its `result` event shows that it finished.
    """

    kind = "gemini-cli"
    title = "The Gemini CLI"
    binary = "gemini"
    binary_env = "AGENTRUNNER_GEMINI"
    tested = TESTED
    verified = f"gemini {TESTED}, real"
    cure = f"npm install -g @google/gemini-cli@{TESTED}"
    key_names = (KEY_ENV, "GOOGLE_API_KEY")
    wire = "gemini"
    reports = Reports(actions=True, tokens=True, resume=True)
    confines_itself = True
    lost_session = r"Error resuming session"
    key_env = KEY_ENV
    watch = OutputWatch(final=FINAL, retry=RETRY, retries=4, login=LOGIN_PROMPT)

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `gemini` with the prompt by stdin, and an id for a new session."""
        home = call.home / "gemini"
        model = self.model_of(call)
        words = [
            *("-o", "stream-json"),
            *(("-m", model) if model else ()),
            # Without our sandbox it may change files in the folder, and run nothing.
            *("--skip-trust", "--approval-mode", "yolo" if call.sandboxed else "auto_edit"),
            *session_flags(call),
            *self.flags_of(call),
        ]
        env = {
            "GEMINI_CLI_HOME": str(home),
            "GOOGLE_GEMINI_BASE_URL": self.url_of(call),
            # It would restart itself, and the first process ignores all signals.
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }
        files = {home / ".gemini" / "settings.json": json.dumps(_SETTINGS)}
        return self.prepare(call, home, words, env, files)

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        kind, failed = record.get("type"), record.get("status") != "success"
        if kind == "init":
            yield from fact.stream_began(record)
        elif kind == "message" and record.get("role") == "assistant":
            joins = record.get("delta") is True
            yield fact.WorkerMessage(text_of(record.get("content")), joins)
        elif kind == "tool_use":
            given = dict_of(record.get("parameters"))
            name = text_of(record.get("tool_name"))
            tool = fact.tool_of(name, given, shell="run_shell_command", changes=_CHANGES)
            yield fact.ToolBegan(text_of(record.get("tool_id")), tool)
        elif kind == "tool_result":
            yield fact.tool_ended(text_of(record.get("tool_id")), failed=failed)
        elif kind == "error":
            fatal = record.get("severity") == "error"
            yield fact.Trouble(text_of(record.get("message")), fatal=fatal)
        elif kind == "result":
            stats = dict_of(record.get("stats"))
            read, written = stats.get("input_tokens"), stats.get("output_tokens")
            yield fact.Tokens(count_of(read), count_of(written))
            if failed:
                message = text_of(dict_of(record.get("error")).get("message"))
                yield fact.Trouble(message or "it failed")
            yield fact.Finished(not failed)
