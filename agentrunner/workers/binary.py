"""Finds a worker's program on the host, once, outside the repository.

A repository may contain a `codex` of its own and PATH may contain `.`: neither decides what runs.
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
    """Return the absolute path of a program, by PATH if `name` is a bare word.

    Relative names, relative or empty PATH entries, and everything inside `avoid` (also through a
    link) are skipped.
    """
    env = os.environ if environ is None else environ
    if "/" in name:
        candidates = [Path(name)]
    else:
        candidates = [Path(folder) / name for folder in env.get("PATH", "").split(":")]
    return next((path for path in candidates if _is_usable(path, avoid)), None)


def native_binary(path: Path, package: str, where: str) -> Path | None:
    """Return the native program behind an npm wrapper script, or else `path` with links resolved.

    npm installs `PACKAGE/bin/NAME.js` and, beside the package or nested in it, one package per
    platform, `PACKAGE-linux-x64`, in which `where` is a glob for the program. Killing the wrapper
    would leave the native program running. None if the platform's package is missing.
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


def _is_usable(path: Path, avoid: Path | None) -> bool:
    # Access is checked first, because is_file raises for a path that may not be examined.
    if not path.is_absolute() or not os.access(path, os.X_OK) or not path.is_file():
        return False
    if avoid is None:
        return True
    inside = (path.parent.resolve() / path.name, path.resolve())
    return not any(where.is_relative_to(avoid.resolve()) for where in inside)
