"""The engine's stream of entries as lines for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentrunner.sandboxes.docker.engine import Engine, EngineError

_KEPT_LINES = 20
_DONE = ("Pull complete", "Already exists")


class PullProgress:
    """Layers of an image that is fetched; one line for every tenth of it."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self.error = ""
        """The engine's words, where it failed."""
        self._name = name
        self._tell = tell
        self._layers: dict[str, bool] = {}
        self._bytes: dict[str, tuple[int, int]] = {}
        self._shown = ""

    def feed(self, entry: Mapping[str, Any]) -> None:
        """Take in an entry, and tell how far it is where that has changed."""
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
        self._say()

    def _say(self) -> None:
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
    """The lines of a build, and how it ended."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.error = ""
        """The engine's words, where it failed."""
        self.last: deque[str] = deque(maxlen=_KEPT_LINES)
        """The end of what it printed."""
        self._tell = tell
        self._torn = ""
        self._base: PullProgress | None = None

    def feed(self, entry: Mapping[str, Any]) -> None:
        """Take in an entry, and tell the lines that it completes."""
        if error := entry.get("error"):
            self.error = str(error)
        elif "stream" in entry:
            *lines, self._torn = (self._torn + str(entry["stream"])).split("\n")
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
    """Do something long, telling how far it is; what the engine says against it, "" for nothing.

    Raises EngineError where it says nothing any more.
    """
    try:
        await engine.follow(op, start, progress.feed)
    except EngineError as error:
        if error.status is None:
            raise
        return error.cause
    return progress.error
