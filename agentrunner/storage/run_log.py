"""The run log: what happened, one record a line, kept beside the state.

A node that runs again after a crash writes its records again. Records with the same (attempt,
kind, key) are the same record, and the last one wins. Kinds, with their keys and data:

    meta_begun   number         number, type: before a call is made, so that a call without an end
                                is known
    meta_call    number         number, type, at, duration_sec, usage, usd, known, subscription,
                                candidate, error, model, looks, and the files request and
                                response
    plan         "plan"         criteria
    decision     number         number, action, reason, loop, worker_run_id, used_patterns
    worker_run   worker run id  a WorkerRun, and commands and changes
    evidence     round          an Evidence, and round
    assessment                  an Assessment
    question     id             a Question, and at
    answer       id             an Answer, and at
    person       id             a PersonDecision with its whole text
    message      number         text, by, asked: of `resume --message`
    grant        question id    amounts by limit of the budget
    human_edit                  paths, tree_before, tree_after
    state        number         from, to
    acceptance                  an Acceptance
    wait         role and since a Wait
    commit       "commit"       id, branch, files, uncommitted (carried over, not in it), landed
    warning                     code, message
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict


class Record(Struct, frozen=True):
    """One thing that happened."""

    kind: str
    key: str
    attempt: int
    loop: int
    at: str
    """UTC, ISO 8601."""
    data: Mapping[str, Any] = field(default_factory=dict)


def redact_strings(value: Any, redact: Callable[[str], str]) -> Any:
    """Return `value` with every string in it, keys too, passed through `redact`."""
    if isinstance(value, str):
        return redact(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {redact(str(key)): redact_strings(item, redact) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_strings(item, redact) for item in value]
    return value


def append_line(path: Path, value: Mapping[str, Any], *, sync: bool) -> tuple[int, int]:
    """Append one JSON object as a line in one write, after ending a torn last line.

    Returns the first byte of the file that was added, and the one after the last.
    """
    try:
        line = msgspec.json.encode(value) + b"\n"
    except (UnicodeEncodeError, OverflowError, TypeError):
        # A lone surrogate becomes its JSON escape, so that no text can stop the log.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        line = text.encode("utf-8", "backslashreplace") + b"\n"
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        added = b"\n" + line if torn else line
        rest = memoryview(added)
        while rest:
            rest = rest[os.write(fd, rest) :]
        end = os.lseek(fd, 0, os.SEEK_CUR)
        if sync:
            os.fsync(fd)
        return end - len(added), end
    finally:
        os.close(fd)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, one a line; without torn lines, none for a missing file."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return
    yield from objects(raw)


def objects(raw: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects among these lines; damaged lines are left out."""
    for line in raw.split(b"\n"):
        if not line:
            continue
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


class History(Struct, frozen=True):
    """The records of a run by kind, each in the order of first appearance."""

    records: tuple[Record, ...] = ()

    def of(self, kind: str) -> list[Record]:
        return [record for record in self.records if record.kind == kind]

    @property
    def meta_calls(self) -> list[Record]:
        """Return the calls of the planner, one for each that was sent."""
        return self.of("meta_call")

    @property
    def decisions(self) -> list[Record]:
        """Return the planner's decisions."""
        return self.of("decision")

    @property
    def worker_runs(self) -> list[Record]:
        return self.of("worker_run")

    @property
    def questions(self) -> list[Record]:
        return self.of("question")

    @property
    def answers(self) -> list[Record]:
        return self.of("answer")

    @property
    def human_edits(self) -> list[Record]:
        """Return changes of the tree that people made while the run was paused."""
        return self.of("human_edit")

    @property
    def acceptances(self) -> list[Record]:
        return self.of("acceptance")

    @property
    def warnings(self) -> list[Record]:
        return self.of("warning")


def _records(raw: bytes) -> Iterator[Record]:
    for value in objects(raw):
        with contextlib.suppress(TypeError):  # written by another version
            yield Record(**value)


