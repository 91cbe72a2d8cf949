"""Names under which the tests of a package find programs that the work added. Pure.

Cargo hands the path of each program of a package to its tests when they are compiled. Without the
program they are not compiled, and the message contains no more than this name.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence
from typing import Any

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.manifests import toml_of
from agentrunner.verification.results.model import ReadFile

MAIN = lazy_regex(rb"(?m)^\s*(?:pub\s+)?(?:async\s+)?fn\s+main\s*\(")
PLACE = lazy_regex(r"(?:(?P<home>.*)/)?src/(?:main\.rs|bin/(?P<name>[^/]+?)(?:\.rs|/main\.rs))")


def new_programs(product: Sequence[str], old_paths: Collection[str], read: ReadFile) -> set[str]:
    """Return what Cargo calls the programs whose file with a `main` is new in the product."""
    added = [path for path in product if path not in old_paths and path.endswith(".rs")]
    found: set[str] = set()
    for path in added:
        if not MAIN.search(read(path) or b""):
            continue
        if place := PLACE.fullmatch(path):
            found.add(place["name"] or _package(place["home"] or "", read))
        for home in _folders_above(path):
            programs = _manifest(home, read).get("bin")
            for one in programs if isinstance(programs, list) else ():
                if isinstance(one, dict) and posixpath.join(home, str(one.get("path"))) == path:
                    found.add(str(one.get("name")))
    return {f"CARGO_BIN_EXE_{name}" for name in found - {""}}


def _folders_above(path: str) -> list[str]:
    folders = [posixpath.dirname(path)]
    while folders[-1]:
        folders.append(posixpath.dirname(folders[-1]))
    return folders


def _package(home: str, read: ReadFile) -> str:
    package = _manifest(home, read).get("package")
    return str(package.get("name", "")) if isinstance(package, dict) else ""


def _manifest(home: str, read: ReadFile) -> dict[str, Any]:
    return toml_of((read(posixpath.join(home, "Cargo.toml")) or b"").decode("utf-8", "replace"))
