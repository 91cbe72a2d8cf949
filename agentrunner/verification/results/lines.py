"""Reads the reports of our own reporters: one JSON object per line, in order of events.

`start` (tool, cwd), `begin` (name), `test` (name, outcome, file, line, message), `lost` (the name
of a test of the report that stands for others, which have no names), `exchanged` (a function of the
tool or one that tests inherit, the test, and what else is known of it), `end` (cut, how often the
tool was inspected for that). A report without its end was cut by a crash.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from msgspec import Struct, field

from agentrunner.verification.results.files import ReportFile, reports
from agentrunner.verification.results.model import Exchanged, Results, TestResult
from agentrunner.verification.results.names import below, clean, made

MOST_TESTS = 500_000
MOST_EXCHANGED = 3000
CUT_SHORT = "the run ended in the middle of this test"
Naming = Callable[[str, str, str], str]
"""Makes a test's full name of its own name, its file and the folder below the command's."""


def by_path(name: str, _file: str, folder: str) -> str:
    """The full name where names begin with a path: the folder is put before it."""
    return f"{folder}/{name}" if folder else name


def by_id(name: str, _file: str, folder: str) -> str:
    """The full name where names are dotted."""
    return f"{folder}:{name}" if folder else name


def read_lines(
    place: Path, tool: str, started: str, naming: Naming = by_path, reader: str = ""
) -> Results | None:
    """All reports of one tool joined; None where it wrote none."""
    found: list[TestResult] = []
    looks = Inspections(started)
    complete, any_report = True, False
    for report in reports(place, f"{tool}-*.jsonl"):
        any_report = True
        complete &= _add_report(report, started, naming, found, looks)
    for report in reports(place, f"look-{tool}-*.jsonl"):
        looks.read(_events(report.content), naming)
    if not any_report:
        return None
    return Results(
        reader or tool,
        tuple(found),
        complete=complete,
        looked=looks.count,
        exchanged=tuple(looks.found.values()),
    )


class Inspections(Struct):
    """What inspections found replaced among the tool's own functions."""

    started: str
    """The folder that the command ran in."""
    count: int = 0
    found: dict[tuple[str, str], Exchanged] = field(default_factory=dict)
    """What was replaced, as it was first seen."""

    def add(self, event: dict[str, object], naming: Naming, folder: str) -> None:
        looked = event.get("looked")
        if isinstance(looked, int) and 0 < looked < 1e9:
            self.count += looked
        if event.get("k") == "exchanged" and len(self.found) < MOST_EXCHANGED:
            one = self._exchanged(event, naming, folder)
            self.found.setdefault(one.key, one)

    def _exchanged(self, event: dict[str, object], naming: Naming, folder: str) -> Exchanged:
        test, files = _text(event, "t"), event.get("p")
        return Exchanged(
            _text(event, "n"),
            clean(naming(test, "", folder)) if test else "",
            files=tuple(self._path(str(one)) for one in files) if isinstance(files, list) else (),
            place=self._path(_text(event, "f")),
            member=_text(event, "m"),
            heir=_text(event, "c"),
            digest=_text(event, "d"),
        )

    def _path(self, path: str) -> str:
        """A path relative to the folder that the command ran in."""
        return clean(posixpath.relpath(path, self.started)) if path and self.started else path

    def read(self, events: Iterable[dict[str, object]], naming: Naming) -> None:
        """Read a report that contains only inspections, beside the tool's own."""
        folder = ""
        for event in events:
            if event.get("k") == "start":
                folder = below(str(event.get("cwd") or ""), self.started)
            self.add(event, naming, folder)


def _add_report(
    report: ReportFile, started: str, naming: Naming, found: list[TestResult], looks: Inspections
) -> bool:
    """Add what one report contains; return whether it is complete."""
    running: dict[str, tuple[str, int | None]] = {}
    folder, ended, whole = "", False, not report.cut
    lost: set[str] = set()
    for event in _events(report.content):
        kind, name, file, line = _fields(event)
        looks.add(event, naming, folder)
        if kind == "start":
            folder = below(str(event.get("cwd") or ""), started)
        elif kind == "begin":
            running[name] = (file, line)
        elif kind == "test":
            begun_at = running.pop(name, ("", None))
            path = by_path(file or begun_at[0], "", folder) if file or begun_at[0] else ""
            message = str(event.get("m") or "")
            test = made(naming(name, path, folder), str(event.get("o")), path, line, message)
            found.append(replace(test, unloaded=name in lost))
            lost.discard(name)
        elif kind == "lost" and name:
            lost.add(name)
        elif kind == "lost":
            whole = False
        elif kind == "end":
            ended = True
            whole &= not event.get("cut")
        if len(found) >= MOST_TESTS:
            return False
    for name, (file, line) in list(running.items())[:100] if not ended else ():
        found.append(made(naming(name, file, folder), "error", file, line, CUT_SHORT))
    return whole and ended and not lost


def _events(content: bytes) -> Iterable[dict[str, object]]:
    for line in content.split(b"\n"):
        if not line:
            continue
        try:
            event = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            event = {"k": "lost"}
        if isinstance(event, dict):
            yield event


def _text(event: dict[str, object], name: str) -> str:
    value = event.get(name)
    return clean(str(value)) if value is not None else ""


def _fields(event: dict[str, object]) -> tuple[object, str, str, int | None]:
    line = event.get("l")
    number = line if type(line) is int and 0 <= line < 1e9 else None
    return event.get("k"), str(event.get("n") or ""), str(event.get("f") or ""), number
