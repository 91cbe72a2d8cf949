"""Version managers: where they keep installations, and which program a shim stands for.

A shim asks its manager at run time, and the manager's own folders are not in the sandbox. So the
answer is computed here, from the same version files.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.deny import holds

_PYENV_LIKE = {
    "pyenv": ("PYENV_VERSION", ".python-version"),
    "rbenv": ("RBENV_VERSION", ".ruby-version"),
    "nodenv": ("NODENV_VERSION", ".node-version"),
    "goenv": ("GOENV_VERSION", ".go-version"),
}


def is_file(path: Path) -> bool:
    """Whether it is a file; no where that cannot be seen, below a folder of somebody else."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises PermissionError


def is_folder(path: Path) -> bool:
    """Whether it is a folder; no where that cannot be seen."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


@dataclass(frozen=True)
class Managers:
    """Where this user's version managers keep their installations."""

    installations: tuple[tuple[Path, int], ...]
    """A folder, and how many levels below it the root of an installation is."""
    cargo: Path
    rustup: Path
    volta: Path
    home: Path

    @classmethod
    def of(cls, environ: Mapping[str, str], home: Path) -> Managers:
        """Find the managers by their variables, or else at their usual locations."""

        def place(variable: str, usual: Path) -> Path:
            named = environ.get(variable, "")
            return Path(named) if named.startswith("/") else usual

        data = place("XDG_DATA_HOME", home / ".local/share")
        rustup = place("RUSTUP_HOME", home / ".rustup")
        volta = place("VOLTA_HOME", home / ".volta")
        nvm = (place("NVM_DIR", home / ".nvm"), home / ".config/nvm")
        fnm = (place("FNM_DIR", data / "fnm"), home / ".fnm")
        pyenv_like = [
            (place(f"{name.upper()}_ROOT", home / f".{name}") / "versions", 1)
            for name in _PYENV_LIKE
        ]
        return cls(
            installations=(
                *pyenv_like,
                *((root / "versions/node", 1) for root in nvm),
                *((root / "node-versions", 1) for root in fnm),
                (volta / "tools/image/packages", 1),
                (volta / "tools/image", 2),
                (place("ASDF_DATA_DIR", home / ".asdf") / "installs", 2),
                (place("MISE_DATA_DIR", data / "mise") / "installs", 2),
                (place("UV_PYTHON_INSTALL_DIR", data / "uv/python"), 1),
                (place("UV_TOOL_DIR", data / "uv/tools"), 1),
                (place("PIPX_HOME", data / "pipx") / "venvs", 1),
                (home / ".local/pipx/venvs", 1),
                (rustup / "toolchains", 1),
                (place("SDKMAN_DIR", home / ".sdkman") / "candidates", 2),
                (Path("/nix/store"), 0),
                (Path("/home/linuxbrew/.linuxbrew"), 0),
                (Path("/opt"), 1),
            ),
            cargo=place("CARGO_HOME", home / ".cargo"),
            rustup=rustup,
            volta=volta,
            home=home,
        )

    def root_of(self, file: Path) -> Path | None:
        """Return the root of the installation that contains `file`, by the managers' layouts."""
        for base, depth in self.installations:
            if holds(base, file):
                parts = file.relative_to(base).parts
                if len(parts) > depth:
                    # npm's @scope/name counts as one level.
                    scoped = bool(depth) and parts[depth - 1].startswith("@")
                    return base.joinpath(*parts[: depth + scoped])
        return None


def unshim(
    candidate: Path, repo: Path, environ: Mapping[str, str], managers: Managers
) -> Path | None:
    """Return the program behind a shim, or the candidate if it is none; None for a dead end."""
    folder, name = candidate.parent, candidate.name
    if folder.name == "shims":
        if is_folder(folder.parent / "versions"):
            return _pyenv_like(folder.parent, name, repo, environ)
        if is_folder(folder.parent / "installs"):
            return _asdf_or_mise(folder.parent / "installs", name, repo, managers.home)
    if folder == managers.volta / "bin" and name != "volta":
        return _volta(managers.volta, name, repo)
    if (
        folder == managers.cargo / "bin"
        and name != "rustup"
        and _is_same_file(candidate, folder / "rustup")
    ):
        return _rustup(managers.rustup, name, repo, environ)
    return candidate


ENVIRONMENTS = (".venv", "venv")
"""The usual names of a repository's virtual environment, at its top."""


def environments_of(repo: Path) -> list[Path]:
    """Return the existing virtual environments of a repository."""
    found = [repo / name for name in ENVIRONMENTS]
    return [place for place in found if is_file(place / "pyvenv.cfg")]


