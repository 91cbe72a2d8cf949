"""A CLI's event stream as facts that all CLIs share, and the conclusions from them.

An adapter translates each record of its stream into facts, one record at a time and without state;
the facts become live events and the reading of an ended run. Facts are
only a witness's claims: snapshots show what changed, and our own checks what passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, field

from agentrunner.workers.base import (
    CommandRun,
    Ended,
    Failure,
    FailureKind,
    WorkerEvent,
    WorkerReading,
)
from agentrunner.workers.fact import (
    Cost,
    Fact,
    FileChanged,
    Finished,
    Model,
    Retrying,
    Session,
    Tokens,
    ToolBegan,
    ToolDenied,
    ToolEnded,
    ToolUse,
    Translate,
    Trouble,
    TurnBegan,
    WorkerMessage,
)
from agentrunner.workers.failures import failure_of
from agentrunner.workers.streams import (
    MAX_COMMAND_CHARS,
    MAX_COMMANDS,
    MAX_COUNT,
    LineSplitter,
    clip,
    code_of,
    ended_by,
    last_lines,
    lines_of,
    parse_object,
    split_summary,
    tail_of,
)

MAX_MESSAGE_CHARS = 32 << 10
"""The limit of one text, of which the end is kept. The cost of joining pieces grows with it."""
MAX_DENIED = 20


class TranscriptFacts(Struct):
    """What the facts have said so far."""

    session_id: str | None = None
    model: str = ""
    clean: bool | None = None
    """Whether the last word on the run was clean; None if there is none."""
    words: str = ""
    actions: int = 0
    commands: dict[str, CommandRun] = field(default_factory=dict)
    denied: dict[str, None] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0
    of_session: bool = False
    """Whether the tokens are those of all runs of the session."""
    usd: float | None = None
    trouble: Trouble | Retrying | None = None
    """The last thing that went wrong; remarks are left out."""
    retries: int = 0
    _tools: dict[str, ToolUse] = field(default_factory=dict)
    _joining: bool = False

    def add(self, fact: Fact) -> None:
        joining, self._joining = self._joining, isinstance(fact, WorkerMessage) and fact.joins
        match fact:
            case WorkerMessage(text):
                self.words = (self.words + text if joining and fact.joins else text)[
                    -MAX_MESSAGE_CHARS:
                ]
            case ToolBegan() | ToolEnded() | FileChanged():
                self._add_action(fact)
            case ToolDenied(name):
                if len(self.denied) < MAX_DENIED:
                    self.denied[clip(name, 80)] = None
            case Tokens():
                self._add_tokens(fact)
            case Cost(usd):
                self.usd = usd
            case Trouble():
                self.trouble = fact if fact.fatal and fact.message else self.trouble
            case Retrying():
                self.trouble, self.retries = fact, self.retries + 1
            case Session(name):
                self.session_id = clip(name, 100) or self.session_id
            case Model(name):
                self.model = clip(name, 100) or self.model
            case TurnBegan():
                self.clean = None
            case Finished(clean, text):
                self.clean, self.words = clean, self.words if text is None else text

    def tool(self, fact: ToolEnded) -> ToolUse | None:
        """Return what the tool that ended was used for."""
        return fact.tool or self._tools.get(fact.id)

    def _add_action(self, fact: ToolBegan | ToolEnded | FileChanged) -> None:
        if isinstance(fact, FileChanged):
            self.actions += 1
            return
        known = fact.id in self._tools
        tool = fact.tool if isinstance(fact, ToolBegan) else self.tool(fact)
        if tool is None:
            return
        self.actions += not (fact.id and known)
        key = fact.id or str(self.actions)
        if len(self._tools) < MAX_COMMANDS:
            self._tools[key] = tool
        if tool.command and (key in self.commands or len(self.commands) < MAX_COMMANDS):
            command = clip(tool.command, MAX_COMMAND_CHARS)
            self.commands[key] = (
                CommandRun(command, code_of(fact.exit_code), clip(fact.status, 40))
                if isinstance(fact, ToolEnded)
                else CommandRun(command, status="in_progress")
            )

    def _add_tokens(self, fact: Tokens) -> None:
        if fact.scope == "step":
            self.input_tokens = min(MAX_COUNT, self.input_tokens + fact.input)
            self.output_tokens = min(MAX_COUNT, self.output_tokens + fact.output)
        else:
            self.input_tokens, self.output_tokens = fact.input, fact.output
        self.of_session = fact.scope == "session"

    @property
    def failure(self) -> tuple[str, FailureKind | None] | None:
        """The message of the last thing that went wrong, and the kind that its record names."""
        return (self.trouble.message, self.trouble.kind) if self.trouble else None


def facts_in(stdout: Path, translate: Translate) -> Iterator[Fact]:
    """Yield the facts in a captured stream; lines that are not JSON objects are skipped."""
    for line in lines_of(stdout):
        if record := parse_object(line):
            yield from translate(record)


def reading_of(
    ended: Ended, facts: Iterable[Fact], *, lost_session: str = "", counts_actions: bool = True
) -> WorkerReading:
    """Return the reading of an ended run from its facts.

    It is completed only if the CLI's last word is a clean one and it exited with 0 or was ended for
    not exiting after it. `lost_session` is a pattern for the message, on stderr or in its last
    error, with which the CLI reports that it does not know the session to resume.
    """
    read_facts = TranscriptFacts()
    for fact in facts:
        read_facts.add(fact)
    exited_well = ended.exit_code == 0 or ended.outcome == "lingered"
    completed = bool(ended.by_itself and exited_well and read_facts.clean)
    stderr = tail_of(ended.stderr)
    failure = None if completed else _failure(ended, read_facts, stderr)
    error = "" if completed else clip(_why(ended, read_facts, stderr))
    lost = bool(lost_session and not completed and re.search(lost_session, f"{stderr}\n{error}"))
    prose, claims = split_summary(read_facts.words)
    seen = tuple(read_facts.commands.values())
    names = {run.command for run in seen}
    booked_in, booked_out = ended.session_tokens if read_facts.of_session else (0, 0)
    return WorkerReading(
        completed=completed,
        cut_off=read_facts.clean is None,
        summary=clip(prose),
        commands=seen + tuple(claim for claim in claims if claim.command not in names),
        actions=read_facts.actions if counts_actions else None,
        session_id=None if lost else read_facts.session_id,
        session_lost=lost,
        input_tokens=max(0, read_facts.input_tokens - booked_in),
        output_tokens=max(0, read_facts.output_tokens - booked_out),
        usd=read_facts.usd,
        model=read_facts.model,
        denied=tuple(read_facts.denied),
        failure=None if lost else failure,
        error=error,
    )


def written_at(ended: Ended) -> datetime:
    """Return when the CLI printed its last word: a reset "in 5s" counts from there."""
    files = [path for path in (ended.stdout, ended.stderr) if path.exists()]
    stamp = max((path.stat().st_mtime for path in files), default=0.0)
    return datetime.fromtimestamp(stamp, UTC)


def _failure(ended: Ended, read_facts: TranscriptFacts, stderr: str) -> Failure | None:
    now = written_at(ended)
    if read_facts.failure is not None:
        message, kind = read_facts.failure
        found = failure_of(message, now, kind=kind)
    elif read_facts.clean is None:
        found = failure_of(last_lines(stderr, 3), now)
    else:
        found = None
    return replace(found, message=clip(found.message)) if found else None


def _why(ended: Ended, read_facts: TranscriptFacts, stderr: str) -> str:
    if not ended.by_itself:
        return ended_by(ended.outcome)
    if read_facts.failure is not None:
        storm = f" (after {read_facts.retries} retries)" if read_facts.retries else ""
        return read_facts.failure[0] + storm
    if read_facts.clean:
        return f"exit code {ended.exit_code} after the turn was completed"
    lines = last_lines(stderr, 3)
    ending = f"exit code {ended.exit_code} without the end of the turn"
    return ending + (f": {lines}" if lines else "")


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
            case Trouble(message) | Retrying(message):
                if message and message != self._last_error:
                    self._last_error = message
                    return WorkerEvent("error", {"message": clip(message)})
        return None

    def _ended(self, fact: ToolEnded) -> WorkerEvent | None:
        tool = self._facts.tool(fact)
        if tool is not None and tool.command:
            command = clip(tool.command, MAX_COMMAND_CHARS)
            fields = {"command": command, "exit_code": code_of(fact.exit_code)}
            return WorkerEvent("command_finished", fields)
        if tool is not None and tool.path and not fact.failed:
            return _file_event(tool.path, tool.change)
        return None


def _text_event(text: str) -> WorkerEvent:
    return WorkerEvent("text", {"text": clip(text, 4_000)})


def _file_event(path: str, change: str) -> WorkerEvent:
    return WorkerEvent("file_changed", {"path": clip(path, 4_000), "change": clip(change, 40)})
