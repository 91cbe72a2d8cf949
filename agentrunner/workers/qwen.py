"""The worker for Qwen Code, `qwen -o stream-json`, with any OpenAI-compatible model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers import fact
from agentrunner.workers.base import OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, session_flags
from agentrunner.workers.streams import count_of, dict_of, list_of, text_of

TESTED = "0.15.10"
KEY_ENV = "OPENAI_API_KEY"
FINAL = r'^\{"type":"result"'

_SETTINGS = {
    # It sends all calls through the proxy of HTTPS_PROXY, even those to the loopback that NO_PROXY
    # excepts. A blank means none; the commands it runs keep the variable.
    "proxy": " ",
    "general": {"enableAutoUpdate": False},
    "model": {"generationConfig": {"maxRetries": 0}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}
_CHANGES: dict[str, fact.Change] = {"write_file": "update", "edit": "update"}
_API_ERROR = lazy_regex(r"\[API Error: (.*)\]\s*\Z", re.DOTALL)
"""How a failed call ends the final text of a run that reports success and exits with 0."""


class QwenWorker(CliWorker):
    """Builds the command line and reads the event stream of Qwen Code.

    It reports no exit codes of commands, and a failed command is no error for it.
    """

    kind = "qwen-code"
    title = "Qwen Code"
    binary = "qwen"
    binary_env = "AGENTRUNNER_QWEN"
    tested = TESTED
    verified = f"qwen {TESTED}, real"
    cure = f"npm install -g @qwen-code/qwen-code@{TESTED}"
    key_names = (KEY_ENV,)
    wire = "openai"
    reports = Reports(actions=True, tokens=True, resume=True)
    confines_itself = True
    memory = "2g"
    lost_session = r"No saved session found"
    key_env = KEY_ENV
    watch = OutputWatch(final=FINAL, login=LOGIN_PROMPT)

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `qwen` with the prompt by stdin, and an id for a new session."""
        home = call.home / "qwen"
        words = [
            *("-o", "stream-json", "--auth-type", "openai"),
            *("-m", self.model_of(call) or DEFAULT_PLANNER_MODEL),
            # Without our sandbox it may change files in the folder, and run nothing.
            *("--approval-mode", "yolo" if call.sandboxed else "auto-edit"),
            *session_flags(call),
            *self.flags_of(call),
        ]
        env = {
            "HOME": str(home),
            "OPENAI_BASE_URL": self.url_of(call),
            # It would restart itself; a signal then ends only the first process.
            "QWEN_CODE_NO_RELAUNCH": "true",
        }
        files = {home / ".qwen" / "settings.json": json.dumps(_SETTINGS)}
        return self.prepare(call, home, words, env, files)

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        kind = record.get("type")
        if kind == "system" and record.get("subtype") == "init":
            yield from fact.stream_began(record)
        elif kind in ("assistant", "user"):
            for part in map(dict_of, list_of(dict_of(record.get("message")).get("content"))):
                yield from _of_part(part)
        elif kind == "result":
            yield from _of_end(record)


def _of_part(part: Mapping[str, object]) -> Iterator[fact.Fact]:
    kind = part.get("type")
    if kind == "text" and not _API_ERROR.search(text_of(part.get("text"))):
        yield fact.WorkerMessage(text_of(part.get("text")))
    elif kind == "tool_use":
        name, given = text_of(part.get("name")), dict_of(part.get("input"))
        tool = fact.tool_of(name, given, shell="run_shell_command", changes=_CHANGES)
        yield fact.ToolBegan(text_of(part.get("id")), tool)
    elif kind == "tool_result":
        failed = part.get("is_error") is True
        yield fact.tool_ended(text_of(part.get("tool_use_id")), failed=failed)


def _of_end(record: Mapping[str, object]) -> Iterator[fact.Fact]:
    usage = dict_of(record.get("usage"))
    # Unlike with Claude Code, whose stream this resembles, the input includes cached tokens and the
    # usage of the session's earlier runs.
    read, written = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
    yield fact.Tokens(read, written, scope="session")
    for denial in map(dict_of, list_of(record.get("permission_denials"))):
        yield fact.ToolDenied(text_of(denial.get("tool_name")))
    text = text_of(record.get("result"))
    match = _API_ERROR.search(text)
    clean = record.get("subtype") == "success" and record.get("is_error") is False and not match
    if not clean:
        error = text_of(dict_of(record.get("error")).get("message"))
        yield fact.Trouble(match[1] if match else error or text or "it failed")
    yield fact.Finished(clean, text if clean and text else None)
