"""The JSONL that `codex exec --json` prints, as live events and as the facts of an ended run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentrunner.workers.base import CommandRun, Ended, WorkerEvent, WorkerReading
from agentrunner.workers.streams import (
    MAX_COMMAND_CHARS,
    MAX_COMMANDS,
    LineSplitter,
    clip,
    count_of,
    ended_by,
    last_lines,
    lines_of,
    parse_object,
    split_summary,
    tail_of,
)

_SHELLS = {"sh", "bash", "zsh"}
_RECONNECTING = re.compile(r"Reconnecting\.\.\. \d+/\d+")
_FAILURES = (
    ("auth", r"\b40[13]\b|api key|environment variable"),
    ("rate_limit", r"\b429\b|rate limit|quota"),
    ("context", r"context (window|length)|too long|maximum context"),
    ("model", r"\b404\b|model .*(not found|not exist|not supported)"),
    ("server", r"\b5\d\d\b|high demand|overloaded|internal server"),
    ("network", r"stream disconnected|idle timeout|connect|network|error sending request|dns"),
    ("protocol", r"\b400\b|invalid request|unexpected status"),
)
"""What a message of Codex is about, first match wins; the words are those of the outcomes."""


class CodexEvents:
    """Live events; a message that Codex repeats at once is told once."""

    def __init__(self) -> None:
        self._splitter = LineSplitter()
        self._last_error = ""

    def feed(self, chunk: bytes) -> list[WorkerEvent]:
        """Events that this chunk completes."""
        return [event for line in self._splitter.feed(chunk) for event in self._events(line)]

    def _events(self, line: str) -> Iterator[WorkerEvent]:
        for event in _events_of(parse_object(line) or {}):
            if event.kind == "error":
                message = event.fields["message"]
                if message == self._last_error:
                    continue
                self._last_error = message
            yield event


@dataclass
class _Tally:
    """What the stream has told so far."""

    session_id: str | None = None
    turn: str = ""
    message: str = ""
    errors: list[str] = field(default_factory=list)
    reconnects: int = 0
    commands: dict[str, CommandRun] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, record: dict[str, Any]) -> None:
        kind = record.get("type")
        if kind == "thread.started" and isinstance(record.get("thread_id"), str):
            self.session_id = clip(record["thread_id"], 100)
        elif kind in ("turn.started", "turn.completed", "turn.failed"):
            self.turn = str(kind)
        if kind == "turn.completed":
            usage = _dict(record.get("usage"))
            self.input_tokens = count_of(usage.get("input_tokens"))
            self.output_tokens = count_of(usage.get("output_tokens"))
        if kind in ("error", "turn.failed"):
            self._add_error(_message(record))
        elif kind in ("item.started", "item.completed"):
            self._add_item(_dict(record.get("item")))

    def _add_error(self, message: str) -> None:
        if _RECONNECTING.match(message):
            self.reconnects += 1
        elif message:
            self.errors = [message]

    def _add_item(self, item: dict[str, Any]) -> None:
        if item.get("type") == "agent_message":
            self.message = _text(item.get("text"))
        elif item.get("type") == "command_execution":
            key = _text(item.get("id")) or str(len(self.commands))
            if key in self.commands or len(self.commands) < MAX_COMMANDS:
                self.commands[key] = CommandRun(
                    _command(item), _exit_code(item), clip(_text(item.get("status")), 40)
                )


def read_codex(ended: Ended) -> WorkerReading:
    """The facts of an ended run. Tokens are this run's own: a resumed session's total is reduced
    by what is already booked for it."""
    tally = _Tally()
    for line in lines_of(ended.stdout):
        if record := parse_object(line):
            tally.add(record)
    completed = (
        ended.outcome == "exited" and ended.exit_code == 0 and tally.turn == "turn.completed"
    )
    prose, claims = split_summary(tally.message)
    seen = tuple(tally.commands.values())
    names = {run.command for run in seen}
    booked_in, booked_out = ended.session_tokens
    return WorkerReading(
        completed=completed,
        summary=clip(prose),
        commands=seen + tuple(claim for claim in claims if claim.command not in names),
        session_id=tally.session_id,
        input_tokens=max(0, tally.input_tokens - booked_in),
        output_tokens=max(0, tally.output_tokens - booked_out),
        error="" if completed else clip(_why(ended, tally)),
    )


def classify(message: str) -> str:
    """What an error of Codex is about: auth, rate_limit, context, model, server, network,
    protocol, or "" where it can't be told."""
    return next(
        (name for name, pattern in _FAILURES if re.search(pattern, message, re.IGNORECASE)), ""
    )


def _why(ended: Ended, tally: _Tally) -> str:
    if ended.outcome != "exited":
        return ended_by(ended.outcome)
    if tally.errors:
        kind = classify(tally.errors[-1])
        storm = f" (after {tally.reconnects} reconnects)" if tally.reconnects else ""
        return (f"{kind}: " if kind else "") + tally.errors[-1] + storm
    if tally.turn == "turn.completed":
        return f"exit code {ended.exit_code} after the turn was completed"
    said = last_lines(tail_of(ended.stderr), 3)
    ending = f"exit code {ended.exit_code} without the end of the turn"
    return ending + (f": {said}" if said else "")


def _events_of(record: dict[str, Any]) -> Iterator[WorkerEvent]:
    kind = record.get("type")
    if kind in ("error", "turn.failed"):
        yield WorkerEvent("error", {"message": clip(_message(record))})
    elif kind == "turn.completed":
        usage = _dict(record.get("usage"))
        names = ("input_tokens", "output_tokens")
        yield WorkerEvent("usage", {name: count_of(usage.get(name)) for name in names})
    elif kind in ("item.started", "item.completed"):
        yield from _item_events(_dict(record.get("item")), done=kind == "item.completed")


def _item_events(item: dict[str, Any], *, done: bool) -> Iterator[WorkerEvent]:
    kind = item.get("type")
    if kind == "command_execution" and done:
        fields = {"command": _command(item), "exit_code": _exit_code(item)}
        yield WorkerEvent("command_finished", fields)
    elif kind == "command_execution":
        yield WorkerEvent("command_started", {"command": _command(item)})
    elif kind == "agent_message" and done:
        yield WorkerEvent("text", {"text": clip(_text(item.get("text")), 4_000)})
    elif kind == "error" and done:
        yield WorkerEvent("error", {"message": clip(_message(item))})
    elif kind == "file_change" and done and item.get("status") == "completed":
        changes = item.get("changes")
        for change in map(_dict, changes if isinstance(changes, list) else []):
            fields = {
                "path": clip(_text(change.get("path")), 4_000),
                "change": clip(_text(change.get("kind")), 40),
            }
            yield WorkerEvent("file_changed", fields)


def _command(item: dict[str, Any]) -> str:
    """The command as the model wrote it, without the `/bin/bash -lc '…'` around it."""
    command = _text(item.get("command"))
    if len(command) <= MAX_COMMAND_CHARS:
        try:
            words = shlex.split(command)
        except ValueError:
            words = []
        if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc"):
            command = words[2]
    return clip(command, MAX_COMMAND_CHARS)


def _exit_code(item: dict[str, Any]) -> int | None:
    code = item.get("exit_code")
    fits = isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 31
    return code if fits else None


def _message(record: dict[str, Any]) -> str:
    return _text(record.get("message")) or _text(_dict(record.get("error")).get("message"))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
