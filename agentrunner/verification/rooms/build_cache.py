"""What was compiled before the run, for the commands of every tree.

Each command starts without anything compiled, and a verdict is many commands: minutes each where
the tests take a second. Like byte code a build cache is written on the untouched tree alone, and
each later command has a layer over it that is thrown away, so that nobody can forge it. A tool
takes from it what was made of the same content, as far as the tool looks; a repository in which it
does not look at everything has none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agentrunner.folders import remove_tree, walk
from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.find_caches import upper_files
from agentrunner.sandboxes.homes import is_large
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.rooms.byte_code import speaks_of

MOST_FILES = 100_000
_C = lazy_regex(rb'(?m)^[^\S\n]*(?:import\s+(?:\w+\s+)?)?"C"\s*(?://.*)?$')
"""How a file of Go imports what its comment includes."""
ASSEMBLY = (".s", ".S", ".sx", ".asm")
"""May include files that no preprocessor sees."""
IN_ASSEMBLY = lazy_regex(rb"\"[^\"\n]*\.include\b")
"""An order to do so within C."""
BESIDE_GO = (*ASSEMBLY, ".swig", ".swigcxx")
"""What Go compiles beside a file of its own that does not say so."""
OF_C = (".c", ".cc", ".cpp", ".cxx", ".m", ".mm")
BETWEEN = lazy_regex(rb"-toolexec\b")
"""The option that puts a program between Go and its compiler."""
INTERMEDIATE = lazy_regex(
    rb"\b(?:debug|release)/(?:deps|build|examples)\b|\bcurrent_exe\b|\bcargo_bin\("
)
"""How a program may look for Cargo's own files where they are by default, or beside itself."""
CCACHE_FOLDERS = ("/usr/lib/ccache", "/usr/lib64/ccache", "/usr/lib/ccache/bin")
"""Where distributions have ccache under the names of compilers, to be put on PATH."""
_NAME = lazy_regex(rb"\bname[\"']?\s*=\s*[\"']([\w-]+)[\"']")


class CachingTool(Struct, frozen=True):
    """A tool that takes what it compiled before from a folder."""

    folder: str
    """The folder's name, in the run's folder and in the sandbox."""
    looks_at_all: Callable[[Path], bool]
    """Whether a tree is the tool's, and the tool looks at all that its results are made of."""
    env: Callable[[str], Mapping[str, str]]
    """The variables that tell it the folder's place."""
    seal: Callable[[Path, frozenset[str]], None]
    """Removes what may not be used again; the names are those of the tree's own packages."""
    path: str = ""
    """What stands first on PATH, for a tool that takes the place of compilers."""


class ShownCache(Struct, frozen=True):
    """A build cache as a command sees it."""

    mount: Mount
    env: Mapping[str, str]
    path: str


