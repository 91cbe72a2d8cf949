"""Reads a worker's output: lines of any length, tails, and the JSON summary at the end.

Everything here accepts hostile input: endless lines, broken UTF-8, lone surrogates, deep nesting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agentrunner.text.cut import cut
from agentrunner.text.unicode import clean
from agentrunner.workers.base import CommandRun, WorkerEvent

MAX_LINE_BYTES = 4 << 20
"""A longer line is dropped; Codex puts a command's whole output into one."""
MAX_TEXT_CHARS = 600
"""What the state keeps of a summary or an error."""
MAX_COMMAND_CHARS = 2_000
MAX_COMMANDS = 500
MAX_COUNT = 1 << 53
_STOPPED = {
    "egress": "stopped, as it kept asking for a host that is not allowed",
    "retry_storm": "stopped, as it only asked its model again and again",
    "interrupted": "stopped together with the run",
    "login_prompt": "stopped, as it asked somebody to log in",
}
_TAIL_BYTES = 16 << 10
_SUMMARY_LINES = 5
_READ_BYTES = 64 << 10


class LineSplitter:
    """Splits a byte stream into decoded lines, dropping those over `MAX_LINE_BYTES`."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[str]:
        """Return the lines that this chunk completes, without their line endings."""
        *ended, rest = chunk.split(b"\n")
        lines = [line for part in ended if (line := self._end(part)) is not None]
        self._keep(rest)
        return lines

    def rest(self) -> list[str]:
        """Return the last line, if the stream ended without a line ending."""
        return [line] if (line := self._end(b"")) else []

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_LINE_BYTES:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _end(self, part: bytes) -> str | None:
        self._keep(part)
        too_long = self._size > MAX_LINE_BYTES
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return None if too_long else line.decode("utf-8", "replace").rstrip("\r")


class TextEvents:
    """Events of a worker that prints plain text: each non-blank line."""

    def __init__(self) -> None:
        self._splitter = LineSplitter()

    def feed(self, chunk: bytes) -> list[WorkerEvent]:
        return [
            WorkerEvent("text", {"text": clip(line)})
            for line in self._splitter.feed(chunk)
            if line.strip()
        ]


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a captured stream; none if the file does not exist."""
    if not path.exists():
        return
    splitter = LineSplitter()
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            yield from splitter.feed(chunk)
    yield from splitter.rest()


def tail_of(path: Path) -> str:
    """Return the last 16 KiB of a captured stream as text; "" if the file does not exist."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def last_lines(text: str, count: int = _SUMMARY_LINES) -> str:
    """Return the last non-blank lines."""
    return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-count:])


def clip(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Return text that is safe in the state: no lone surrogates, no NUL, not over `limit`."""
    return cut(clean(text.strip()), limit)


def parse_object(line: str) -> Mapping[str, object] | None:
    """Return the JSON object on this line; None for anything else."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def count_of(value: object) -> int:
    """Return a counter as printed by a CLI: 0 for anything that is not one."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT:
        return value
    return 0


def split_summary(text: str) -> tuple[str, tuple[CommandRun, ...]]:
    """Split a worker's final text into its prose and the commands of its JSON summary.

    The summary is the last valid object with a list `commands`, fenced or bare: `{"commands":
    [{"cmd": "npm test", "status": "passed"}]}`. If the text has no prose, the object's own
    `summary` is used, if it has one.
    """
    tail = text[-_TAIL_BYTES:]
    found = _last_object_with_commands(tail)
    if found is None:
        return text.strip(), ()
    start, value = found
    before = text[: len(text) - len(tail) + start].rstrip().removesuffix("```json")
    prose = before.removesuffix("```").strip() or text_of(value.get("summary")) or text.strip()
    return prose, _claims(list_of(value["commands"]))


def _last_object_with_commands(text: str) -> tuple[int, Mapping[str, object]] | None:
    decoder = json.JSONDecoder()
    start = text.rfind("{", 0, text.rfind('"commands"') + 1)
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and isinstance(value.get("commands"), list):
            return start, value
        start = text.rfind("{", 0, start)
    return None


def _claims(items: Sequence[object]) -> tuple[CommandRun, ...]:
    runs = []
    for item in items[:MAX_COMMANDS]:
        claim: Mapping[str, object] = item if isinstance(item, dict) else {"cmd": item}
        command = text_of(claim.get("cmd")) or text_of(claim.get("command"))
        if command:
            status = clip(text_of(claim.get("status")), 40)
            runs.append(CommandRun(clip(command, MAX_COMMAND_CHARS), status=status))
    return tuple(runs)


def code_of(value: object) -> int | None:
    """Return an exit code as printed by a CLI; None for anything that is not one."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31:
        return value
    return None


def text_of(value: object) -> str:
    """Return a text of a record; "" for anything else."""
    return value if isinstance(value, str) else ""


def dict_of(value: object) -> Mapping[str, object]:
    """Return an object of a record; {} for anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> Sequence[object]:
    """Return a list of a record; [] for anything else."""
    return value if isinstance(value, list) else []


def ended_by(outcome: str) -> str:
    """Return why a worker did not end by itself, as text for notes and planners."""
    return _STOPPED.get(outcome, f"ended by {outcome}")
