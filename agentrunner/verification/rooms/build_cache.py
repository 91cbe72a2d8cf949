"""What Go compiled before the run, for the commands of every tree: packages and the library.

Each command has an empty home, in which Go would compile all of that anew, with `-race` and from
Go 1.20 on its own library too: minutes where the tests take a second. Like byte code it is written
on the untouched tree alone, and each later command has a layer over it that is thrown away, so
that nobody can forge it. Go takes from it what was made of the same content, and nothing else; that
a test had passed is forgotten, or it would not run where the work changed what Go does not see.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from agentrunner.folders import remove_tree
from agentrunner.sandboxes.base import Mount, Sandbox
from agentrunner.sandboxes.find_caches import upper_files
from agentrunner.sandboxes.homes import is_large

VARIABLE = "GOCACHE"
MODULES = ("go.mod", "go.work")
_EXPIRY = "testexpire.txt"
"""As `go clean -testcache` writes it: results of tests from before that time are not used."""


class BuildCache:
    """Go's build cache of one run, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._warming = False

    def warm(self, sandbox: Sandbox, repo: Path) -> None:
        """Let commands write into it from now on; blocks. Only where the tree has a module."""
        if place_in(sandbox) and any(name in MODULES for _, name in upper_files(repo)):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._warming = True

    def seal(self) -> None:
        """Keep what was written; blocks. What is too large for a layer that is a copy goes."""
        if self._warming and is_large(self.folder):
            self.remove()
        elif self._warming:
            (self.folder / _EXPIRY).write_text(f"{time.time_ns()}\n", encoding="ascii")
        self._warming = False

    def remove(self) -> None:
        """Remove it; commands compile everything then. Blocks."""
        remove_tree(os.fspath(self.folder))

    def mounts(self, sandbox: Sandbox) -> tuple[Mount, ...]:
        """Return how a command in this sandbox sees it."""
        place = place_in(sandbox) if self.folder.is_dir() else None
        if place is None:
            return ()
        return (Mount(self.folder, place, read_only=False, layer=not self._warming),)

    def environment(self, sandbox: Sandbox) -> dict[str, str]:
        """Return the variable that leads Go to it."""
        place = place_in(sandbox) if self.folder.is_dir() else None
        return {VARIABLE: str(place)} if place is not None else {}


def place_in(sandbox: Sandbox) -> Path | None:
    """Where commands see it; None where the sandbox has no place for it, as one of others."""
    place: Path | None = getattr(sandbox, "build_cache", None)
    return place