class BuildCaches:
    """The build caches of one run, in its folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open = False
        self._own: frozenset[str] = frozenset()

    def open(self) -> None:
        """Let commands write into new ones from now on; blocks."""
        self.remove()
        self._open = True

    def seal(self) -> None:
        """Keep what was written; blocks. What is too large for a layer that is a copy goes."""
        self._open = False
        for tool in TOOLS:
            folder = self._root / tool.folder
            if is_large(folder):
                remove_tree(os.fspath(folder))
            elif folder.is_dir():
                tool.seal(folder, self._own)

    def remove(self) -> None:
        """Remove them; commands compile everything then. Blocks."""
        for tool in TOOLS:
            remove_tree(os.fspath(self._root / tool.folder))

    def shown(self, beside: Path | None, tree: Path, texts: Iterable[str]) -> list[ShownCache]:
        """Return what a command on this tree sees of them; blocks.

        `beside` is where the sandbox shows byte code, None for nowhere; `texts` are the command and
        its variables.
        """
        if beside is None or any(BETWEEN.search(to_bytes(text)) for text in texts):
            return []
        found = []
        for tool in TOOLS:
            folder = self._root / tool.folder
            if not (self._open or folder.is_dir()) or not tool.looks_at_all(tree):
                continue
            if self._open and not folder.is_dir():
                self._own |= _names_in(tree)
                folder.mkdir(mode=0o700)
                if os.geteuid() == 0:  # a container's user is the tree's owner
                    os.chown(folder, (owner := tree.stat()).st_uid, owner.st_gid)
            place = beside.with_name(tool.folder)
            mount = Mount(folder, place, read_only=False, layer=not self._open)
            found.append(ShownCache(mount, tool.env(str(place)), tool.path))
        return found


def _files(tree: Path) -> Iterator[Path]:
    for here, _, names in walk(tree):
        yield from (Path(here, name) for name in names)


# -- Go -------------------------------------------------------------------------------------------


def _go_looks_at_all(tree: Path) -> bool:
    """Go does not look at headers in other folders, nor at a program before its compiler."""
    modules = ("go.mod", "go.work")
    if all(name not in modules for _, name in upper_files(tree)) or speaks_of(BETWEEN, tree):
        return False
    for count, file in enumerate(_files(tree)):
        if count >= MOST_FILES or file.name.endswith(BESIDE_GO):
            return False
        if file.name.endswith(".go") and _uses_c(file):
            return False
    return True


def _uses_c(file: Path) -> bool:
    """Whether a file of Go imports C; one that is a link, or cannot be read, may."""
    try:
        return file.is_symlink() or not file.is_file() or bool(_C.search(file.read_bytes()))
    except OSError:
        return True


def _forget_passed_tests(folder: Path, _: frozenset[str]) -> None:
    """Have each test run, as `go clean -testcache` does: Go would not run one again where the work
    changed a file that only the test's own programs read."""
    (folder / "testexpire.txt").write_text(f"{time.time_ns()}\n", encoding="ascii")


# -- Rust -----------------------------------------------------------------------------------------


def _cargo_builds(tree: Path) -> bool:
    is_rust = any(name == "Cargo.toml" for _, name in upper_files(tree))
    return is_rust and not speaks_of(INTERMEDIATE, tree)


def _names_in(tree: Path) -> frozenset[str]:
    """Names of packages in a tree, and of more that its manifests name."""
    manifests = (file for file in _files(tree) if file.name == "Cargo.toml" and file.is_file())
    return frozenset(name.decode() for one in manifests for name in _NAME.findall(one.read_bytes()))


def _forget_own_packages(folder: Path, own: frozenset[str]) -> None:
    """Leave libraries: whether a package of the tree is as it was, Cargo tells by times alone."""
    for here, folders, _ in walk(folder):
        place = Path(here)
        for name in list(folders):
            if {name, name.rpartition("-")[0]} & {*own, "incremental"}:
                folders.remove(name)
                remove_tree(os.fspath(place / name))


# -- C and C++ ------------------------------------------------------------------------------------


def _is_in_c(tree: Path) -> bool:
    """Whether a tree has C or C++, and no assembly, whose files ccache does not see."""
    found = False
    for count, file in enumerate(_files(tree)):
        if count >= MOST_FILES or file.name.endswith(ASSEMBLY):
            return False
        found |= file.name.endswith(OF_C)
    return found and not speaks_of(IN_ASSEMBLY, tree)


def _of_ccache(place: str) -> Mapping[str, str]:
    """Settings with which ccache reads all that a compiler would: it preprocesses each time."""
    return {
        "CCACHE_DIR": place,
        "CCACHE_CONFIGPATH": "/dev/null",
        "CCACHE_NODIRECT": "true",
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_SLOPPINESS": "",
    }


TOOLS = (
    CachingTool(
        "go-build", _go_looks_at_all, lambda place: {"GOCACHE": place}, _forget_passed_tests
    ),
    # Older ones than Cargo 1.91 do not know the variable, and compile everything.
    CachingTool(
        "cargo-build",
        _cargo_builds,
        lambda place: {"CARGO_BUILD_BUILD_DIR": place},
        _forget_own_packages,
    ),
    CachingTool(
        "ccache", _is_in_c, _of_ccache, lambda _folder, _own: None, ":".join(CCACHE_FOLDERS)
    ),
)
