"""What is a project's own: its modules, and the programs that it holds or its package installs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from agentrunner.verification.results.files import MOST_READ, json_of, read_plain, table, toml_of

MOST_FOLDERS = 1_000


def is_own_module(module: str, repo: Path, folders: Iterable[str] | None = None) -> bool:
    """Whether a repository holds a module or package of this name in one of these folders.

    By default they are its top and the folders there that are not hidden.
    """
    if folders is None:
        folders = (
            "",
            *(one.name for one in children(repo) if one.is_dir() and one.name[:1] != "."),
        )
    places = [repo / folder for folder in folders]
    return any((one / module).is_dir() or (one / f"{module}.py").is_file() for one in places)


def is_own_path(program: str, repo: Path) -> bool:
    """Whether a program, as a command or a message names it, is a path in the repository."""
    path = Path(program)
    return "/" in program and (not path.is_absolute() or repo in path.parents)


def own_programs(repo: Path) -> frozenset[str]:
    """The programs that the repository's own package installs, by their names."""
    read = partial(read_plain, repo, most=MOST_READ)
    python, ini, setup, node, rust, go = (
        (read(name) or b"").decode("utf-8", "replace")
        for name in ("pyproject.toml", "setup.cfg", "setup.py", "package.json", "Cargo.toml",
                     "go.mod")
    )  # fmt: skip
    project, crate, package = toml_of(python), toml_of(rust), json_of(node)
    bins = crate.get("bin")
    tables = [table(project, "project"), table(project, "tool", "poetry"), table(crate, "package")]
    tables += map(table, bins if isinstance(bins, list) else ())
    names = {str(one["name"]) for one in tables if "name" in one}
    names.update(*(table(one, "scripts") for one in tables), table(package, "bin"))
    names |= {str(package["name"]).rpartition("/")[2]} if "name" in package else set()
    for text in (ini, setup):
        names |= set(re.findall(r"(?m)(?:^|['\"])\s*([\w.-]+)\s*=\s*[\w.]+:\w+", text))
    names |= set(re.findall(r"(?m)^[^\S\n]*name\s*=\s*([\w.-]+)", ini))
    names |= set(re.findall(r"\bname\s*=\s*['\"]([\w.-]+)", setup))
    names |= set(re.findall(r"(?m)^module \S*?([\w.-]+)\s*$", go))
    return frozenset(names | {place.name for place in repo.glob("cmd/*/")})


def children(folder: Path) -> list[Path]:
    """What lies in a folder, sorted, at most 1,000; none where it cannot be listed."""
    try:
        return sorted(folder.iterdir())[:MOST_FOLDERS]
    except OSError:
        return []
