"""Finding a worker's program on the host, once, outside the repository.

A repository may hold a `codex` of its own and PATH may hold `.`: neither decides what runs.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

_NPM_PLATFORMS = {"x86_64": "x64", "aarch64": "arm64"}


def find_program(
    name: str, *, avoid: Path | None = None, environ: Mapping[str, str] | None = None
) -> Path | None:
    """The absolute path of a program, by PATH where `name` is a bare word.

    Relative names and relative or empty PATH entries are passed over, and so is everything
    inside `avoid`, also by way of a link.
    """
    env = os.environ if environ is None else environ
    if "/" in name:
        candidates = [Path(name)]
    else:
        candidates = [Path(folder) / name for folder in env.get("PATH", "").split(":")]
    return next((path for path in candidates if _usable(path, avoid)), None)


def native_binary(path: Path, package: str, where: str) -> Path | None:
    """The native program behind an npm wrapper script; `path`, links resolved, where it is none.

    npm installs `PACKAGE/bin/NAME.js` and beside the package, or nested in it, one package per
    platform, `PACKAGE-linux-x64`, in which `where` is a glob for the program. Killing the wrapper
    would leave the native program running. None where the platform's package is missing.
    """
    real = path.resolve()
    if real.suffix != ".js":
        return real
    machine = platform.machine()
    root = real.parent
    while root.name != package.rpartition("/")[2] and root != root.parent:
        root = root.parent
    scope, _, short = package.rpartition("/")
    platform_package = f"{short}-linux-{_NPM_PLATFORMS.get(machine, machine)}"
    for folder in (
        root.parent / platform_package,
        root / "node_modules" / scope / platform_package,
    ):
        if found := sorted(folder.glob(where)):
            return found[0]
    return None


def _usable(path: Path, avoid: Path | None) -> bool:
    # What may not be looked at is asked for first: is_file raises for it.
    if not path.is_absolute() or not os.access(path, os.X_OK) or not path.is_file():
        return False
    if avoid is None:
        return True
    inside = (path.parent.resolve() / path.name, path.resolve())
    return not any(where.is_relative_to(avoid.resolve()) for where in inside)
