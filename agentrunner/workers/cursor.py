"""The worker for Cursor's CLI, `agent -p`, built from its documentation.

It was never run: only its vendor's script installs it, and it needs a paid account. Its model calls
go to Cursor's servers, so no gateway can hold its key or count its tokens: the key is passed into
the sandbox, and the sandbox must reach these hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentrunner.workers import fact
from agentrunner.workers.base import OutputWatch, Reports, WorkerCommand, WorkerRequest
from agentrunner.workers.cli import LOGIN_PROMPT, CliWorker, prompt_argument, resumed
from agentrunner.workers.streams import code_of, dict_of, list_of, text_of

KEY_ENV = "CURSOR_API_KEY"
FINAL = r'^\{"type":"result"'
_CHANGES: dict[str, fact.Change] = {"write": "update", "edit": "update", "delete": "delete"}


class CursorWorker(CliWorker):
    """Builds the command line and reads the event stream of Cursor's CLI."""

    kind = "cursor-cli"
    title = "Cursor's CLI"
    binary = "cursor-agent"  # its newer name, `agent`, may be any program's
    binary_env = "AGENTRUNNER_CURSOR"
    tested = ""
    verified = "built from its documentation; not run against the real binary"
    cure = "curl https://cursor.com/install -fsS | bash"
    key_names = (KEY_ENV,)
    hosts = ("*.cursor.sh:443", "*.cursorapi.com:443")
    reports = Reports(actions=True, resume=True)
    key_env = KEY_ENV
    watch = OutputWatch(final=FINAL, login=LOGIN_PROMPT)
    reads_stdin = False

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `agent -p` with the prompt as its argument."""
        home = call.home / "cursor"
        model = self.model_of(call)
        session = resumed(call)
        words = [
            *("-p", "--output-format", "stream-json"),
            *("--workspace", str(call.workdir), "--trust"),
            # Without --force changes are only proposed. Its own sandbox is not tested inside ours.
            *("--force", "--sandbox", "disabled"),
            *(("--model", model) if model else ()),
            *(("--resume", session) if session else ()),
            *self.flags_of(call),
            prompt_argument(call),
        ]
        env = {
            "HOME": str(home),
            "CURSOR_CONFIG_DIR": str(home / ".cursor"),
            "NO_OPEN_BROWSER": "1",
        }
        return self.prepare(call, home, words, env)

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        kind, subtype = record.get("type"), record.get("subtype")
        if kind == "system" and subtype == "init":
            yield from fact.stream_began(record)
        elif kind == "assistant":
            parts = map(dict_of, list_of(dict_of(record.get("message")).get("content")))
            yield fact.WorkerMessage("".join(text_of(part.get("text")) for part in parts))
        elif kind == "tool_call" and subtype in ("started", "completed"):
            name, use = _named(record)
            given = dict_of(use.get("args"))
            tool = fact.tool_of(name, given, shell="shell", changes=_CHANGES, path="path")
            if subtype == "started":
                yield fact.ToolBegan(text_of(record.get("call_id")), tool)
            else:
                yield from _of_tool_end(text_of(record.get("call_id")), tool, use)
        elif kind == "result":
            text = text_of(record.get("result"))
            clean = subtype == "success" and record.get("is_error") is False
            if not clean:
                yield fact.Trouble(text or text_of(subtype) or "it failed")
            yield fact.Session(text_of(record.get("session_id")))
            yield fact.Finished(clean, text if clean and text else None)


def _named(record: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """Return the name and the data of the only entry of `tool_call`, like `shellToolCall`."""
    calls = dict_of(record.get("tool_call"))
    name = next((name for name in calls if name.endswith("ToolCall")), "")
    return name.removesuffix("ToolCall"), dict_of(calls.get(name))


def _of_tool_end(name: str, tool: fact.ToolUse, use: Mapping[str, object]) -> Iterator[fact.Fact]:
    """Yield the end of a tool. Its result has one key, such as `success`, with the details."""
    result = dict_of(use.get("result"))
    failed = "success" not in result
    code = code_of(dict_of(result.get("success") or result.get("failure")).get("exitCode"))
    yield fact.tool_ended(name, failed=failed, code=code, tool=tool)
    if "rejected" in result or "permissionDenied" in result:
        yield fact.ToolDenied(tool.name)