class RunLog:
    """Appends to and reads one run's log. `redact` is applied to every string written.

    Records that were read or written are kept in memory, so that a step of a long run reads none
    twice.
    """

    def __init__(self, path: Path, redact: Callable[[str], str] | None = None) -> None:
        self.path = path
        self.redact = redact
        self._known: dict[str, dict[tuple[int, str], Record]] = {}
        self._order: dict[tuple[int, str, str], None] = {}
        self._written: list[Record] = []
        self._unsynced = False
        self._files: list[Path] = []
        """Files that have to be on the disk before what names them, see `sync`."""
        self._read = 0
        """Bytes of the file that are in `_known`; always up to the end of a line."""
        self._lock = threading.Lock()
        """Held while `_known` is changed or read: nodes write from threads, too."""

    def append(
        self,
        kind: str,
        key: str,
        data: Mapping[str, Any],
        *,
        attempt: int,
        loop: int,
        at: str,
        sync: bool = True,
    ) -> None:
        """Add a record and sync it to the disk; raise OSError if that fails.

        Without `sync` it reaches the disk with the next `sync()`, unless the machine stops before.
        """
        value = redact_strings(
            asdict(Record(kind, key, attempt, loop, at, dict(data))), self.redact or str
        )
        begin, end = append_line(self.path, value, sync=sync)
        self._unsynced = not sync or self._unsynced
        with self._lock:
            if (
                begin == self._read
            ):  # else another process has written, too, and `_catch_up` reads both
                self._keep([Record(**value)])
                self._read = end

    def names(self, file: Path) -> None:
        """Have a file that was just written synced with the log."""
        self._files.append(file)

    def sync(self) -> None:
        """Sync everything that was added, and the files that it names, to the disk. Blocks."""
        while self._files:
            _sync(self._files[0])
            del self._files[0]
        if not self._unsynced:
            return
        self._unsynced = False
        try:
            _sync(self.path)
        except BaseException:
            self._unsynced = True
            raise

    def records(self, *kinds: str) -> list[Record]:
        """Return all records, or those of these kinds; repeated ones once, as last written."""
        self._catch_up()
        with self._lock:
            if len(kinds) == 1:
                return list(self._known.get(kinds[0], {}).values())
            return [
                self._known[kind][attempt, key]
                for attempt, kind, key in self._order
                if not kinds or kind in kinds
            ]

    def written(self, since: int = 0) -> list[Record]:
        """Return every record as it was written, after the first `since`; repeated ones each time.

        What a killed process did and its successor did again has happened twice.
        """
        self._catch_up()
        return self._written[since:]

    def _catch_up(self) -> None:
        """Read what any process has written since the last time."""
        with self._lock:
            raw = self._unread()
            # A last line without its end may be torn; it is read again.
            whole = raw.rfind(b"\n") + 1
            self._keep(_records(raw[:whole]))
            self._keep(_records(raw[whole:]), for_good=False)
            self._read += whole

    def _unread(self) -> bytes:
        try:
            if os.stat(self.path).st_size == self._read:  # noqa: PTH116  (a third of what Path takes)
                return b""
            with self.path.open("rb", buffering=0) as file:
                file.seek(self._read)
                return file.readall()
        except FileNotFoundError:
            return b""

    def _keep(self, records: Iterable[Record], *, for_good: bool = True) -> None:
        for record in records:
            self._known.setdefault(record.kind, {})[record.attempt, record.key] = record
            self._order[record.attempt, record.kind, record.key] = None
            if for_good:
                self._written.append(record)

    @property
    def latest_at(self) -> str:
        """Return when the run last went on, UTC, ISO 8601; "" for an empty log."""
        return max((one.at for one in self.records() if one.kind != "undo"), default="")

    def history(self, attempt: int | None = None) -> History:
        """Return the records by kind, of one attempt or of all."""
        return History(tuple(r for r in self.records() if attempt is None or r.attempt == attempt))
