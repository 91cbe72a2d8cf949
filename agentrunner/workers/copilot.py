"""The worker for GitHub's Copilot CLI, `copilot --output-format json`, with a model of one's own.

It works without a GitHub account if a provider is named (`COPILOT_PROVIDER_…`), and then all its
calls go through the gateway. It masks secrets everywhere in its output: a short key would garble
its JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.workers import fact
from agentrunner.workers.base import OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, resumed
from agentrunner.workers.failures import kind_of_status
from agentrunner.workers.streams import code_of, dict_of, list_of, text_of

TESTED = "1.0.102"
KEY_ENV = "COPILOT_PROVIDER_API_KEY"
FINAL = r'^\{"type":"result"'
RETRY = r'^\{"type":"(?:model\.call_failure|assistant\.turn_retry)"|"infoType":"model_retry"'
"""Each attempt prints about five lines; these patterns match most of the informative ones."""
_EFFORT = "low|medium|high"
_CHANGES: dict[str, fact.Change] = {
    "create": "add",
    "edit": "update",
    "str_replace": "update",
    "insert": "update",
}
_KINDS: dict[str, fact.Change] = {"create": "add", "delete": "delete"}


class CopilotWorker(CliWorker):
    """Builds the command line and reads the event stream of the Copilot CLI."""

    kind = "copilot-cli"
    title = "The Copilot CLI"
    binary = "copilot"
    binary_env = "AGENTRUNNER_COPILOT"
    # A signal to npm's loader ends only the loader.
    package = "@github/copilot"
    native = "copilot"
    tested = TESTED
    verified = f"copilot {TESTED}, real, with a provider of one's own"
    cure = f"npm install -g @github/copilot@{TESTED}"
    key_names = (KEY_ENV, "OPENAI_API_KEY")
    wire = "openai"
    reports = Reports(exit_codes=True, actions=True, resume=True)
    confines_itself = True
    flag_rules: Mapping[str, str] = {"--reasoning-effort": _EFFORT}
    tool_rules: Mapping[str, str] = {"reasoning-effort": _EFFORT}
    lost_session = r"No session, task, or name matched"
    # It unpacks itself into a cache first, even for `--version`.
    version_env: Mapping[str, str] = {"COPILOT_AUTO_UPDATE": "false"}
    key_env = KEY_ENV
    watch = OutputWatch(final=FINAL, login=LOGIN_PROMPT)

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `copilot` with the prompt by stdin, and an id for a new session."""
        home = call.home / "copilot"
        settings = (w for name, value in call.tool_specific.items() for w in (f"--{name}", value))
        words = [
            *("--output-format", "json", "--disable-client-telemetry"),
            # Otherwise it asks its own servers for GitHub's tools.
            "--disable-builtin-mcps",
            *_permissions(call.sandboxed),
            *_session(call),
            *settings,
            *self.flags_of(call),
        ]
        env = {
            # 260 files are unpacked into ~/.cache on the first run.
            "HOME": str(home),
            "COPILOT_HOME": str(home),
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_BASE_URL": self.url_of(call),
            "COPILOT_MODEL": self.model_of(call) or DEFAULT_PLANNER_MODEL,
        }
        return self.prepare(call, home, words, env)

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        """Yield the facts in one event; most ephemeral ones are pieces of a later complete one."""
        kind, data = record.get("type"), dict_of(record.get("data"))
        if kind == "model.call_failure":
            status = data.get("statusCode")
            message = text_of(data.get("errorMessage")) or "a model call failed"
            number = f"{status} " if isinstance(status, int) else ""
            yield fact.Retrying(f"{number}{message}", kind_of_status(status))
        elif record.get("ephemeral") is True:
            return
        elif kind == "user.message":
            yield fact.TurnBegan()
        elif kind == "assistant.message":
            yield fact.Model(text_of(data.get("model")))
            if text := text_of(data.get("content")):
                yield fact.WorkerMessage(text)
        elif kind == "tool.execution_start":
            given = dict_of(data.get("arguments"))
            name = text_of(data.get("toolName"))
            tool = fact.tool_of(name, given, shell="bash", changes=_CHANGES, path="path")
            yield fact.ToolBegan(text_of(data.get("toolCallId")), tool)
        elif kind == "tool.execution_complete":
            yield from _of_tool_end(data)
        elif kind == "session.error":
            status = data.get("statusCode")
            yield fact.Trouble(text_of(data.get("message")) or "it failed", kind_of_status(status))
        elif kind == "result":
            yield fact.Session(text_of(record.get("sessionId")))
            yield fact.Finished(record.get("exitCode") == 0)


def _of_tool_end(data: Mapping[str, object]) -> Iterator[fact.Fact]:
    failed = data.get("success") is not True
    code = code_of(dict_of(data.get("shellExecution")).get("exitCode"))
    yield fact.tool_ended(text_of(data.get("toolCallId")), failed=failed, code=code)
    properties = dict_of(dict_of(data.get("toolTelemetry")).get("properties"))
    named = text_of(properties.get("command"))
    if dict_of(data.get("error")).get("code") == "denied":
        yield fact.ToolDenied(
            named or ("bash" if "shell_error_category" in properties else "a tool")
        )
    if named not in _CHANGES and not failed:
        for edit in map(dict_of, list_of(data.get("fileEdits"))):
            yield fact.FileChanged(
                text_of(edit.get("path")), _KINDS.get(text_of(edit.get("kind")), "update")
            )


def _session(call: WorkerRequest) -> tuple[str, ...]:
    if session := resumed(call):
        return (f"--resume={session}",)
    return ("--session-id", call.new_session_id) if call.new_session_id else ()


def _permissions(sandboxed: bool) -> tuple[str, ...]:
    if sandboxed:
        return ("--allow-all-tools", "--allow-all-paths")
    # It may change files in the folder; anything else is denied and reported.
    return ("--allow-tool", "write")
