"""The worker for Google's Gemini CLI, `gemini -o stream-json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from agentrunner.workers.base import OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, session_flags
from agentrunner.workers.streams import count_of, dict_of, text_of
from agentrunner.workers.transcript import (
    Fact,
    Finished,
    Model,
    Session,
    Tokens,
    Tool,
    ToolBegan,
    ToolEnded,
    Trouble,
    TurnBegan,
    WorkerMessage,
)

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
_CHANGES = ("write_file", "replace")


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
    default_url = "https://generativelanguage.googleapis.com"
    reports = Reports(actions=True, tokens=True, resume=True)
    confines_itself = True
    lost_session = r"Error resuming session"

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `gemini` with the prompt by stdin, and an id for a new session."""
        home = call.home / "gemini"
        scratch = call.home / "tmp"
        model = self.model_of(call)
        argv = [
            *(self.program(), "-o", "stream-json"),
            *(("-m", model) if model else ()),
            # Without our sandbox it may change files in the folder, and run nothing.
            *("--skip-trust", "--approval-mode", "yolo" if call.sandboxed else "auto_edit"),
            *session_flags(call),
            *self.flags_of(call),
        ]
        return WorkerCommand(
            argv=tuple(argv),
            stdin=call.prompt.encode(),
            env={
                "GEMINI_CLI_HOME": str(home),
                "GOOGLE_GEMINI_BASE_URL": self.url_of(call),
                "TMPDIR": str(scratch),
                # It would restart itself, and the first process ignores all signals.
                "GEMINI_CLI_NO_RELAUNCH": "true",
            },
            key_env=KEY_ENV,
            folders=(home, scratch),
            files={home / ".gemini" / "settings.json": json.dumps(_SETTINGS)},
            watch=OutputWatch(final=FINAL, retry=RETRY, retries=4, login=LOGIN_PROMPT),
        )

    def facts(self, record: Mapping[str, object]) -> Iterator[Fact]:
        """Yield the facts in one event."""
        kind, failed = record.get("type"), record.get("status") != "success"
        if kind == "init":
            yield Session(text_of(record.get("session_id")))
            yield Model(text_of(record.get("model")))
            yield TurnBegan()
        elif kind == "message" and record.get("role") == "assistant":
            yield WorkerMessage(text_of(record.get("content")), joins=record.get("delta") is True)
        elif kind == "tool_use":
            given = dict_of(record.get("parameters"))
            yield ToolBegan(
                text_of(record.get("tool_id")), _tool(text_of(record.get("tool_name")), given)
            )
        elif kind == "tool_result":
            status = "failed" if failed else "completed"
            yield ToolEnded(text_of(record.get("tool_id")), failed, status=status)
        elif kind == "error":
            fatal = record.get("severity") == "error"
            yield Trouble(text_of(record.get("message")), fatal=fatal)
        elif kind == "result":
            stats = dict_of(record.get("stats"))
            yield Tokens(count_of(stats.get("input_tokens")), count_of(stats.get("output_tokens")))
            if failed:
                yield Trouble(text_of(dict_of(record.get("error")).get("message")) or "it failed")
            yield Finished(not failed)


def _tool(name: str, given: Mapping[str, object]) -> Tool:
    if name == "run_shell_command":
        return Tool(name, command=text_of(given.get("command")))
    return Tool(name, path=text_of(given.get("file_path")) if name in _CHANGES else "")
