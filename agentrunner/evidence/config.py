"""Configuration files of which only a part steers tests: a new dependency is no tampering. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

Part = Callable[[str], object]

OF_PACKAGE_JSON = frozenset(
    """dependencies devDependencies peerDependencies optionalDependencies name version description
    keywords author contributors license repository homepage bugs funding files engines
    private""".split()
)
OF_PYPROJECT = frozenset({"project", "build-system", "dependency-groups"})
OF_TOOLS = frozenset({"black", "flit", "isort", "mypy", "poetry", "ruff", "setuptools"})
OF_CARGO = frozenset({"dependencies", "package", "features", "target", "lints"})
GO_REQUIRE = re.compile(r"^\s*require\s*(\([^)]*\)|.*$)", re.MULTILINE)


def steers_alike(path: str, before: bytes, after: bytes) -> bool:
    """Whether a change of this file cannot change how tests run.

    False for every file that is not understood.
    """
    part = PARTS.get(PurePosixPath(path).name)
    if part is None:
        return False
    try:
        return part(before.decode("utf-8")) == part(after.decode("utf-8"))
    except (ValueError, AttributeError, RecursionError):
        return False


def _without(table: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in names}


def _package_json(text: str) -> object:
    return _without(json.loads(text), OF_PACKAGE_JSON)


def _pyproject(text: str) -> object:
    table = tomllib.loads(text)
    return {**_without(table, OF_PYPROJECT), "tool": _without(table.get("tool", {}), OF_TOOLS)}


def _cargo(text: str) -> object:
    table = tomllib.loads(text)
    package = table.get("package", {})
    return _without(table, OF_CARGO), [package.get(name) for name in ("autotests", "build")]


def _go_mod(text: str) -> object:
    return GO_REQUIRE.sub("", text).split()


PARTS: Mapping[str, Part] = {
    "package.json": _package_json,
    "pyproject.toml": _pyproject,
    "Cargo.toml": _cargo,
    "go.mod": _go_mod,
}
