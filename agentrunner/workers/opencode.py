"""The worker for opencode, `opencode run --format json`, with any OpenAI-compatible model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.workers import fact
from agentrunner.workers.base import FailureKind, OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, resumed
from agentrunner.workers.failures import kind_of_status
from agentrunner.workers.streams import code_of, count_of, dict_of, text_of

TESTED = "1.18.33"
KEY_ENV = "AR_MODEL_KEY"
FINAL = r'^\{"type":"step_finish".*"reason":"stop"'
FINAL_GRACE_SEC = 120
"""It has no last event: a step that ends like this may be a summary, before it continues."""
RETRY = r'level=ERROR .*stream error|^\{"type":"step_(?:start"|finish".*"reason":"unknown")'
"""In its log on stderr; and an empty step, which it repeats at once."""
_KINDS: dict[str, FailureKind] = {
    "ProviderAuthError": "auth",
    "ProviderModelNotFoundError": "model",
    "ContextOverflowError": "context",
}
_CHANGES: dict[str, fact.Change] = {"write": "update", "edit": "update"}
_SHUT = {"bash": "deny", "external_directory": "deny", "webfetch": "deny", "websearch": "deny"}


class OpencodeWorker(CliWorker):
    """Builds the command line and reads the event stream of opencode."""

    kind = "opencode"
    title = "opencode"
    binary = "opencode"
    binary_env = "AGENTRUNNER_OPENCODE"
    tested = TESTED
    verified = f"opencode {TESTED}, real"
    cure = f"npm install -g opencode-ai@{TESTED}"
    key_names = ("OPENAI_API_KEY",)
    wire = "openai"
    reports = Reports(exit_codes=True, actions=True, tokens=True, resume=True)
    confines_itself = True
    memory = "2g"
    lost_session = r"Session not found"
    key_env = KEY_ENV
    watch = OutputWatch(
        final=FINAL, final_grace_sec=FINAL_GRACE_SEC, retry=RETRY, retries=4, login=LOGIN_PROMPT
    )

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `opencode run` with the prompt by stdin and all its settings in one variable."""
        home = call.home / "opencode"
        model = self.model_of(call) or DEFAULT_PLANNER_MODEL
        session = resumed(call)
        words = [
            *("run", "--format", "json", "-m", f"ar/{model}"),
            # Without these nothing shows that it asks its model again and again.
            *("--print-logs", "--log-level", "ERROR"),
            *(("--auto",) if call.sandboxed else ()),
            *(("--session", session) if session else ()),
            *self.flags_of(call),
        ]
        settings = _settings(model, self.url_of(call), sandboxed=call.sandboxed)
        env = {
            "HOME": str(home),
            **{f"XDG_{n}_HOME": str(home / n.lower()) for n in _XDG},
            "OPENCODE_CONFIG_CONTENT": json.dumps(settings),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }
        return self.prepare(call, home, words, env)

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        """Yield the facts in one event. A tool is reported once, when it has ended."""
        kind, part = record.get("type"), dict_of(record.get("part"))
        if kind == "step_start":
            yield fact.Session(text_of(record.get("sessionID")))
            yield fact.TurnBegan()
        elif kind == "text" and part.get("synthetic") is not True:
            yield fact.WorkerMessage(text_of(part.get("text")))
        elif kind == "tool_use":
            yield from _of_tool(part)
        elif kind == "step_finish":
            yield from _of_step(part)
        elif kind == "error":
            error = dict_of(record.get("error"))
            name, data = text_of(error.get("name")), dict_of(error.get("data"))
            message = text_of(data.get("message")) or name or "it failed"
            yield fact.Session(text_of(record.get("sessionID")))
            yield fact.Trouble(message, _KINDS.get(name) or kind_of_status(data.get("statusCode")))


_XDG = ("CONFIG", "DATA", "CACHE", "STATE")


def _settings(model: str, url: str, *, sandboxed: bool) -> Mapping[str, object]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "ar",
        "options": {"baseURL": url, "apiKey": f"{{env:{KEY_ENV}}}"},
        # Without a limit it never summarises a context that has become too long.
        "models": {model: {"name": model, "limit": {"context": 128_000, "output": 8_000}}},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        # Of two rules the later one wins. Without our sandbox it may change files of the folder.
        "permission": {"*": "allow", **({} if sandboxed else _SHUT)},
        "model": f"ar/{model}",
        "small_model": f"ar/{model}",
        "provider": {"ar": provider},
    }


def _of_tool(part: Mapping[str, object]) -> Iterator[fact.Fact]:
    state = dict_of(part.get("state"))
    name, given = text_of(part.get("tool")), dict_of(state.get("input"))
    failed = state.get("status") != "completed"
    code = code_of(dict_of(state.get("metadata")).get("exit"))
    tool = fact.tool_of(name, given, shell="bash", changes=_CHANGES, path="filePath")
    yield fact.tool_ended(text_of(part.get("callID")), failed=failed, code=code, tool=tool)
    if failed and "rejected permission" in text_of(state.get("error")):
        yield fact.ToolDenied(name)


def _of_step(part: Mapping[str, object]) -> Iterator[fact.Fact]:
    tokens = dict_of(part.get("tokens"))
    cache = dict_of(tokens.get("cache"))
    read = (tokens.get("input"), cache.get("read"), cache.get("write"))
    written = (tokens.get("output"), tokens.get("reasoning"))
    yield fact.Tokens(sum(map(count_of, read)), sum(map(count_of, written)), scope="step")
    reason = part.get("reason")
    if reason == "stop":
        yield fact.Finished(clean=True)
    elif reason != "tool-calls":
        yield fact.Trouble(f"the model stopped: {reason}")
        yield fact.Finished(clean=False)
