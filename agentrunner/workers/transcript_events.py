"""Live events from the facts of a stream."""

from __future__ import annotations

from collections.abc import Iterator

from agentrunner.workers.base import WorkerEvent
from agentrunner.workers.streams import MAX_COMMAND_CHARS, LineSplitter, clip, parse_object
from agentrunner.workers.transcript import (
    MAX_MESSAGE_CHARS,
    Fact,
    FileChanged,
    Retrying,
    SessionLost,
    Tokens,
    ToolBegan,
    ToolEnded,
    TranscriptFacts,
    Translate,
    Trouble,
    WorkerMessage,
    exit_code_of,
)


class TranscriptEvents:
    """Live events of a stream; an error repeated at once is reported once."""

    def __init__(self, translate: Translate) -> None:
        self._translate = translate
        self._splitter = LineSplitter()
        self._facts = TranscriptFacts()
        self._last_error = ""
        self._pieces = ""

    def feed(self, chunk: bytes) -> list[WorkerEvent]:
        return [event for line in self._splitter.feed(chunk) for event in self._events(line)]

    def _events(self, line: str) -> Iterator[WorkerEvent]:
        for fact in self._translate(parse_object(line) or {}):
            self._facts.add(fact)
            if isinstance(fact, WorkerMessage) and fact.joins:
                self._pieces = (self._pieces + fact.text)[:MAX_MESSAGE_CHARS]
                continue
            if self._pieces:
                yield _text_event(self._pieces)
                self._pieces = ""
            if (event := self._event(fact)) is not None:
                yield event

    def _event(self, fact: Fact) -> WorkerEvent | None:
        match fact:
            case WorkerMessage(text) if text.strip():
                return _text_event(text)
            case ToolBegan(_, tool) if tool.command:
                command = clip(tool.command, MAX_COMMAND_CHARS)
                return WorkerEvent("command_started", {"command": command})
            case ToolEnded():
                return self._ended(fact)
            case FileChanged(path, change):
                return _file_event(path, change)
            case Tokens():
                usage = {
                    "input_tokens": self._facts.input_tokens,
                    "output_tokens": self._facts.output_tokens,
                }
                return WorkerEvent("usage", usage)
            case Trouble(message) | Retrying(message) | SessionLost(message):
                if message and message != self._last_error:
                    self._last_error = message
                    return WorkerEvent("error", {"message": clip(message)})
        return None

    def _ended(self, fact: ToolEnded) -> WorkerEvent | None:
        tool = self._facts.tool(fact)
        if tool is not None and tool.command:
            command = clip(tool.command, MAX_COMMAND_CHARS)
            fields = {"command": command, "exit_code": exit_code_of(fact.exit_code)}
            return WorkerEvent("command_finished", fields)
        if tool is not None and tool.path and not fact.failed:
            return _file_event(tool.path, tool.change)
        return None


def _text_event(text: str) -> WorkerEvent:
    return WorkerEvent("text", {"text": clip(text, 4_000)})


def _file_event(path: str, change: str) -> WorkerEvent:
    return WorkerEvent("file_changed", {"path": clip(path, 4_000), "change": clip(change, 40)})
