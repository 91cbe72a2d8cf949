"""Turns the engine's stream of entries into lines for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentrunner.sandboxes.docker.engine import Engine, EngineError

_KEPT_LINES = 20
_DONE = ("Pull complete", "Already exists")


class PullProgress:
    """The layers of an image being downloaded; a line for every tenth of it."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self.error = ""
        """The engine's message, if it failed."""
        self._name = name
        self._tell = tell
        self._layers: dict[str, bool] = {}
        self._bytes: dict[str, tuple[int, int]] = {}
        self._shown = ""

    def feed(self, entry: Mapping[str, Any]) -> None:
        """Process an entry, and report the progress if it changed."""
        if error := entry.get("error"):
            self.error = str(error)
            return
        layer, status = str(entry.get("id") or ""), str(entry.get("status") or "")
        if not layer or status.startswith("Pulling from"):
            return
        self._layers[layer] = status in _DONE
        detail = entry.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._bytes[layer] = (int(detail.get("current") or 0), int(detail["total"]))
        elif self._layers[layer] and layer in self._bytes:
            self._bytes[layer] = (self._bytes[layer][1],) * 2
        self._report()

    def _report(self) -> None:
        done, got = sum(self._layers.values()), sum(now for now, _ in self._bytes.values())
        total = sum(size for _, size in self._bytes.values())
        tenth = 10 * got // total if total else 0
        line = f"{self._name}: {done} of {len(self._layers)} layers"
        if total:
            line += f", {tenth * 10} % of {total / 1e6:.0f} MB"
        if line != self._shown:
            self._shown = line
            self._tell(line)


class BuildProgress:
    """The lines of a build, and its outcome."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.error = ""
        """The engine's message, if it failed."""
        self.last: deque[str] = deque(maxlen=_KEPT_LINES)
        """The end of what it printed."""
        self._tell = tell
        self._partial_line = ""
        self._base: PullProgress | None = None

    def feed(self, entry: Mapping[str, Any]) -> None:
        """Process an entry, and report the lines that it completes."""
        if error := entry.get("error"):
            self.error = str(error)
        elif "stream" in entry:
            *lines, self._partial_line = (self._partial_line + str(entry["stream"])).split("\n")
            for line in lines:
                self._line(line)
        elif "status" in entry:
            self._base = self._base or PullProgress("its base", self._tell)
            self._base.feed(entry)

    def _line(self, line: str) -> None:
        if line := line.rstrip():
            self.last.append(line)
            self._tell(line)


async def followed(
    engine: Engine,
    op: str,
    start: Callable[[Any], Iterable[dict[str, object]]],
    progress: PullProgress | BuildProgress,
) -> str:
    """Run a long call with progress; return the engine's error message, "" if it succeeded.

    Raises EngineError if the engine does not answer.
    """
    try:
        await engine.follow(op, start, progress.feed)
    except EngineError as error:
        if error.status is None:
            raise
        return error.cause
    return progress.error