def pyvenv_home(venv: Path) -> Path | None:
    """Return the folder of the interpreter that a virtual environment was made from."""
    try:
        text = (venv / "pyvenv.cfg").read_text(errors="replace")
    except OSError:
        return None
    match = re.search(r"^home\s*=\s*(/.*?)\s*$", text, re.MULTILINE)
    return Path(match[1]) if match else None


def _pyenv_like(root: Path, program: str, repo: Path, environ: Mapping[str, str]) -> Path | None:
    variable, file_name = _PYENV_LIKE.get(root.name.strip("."), _PYENV_LIKE["pyenv"])
    wanted = environ.get(variable, "").replace(":", " ").split()
    if not wanted:
        files = (folder / file_name for folder in (repo, *repo.parents))
        wanted = next((words for words in map(_words, files) if words), _words(root / "version"))
    for version in wanted:
        found = _newest(_matching(root / "versions", version), program)
        if found is not None:
            return found
    return None


def _asdf_or_mise(installs: Path, program: str, repo: Path, home: Path) -> Path | None:
    for tool in sorted(_folders(installs)):
        every = [v for v in _folders(tool) if os.access(v / "bin" / program, os.X_OK)]
        if not every:
            continue
        for version in _tool_versions(tool.name, repo, home):
            found = _newest(_matching(tool, version), program)
            if found is not None:
                return found
        return _newest(every, program)
    return None


def _tool_versions(tool: str, repo: Path, home: Path) -> Iterator[str]:
    """Yield the versions named for a tool, the nearest file first."""
    aliases = {tool, "node" if tool == "nodejs" else "nodejs" if tool == "node" else tool}
    for folder in (repo, *repo.parents, home):
        for line in _lines(folder / ".tool-versions"):
            words = line.split("#")[0].split()
            if len(words) > 1 and words[0] in aliases:
                yield words[1]
        for name in ("mise.toml", ".mise.toml", ".config/mise/config.toml"):
            tools = _toml(folder / name).get("tools", {})
            for alias in aliases & set(tools if isinstance(tools, dict) else ()):
                entry = tools[alias]
                if isinstance(entry, str):
                    yield entry


def _volta(root: Path, program: str, repo: Path) -> Path | None:
    images = root / "tools/image"
    package: dict[str, Any] = next(
        (data for f in (repo, *repo.parents) if (data := _json(f / "package.json").get("volta"))),
        {},
    )
    platform = _json(root / "tools/user/platform.json")
    node = package.get("node") or platform.get("node", {}).get("runtime", "")
    yarn = package.get("yarn") or platform.get("yarn") or ""
    for image, version in (("node", node), ("yarn", yarn)):
        found = _newest(_matching(images / image, str(version)), program) if version else None
        if found is not None:
            return found
    packages = _folders(images / "packages")
    scoped = [inner for p in packages if p.name.startswith("@") for inner in _folders(p)]
    return _newest([*packages, *scoped], program)


def _rustup(root: Path, program: str, repo: Path, environ: Mapping[str, str]) -> Path | None:
    named = environ.get("RUSTUP_TOOLCHAIN", "")
    for folder in (repo, *repo.parents):
        if named:
            break
        toml = _toml(folder / "rust-toolchain.toml") or _toml(folder / "rust-toolchain")
        plain = _words(folder / "rust-toolchain")
        named = str(toml.get("toolchain", {}).get("channel", "")) or (
            plain[0] if len(plain) == 1 else ""
        )
    named = named or str(_toml(root / "settings.toml").get("default_toolchain", ""))
    return _newest(_matching(root / "toolchains", named), program) if named else None


def _matching(folder: Path, version: str) -> list[Path]:
    """Return the installation of exactly this version, or else those that the version begins."""
    exact = folder / version.removeprefix("v")
    for candidate in (folder / version, exact):
        if version and is_folder(candidate):
            return [candidate]
    return [f for f in _folders(folder) if f.name.startswith((f"{version}.", f"{version}-"))]


def _newest(installations: list[Path], program: str) -> Path | None:
    """Return the program from the newest of these installations that has it."""

    def version_numbers(folder: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", folder.name)]

    for folder in sorted(installations, key=version_numbers, reverse=True):
        # fnm and mise keep some installations one level deeper; rustup and most do not.
        file = folder / "bin" / program
        if os.access(file, os.X_OK):
            return file
    return None


def _is_same_file(file: Path, reference: Path) -> bool:
    try:
        return file.samefile(reference)
    except OSError:
        return False


def _folders(folder: Path) -> list[Path]:
    try:
        return [entry for entry in folder.iterdir() if is_folder(entry)]
    except OSError:
        return []


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    return [w for line in _lines(file) for w in line.split("#")[0].split()]


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(errors="replace"))
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(errors="replace"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
