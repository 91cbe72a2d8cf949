"""Finds the host folders that a command needs to start: its interpreter's installation, no more.

It follows symbolic links, `#!` lines, the `home` of a virtual environment and the shims of version
managers. It never mounts a PATH entry as such, or its parent: `~/.cargo/bin` lies beside tokens,
`~/.local` above keyrings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentrunner.sandboxes.base import Mount
from agentrunner.sandboxes.deny import exposes, holds
from agentrunner.sandboxes.shims import (
    Managers,
    environments_of,
    is_file,
    is_folder,
    pyvenv_home,
    unshim,
)

SYSTEM_ROOTS = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")))
SYSTEM_PATH = tuple(map(Path, ("/usr/local/bin", "/usr/bin", "/bin")))
USUAL = (
    "python3", "python", "node", "npm", "cargo", "go", "ruby", "java", "javac", "mvn", "gradle",
    "php",
)  # fmt: skip
"""Always looked for, besides the named words: `make test` does not say what it starts."""
_MAX_STEPS = 400


@dataclass(frozen=True)
class Toolchain:
    """What must be visible, and the PATH that finds it."""

    mounts: tuple[Mount, ...] = ()
    """Installation roots and single files, read-only, each at its own path."""
    links: tuple[tuple[Path, str], ...] = ()
    """Symbolic links on the way, made again in the sandbox: their path and their text."""
    path: tuple[Path, ...] = SYSTEM_PATH
    missing: tuple[str, ...] = ()
    """Words for which no program was found."""
    programs: tuple[Path, ...] = ()
    """The real files of the programs, and of the interpreters behind them."""


def find_toolchain(
    programs: Sequence[str],
    repo: Path,
    environ: Mapping[str, str],
    home: Path,
    *,
    avoid: Sequence[Path] = (),
) -> Toolchain:
    """Return the toolchains behind these words, and of the repository's virtual environment.

    Reads links, first lines and version files; starts nothing. A root that would contain a path of
    `avoid`, a home or a place for credentials is not mounted: only the program's file is.
    """
    search = _Search(repo, environ, home, avoid)
    for python in search.environments:
        search.take(python)
    missing = [word for word in dict.fromkeys(programs) if not search.program(word)]
    for word in USUAL:
        search.program(word)
    return search.result(missing)


class _Search:
    """One search, which collects what it finds on the way."""

    def __init__(
        self, repo: Path, environ: Mapping[str, str], home: Path, avoid: Sequence[Path]
    ) -> None:
        self._repo = repo
        self._home = home
        self._avoid = avoid
        self._managers = Managers.of(environ, home)
        self._environ = environ
        self._seen: set[Path] = set()
        self._programs: dict[Path, None] = {}
        self._roots: set[Path] = set()
        self._links: dict[Path, str] = {}
        self._shimmed: dict[Path, list[Path]] = {}
        # Debian's /usr/bin/java leads through /etc/alternatives, which every sandbox has.
        self._shown = (*SYSTEM_ROOTS, Path("/etc/alternatives"), repo)
        venvs = environments_of(repo)
        if environ.get("VIRTUAL_ENV"):
            venvs.append(Path(environ["VIRTUAL_ENV"]))
        venvs = [v for v in venvs if v.is_absolute() and is_file(v / "pyvenv.cfg")]
        self.environments = [v / "bin" / "python" for v in venvs]
        entries = (Path(entry) for entry in environ.get("PATH", "").split(":") if entry)
        self._path = tuple(
            dict.fromkeys(
                [
                    *(venv / "bin" for venv in venvs),
                    *(entry for entry in entries if entry.is_absolute()),
                    *SYSTEM_PATH,
                ]
            )
        )

    def program(self, word: str) -> bool:
        """Follow the program of this name or path, and return whether there is one.

        Of a name that an environment has, too, also the one that its user would start.
        """
        own = {python.parent for python in self.environments}
        places = (self._path, [folder for folder in self._path if folder not in own])
        found = [one for path in places if (one := self._find(word, path)) is not None]
        for one in found:
            self.take(one)
        return bool(found)

    def take(self, path: Path) -> None:
        """Make this file startable at this path."""
        if path in self._seen or not is_file(path):
            return
        self._seen.add(path)
        real = self._follow(path)
        self._programs[real] = None
        for place in (path, real):
            if not self._in_sandbox(place):
                self._add(self._root(place))
        for base in _venv_bases(path):
            self.take(base)
        interpreter = _shebang(real)
        if interpreter:
            self.program(interpreter)

    def result(self, missing: Iterable[str]) -> Toolchain:
        """Return the toolchain: roots without nested roots, links without those inside roots."""
        roots = [
            root
            for root in sorted(self._roots)
            if not any(other != root and holds(other, root) for other in self._roots)
        ]
        links = [
            (place, text)
            for place, text in sorted(self._links.items())
            if not any(holds(root, place) for root in roots)
        ]
        return Toolchain(
            mounts=tuple(Mount(root, root) for root in roots),
            links=tuple(links),
            path=self._visible_path(roots, [place for place, _ in links]),
            missing=tuple(missing),
            programs=tuple(self._programs),
        )

    def _find(self, word: str, path: Iterable[Path]) -> Path | None:
        if "/" in word:
            file = self._repo / word
            return file if _is_executable(file) else None
        for folder in path:
            candidate = folder / word
            if not _is_executable(candidate):
                continue
            found = unshim(candidate, self._repo, self._environ, self._managers)
            if found is None:
                continue
            if found != candidate:
                self._shimmed.setdefault(folder, []).append(found.parent)
            return found
        return None

    def _follow(self, path: Path) -> Path:
        """Return the real file, and note every link on the way that the sandbox would lack."""
        todo = list(reversed(path.parts[1:]))
        here = Path("/")
        for _ in range(_MAX_STEPS):
            if not todo:
                break
            part = todo.pop()
            if part == "..":
                here = here.parent
                continue
            step = here / part
            if not os.path.islink(step):  # noqa: PTH114 - Path raises where it may not look
                here = step
                continue
            text = os.readlink(step)  # noqa: PTH115 - the text as it stands
            if not self._in_sandbox(step):
                self._links[step] = text
            target = Path(text)
            if target.is_absolute():
                here = Path("/")
                todo += reversed(target.parts[1:])
            else:
                todo += reversed(target.parts)
        return here

    def _in_sandbox(self, path: Path) -> bool:
        return any(holds(place, path) for place in self._shown)

    def _add(self, root: Path | None) -> None:
        if root is not None and not self._in_sandbox(root):
            self._roots.add(root)

    def _root(self, file: Path) -> Path | None:
        """Return the installation of this file, or the file alone; None for a mere link."""
        known = self._managers.root_of(file)
        for candidate in (known, _node_modules(file), _prefix(file)):
            if candidate is not None and self._is_safe(candidate):
                return candidate
        return None if file.is_symlink() or file != file.resolve() else file

    def _is_safe(self, root: Path) -> bool:
        return (
            root != Path("/")
            and not exposes(root, self._home)
            and not any(holds(root, place) for place in self._avoid)
        )

    def _visible_path(self, roots: Sequence[Path], links: Sequence[Path]) -> tuple[Path, ...]:
        """Return the search path in the host's order: shims replaced, useless folders left out."""
        shown: list[Path] = []
        for folder in self._path:
            shown += self._shimmed.get(folder, [])
            real = folder.resolve()
            if any(holds(place, real) for place in (*SYSTEM_ROOTS, self._repo, *roots)):
                # Use the name that scripts know, if the sandbox has that too.
                known = any(holds(place, folder) for place in (*SYSTEM_ROOTS, self._repo, *roots))
                shown.append(folder if known else real)
            elif any(place.parent == folder for place in (*roots, *links)):
                shown.append(folder)
            elif any(place.parent == real for place in roots):
                shown.append(real)
        return tuple(dict.fromkeys(shown))


