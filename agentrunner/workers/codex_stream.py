"""Translates the JSON lines of `codex exec --json` into facts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from agentrunner.workers import fact
from agentrunner.workers.streams import (
    MAX_COMMAND_CHARS,
    code_of,
    count_of,
    dict_of,
    list_of,
    text_of,
)

FINAL = r'^\{"type":"turn\.(completed|failed)"'
RETRY = r'^\{"type":"error","message":"Reconnecting\.\.\. '
_RECONNECTING = "Reconnecting... "
"""Followed by "2/5 (why)" or, if there is no network, forever by "waiting for network (why)"."""
_SHELLS = {"sh", "bash", "zsh"}


def facts_of(record: Mapping[str, object]) -> Iterator[fact.Fact]:
    """Yield the facts in one event. Usage is that of the whole thread, including earlier runs."""
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


def _of_item(item: Mapping[str, object], *, done: bool) -> Iterator[fact.Fact]:
    kind = item.get("type")
    name = text_of(item.get("id"))
    if kind == "command_execution":
        tool = fact.Tool("shell", command=_command(item))
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
            yield fact.FileChanged(text_of(change.get("path")), text_of(change.get("kind")))
    elif done and kind in ("mcp_tool_call", "web_search", "todo_list"):
        yield fact.ToolEnded(name, tool=fact.Tool(str(kind)))


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
