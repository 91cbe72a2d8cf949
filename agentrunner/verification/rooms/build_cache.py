"""What Go compiled before the run, for the commands of every tree: packages and the library.

Each command has an empty home, in which Go would compile all of that anew, with `-race` and from
Go 1.20 on its own library too: minutes where the tests take a second. Like byte code it is written
on the untouched tree alone, and each later command has a layer over it that is thrown away, so
that nobody can forge it.

Go takes from it what was made of the same content, as far as Go looks: not at headers in other
folders, nor at a program that stands between it and its compiler. So repositories with either have
none. And that a test had passed is forgotten, or it would not run where the work changed a file
that only the test's own programs read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from agentrunner.folders import remove_tree, walk
from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.find_caches import upper_files
from agentrunner.sandboxes.homes import is_large
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.rooms.byte_code import speaks_of

VARIABLE = "GOCACHE"
FOLDER = "go-build"
MODULES = ("go.mod", "go.work")
_EXPIRY = "testexpire.txt"
"""As `go clean -testcache` writes it: results of tests from before that time are not used."""
_C = lazy_regex(rb'(?m)^\s*(?:import\s+(?:\w+\s+)?)?"C"\s*(?://.*)?$')
"""How a file of Go imports what its comment includes."""
WITHOUT_C = (".s", ".S", ".sx", ".swig", ".swigcxx")
"""What Go compiles beside a file of its own that does not say so."""
BETWEEN = lazy_regex(rb"-toolexec\b")
"""The option that puts a program between Go and its compiler."""
MOST_FILES = 100_000


class BuildCache:
    """Go's build cache of one run, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open = False

    def open(self) -> None:
        """Let commands write into a new one from now on; blocks."""
        self.remove()
        self._open = True

    def seal(self) -> None:
        """Keep what was written; blocks. What is too large for a layer that is a copy goes."""
        self._open = False
        if is_large(self.folder):
            self.remove()
        elif self.folder.is_dir():
            (self.folder / _EXPIRY).write_text(f"{time.time_ns()}\n", encoding="ascii")

    def remove(self) -> None:
        """Remove it; commands compile everything then. Blocks."""
        remove_tree(os.fspath(self.folder))

    def mount(self, beside: Path | None, tree: Path, texts: Iterable[str]) -> Mount | None:
        """Return how a command on this tree sees it, if it does; blocks.

        `beside` is where the sandbox shows byte code, None for nowhere; `texts` are the command and
        its variables.
        """
        if beside is None or any(BETWEEN.search(to_bytes(text)) for text in texts):
            return None
        if self._open and not self.folder.is_dir() and _is_whole(tree):
            self.folder.mkdir(mode=0o700)
            if os.geteuid() == 0:  # a container's user is the tree's owner
                os.chown(self.folder, (owner := tree.stat()).st_uid, owner.st_gid)
        if not self.folder.is_dir():
            return None
        return Mount(self.folder, beside.with_name(FOLDER), read_only=False, layer=not self._open)


def _is_whole(tree: Path) -> bool:
    """Whether a tree has a module of Go, and Go looks at all that its packages are made of."""
    if all(name not in MODULES for _, name in upper_files(tree)) or speaks_of(BETWEEN, tree):
        return False
    left = MOST_FILES
    for here, _, names in walk(tree):
        left -= len(names)
        if left < 0 or any(name.endswith(WITHOUT_C) for name in names):
            return False
        if any(_uses_c(Path(here, name)) for name in names if name.endswith(".go")):
            return False
    return True


def _uses_c(file: Path) -> bool:
    """Whether a file of Go imports C; one that is a link, or cannot be read, may."""
    try:
        return file.is_symlink() or not file.is_file() or bool(_C.search(file.read_bytes()))
    except OSError:
        return True