def _is_executable(path: Path) -> bool:
    return is_file(path) and os.access(path, os.X_OK)


def _shebang(file: Path) -> str:
    """Return the interpreter's path, or its name if `env` is used; "" for a binary."""
    try:
        with file.open("rb") as stream:
            first = stream.readline(512)
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].decode(errors="replace").split()
    if not words:
        return ""
    if Path(words[0]).name != "env":
        return words[0] if words[0].startswith("/") else ""
    names = (word for word in words[1:] if not word.startswith("-") and "=" not in word)
    return next(names, "")


def _venv_bases(path: Path) -> list[Path]:
    """Return the interpreters that the virtual environment around `path` is based on."""
    base = pyvenv_home(path.parent.parent)
    return [] if base is None else [base / name for name in ("python3", "python")]


def _node_modules(file: Path) -> Path | None:
    """Return the outermost node_modules: a package's dependencies may lie beside it."""
    if "node_modules" not in file.parts:
        return None
    return Path(*file.parts[: file.parts.index("node_modules") + 1])


def _prefix(file: Path) -> Path | None:
    """Return the folder above bin/, if it looks like an installation and not like a collection."""
    if file.parent.name not in ("bin", "sbin"):
        return None
    root = file.parent.parent
    marks = ("pyvenv.cfg", "conda-meta", "lib")
    seen = any(is_file(root / mark) or is_folder(root / mark) for mark in marks)
    return root if seen else None
