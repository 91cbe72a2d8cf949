"""Packages that a manifest names and that are not installed, by what import errors name.

A module that no manifest names, that is the repository's own, or that the task names is still to be
written: without it tests are red, and nothing is missing in the environment.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors import UsageError
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.verification.results.files import ini_of, json_of, table, text_of, toml_of
from agentrunner.verification.rooms.own_code import children, is_own_module

MOST_READ = 200_000
"""Characters of a manifest that are read."""
MODULE = lazy_regex(
    r"No module named '?(?P<python>\w+)"
    r"|Cannot find (?:module|package) '(?P<node>[^'\n]+)'"
    r"|Failed to resolve import \"(?P<bundled>[^\"\n]+)\""
    r"|(?:Cannot open (?:file|bootstrap script)|Failed opening required) [\"']"
    r"(?:[^\"'\n]*/)?(?P<php>[^\"'\n/]+/autoload\.php)[\"']"
)
"""What Python, Node, bundlers and PHP say of a module or a file that they do not find."""
PACKAGE = lazy_regex(r"(?:@[^/\s]+/)?[^@./\s][^/\s]*")
"""The package in the name of a module of Node: `@scope/name`, `name`."""
REQUIREMENT = lazy_regex(r"\s*(?:-\s+)?[\"']?([A-Za-z0-9][\w.-]*)")
"""The name at the beginning of a requirement."""
OWN_NAMES = lazy_regex(
    r"\b(?:name|packages|py_modules|package_dir|scripts)\s*=\s*"
    r"(?:\[[^\]]*\]|\{[^}]*\}|[\"'][^\"']*[\"'])"
)
"""Arguments in a setup.py that name what the project itself contains."""
AFFIXES = ("", "py", "python", "pytest")
"""What a package's name often has before that of its module: `PyYAML`, `python-dateutil`."""
NODE_TABLES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
MOST_WORKSPACES = 500
MOST_LOOKED_AT = 10_000
"""Folders that one pattern of workspaces is followed into."""
LOCAL = ("workspace:", "file:", "link:", "portal:")
"""Beginnings of versions by which package.json names a package of the same repository."""


def lacking_package(output: str, repo: Path, wanted: str, failed: int = 1) -> str:
    """Why no test could say anything, by the output alone: all lack packages that are declared.

    "" where what is missing is still to be written, and unless there is an import error for each of
    the `failed` tests. `wanted` is the text of the task.
    """
    if sum(1 for _ in _missing(output)) < failed:
        return ""
    return package_lacked_by(output, repo, wanted)


def package_lacked_by(message: str, repo: Path, wanted: str) -> str:
    """Why a test with this message could say nothing: it fails for packages alone; else ""."""
    why = ""
    for name, manifests in dict.fromkeys(_missing(message)):
        named = re.search(alone(name, joined="/-", before="@"), wanted, re.IGNORECASE)
        place = "" if named else manifests(name, repo)
        if not place:
            return ""
        if manifests is _installed_by_composer:
            why = why or f"there is no {name}: the packages that {place} names are not installed"
        why = why or f"the package {name} is named in {place}, and is not installed"
    return why


def declared_in(module: str, repo: Path) -> str:
    """The manifest at the top level that names a Python package like this module.

    "" for none, and where the repository itself contains such a module.
    """
    if is_own_module(module, repo):
        return ""
    wanted = {_plain(affix + module) for affix in AFFIXES}
    for place, names in _python_manifests(repo):
        if wanted & {_plain(name) for name in names}:
            return place
    return ""


def _missing(text: str) -> Iterator[tuple[str, Any]]:
    """What import errors name as missing, each with what finds its manifest."""
    for hit in MODULE.finditer(text):
        if hit["python"]:
            yield hit["python"], declared_in
        elif hit["php"]:
            yield hit["php"], _installed_by_composer
        elif package := PACKAGE.match(hit["node"] or hit["bundled"]):
            yield package[0], _declared_for_node
        else:
            yield hit[0], lambda _name, _repo: ""  # a file of the repository is no package


def _installed_by_composer(loader: str, repo: Path) -> str:
    """The `composer.json` whose packages this file would load, and that nobody installed."""
    text = text_of(repo / "composer.json", MOST_READ)
    folder = table(json_of(text), "config").get("vendor-dir", "vendor")
    wanted = Path(str(folder)) / "autoload.php"
    if not text or not str(wanted).endswith(loader) or (repo / wanted).exists():
        return ""
    return "composer.json"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()


def _python_manifests(repo: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Each manifest with the names of packages that it requires."""
    for name, read in (
        ("pyproject.toml", _of_pyproject), ("Pipfile", _of_pipfile), ("setup.cfg", _of_ini),
        ("tox.ini", _of_ini), ("setup.py", _of_setup), ("environment.yml", _of_lines),
    ):  # fmt: skip
        if text := text_of(repo / name, MOST_READ):
            yield name, read(text)
    listed = [*repo.glob("requirements*.txt"), *repo.glob("requirements/*.txt")]
    for place in sorted(listed)[:40]:
        yield place.relative_to(repo).as_posix(), _of_lines(text_of(place, MOST_READ))


def _required(lines: Iterable[Any]) -> set[str]:
    """The names at the beginning of requirements; whatever is none is left out."""
    hits = (REQUIREMENT.match(line) for line in lines if isinstance(line, str))
    return {hit[1] for hit in hits if hit}


def _of_pyproject(text: str) -> set[str]:
    tables = toml_of(text)
    project, tool = table(tables, "project"), table(tables, "tool")
    lists = [project.get("dependencies"), table(tool, "uv").get("dev-dependencies")]
    lists += [*table(project, "optional-dependencies").values()]
    lists += [*table(tables, "dependency-groups").values()]
    poetry = table(tool, "poetry")
    mappings = [table(poetry, "dependencies"), table(poetry, "dev-dependencies")]
    groups = table(poetry, "group")
    mappings += [table(table(groups, name), "dependencies") for name in groups]
    found = {line for one in lists if isinstance(one, list) for line in _required(one)}
    found |= {name for one in mappings for name, how in one.items() if not _is_local(how)}
    sources = table(table(tool, "uv"), "sources")
    local = {_plain(name) for name, how in sources.items() if _is_local(how)}
    return {name for name in found if _plain(name) not in local}


def _is_local(how: object) -> bool:
    """Whether a dependency is a folder of the same repository."""
    return isinstance(how, Mapping) and bool({"path", "workspace"} & how.keys())


def _of_pipfile(text: str) -> set[str]:
    tables = toml_of(text)
    return {*table(tables, "packages"), *table(tables, "dev-packages")}


def _of_ini(text: str) -> set[str]:
    """The requirements in a setup.cfg or tox.ini."""
    parser = ini_of(text)
    lines: list[str] = []
    for section in parser.sections():
        extras = section == "options.extras_require"
        for key, value in parser.items(section):
            if extras or key in ("deps", "install_requires", "tests_require"):
                lines += re.split(r"[\n;]", value)
    return _required(line.rpartition(": ")[2] for line in lines)


def _of_setup(text: str) -> set[str]:
    return _required(re.findall(r"[\"']([^\"'\n]+)[\"']", OWN_NAMES.sub("", text)))


def _of_lines(text: str) -> set[str]:
    """The requirements in a list of them, a line each."""
    return _required(line for line in text.splitlines() if not line.endswith(":"))


def _declared_for_node(package: str, repo: Path) -> str:
    """The `package.json` that names a package which is not installed; "" for none.

    That of the repository or of one of its workspaces; what these contain is no package to install.
    """
    whole = _manifest_of_node(repo)
    found = {repo: whole} | {at: _manifest_of_node(at) for at in _workspaces(repo, whole)}
    if any(manifest.get("name") == package for manifest in found.values()):
        return ""
    for folder, manifest in found.items():
        for name in NODE_TABLES:
            version = table(manifest, name).get(package)
            if isinstance(version, str) and not version.startswith(LOCAL):
                there = any((at / "node_modules" / package).exists() for at in (repo, folder))
                return "" if there else (folder / "package.json").relative_to(repo).as_posix()
    return ""


def _manifest_of_node(folder: Path) -> Mapping[str, Any]:
    return json_of(text_of(folder / "package.json", MOST_READ))


def _workspaces(repo: Path, manifest: Mapping[str, Any]) -> list[Path]:
    """The folders of packages that a repository of Node's consists of, as npm, Yarn or pnpm say."""
    listed = manifest.get("workspaces")
    lists = [listed.get("packages") if isinstance(listed, dict) else listed, _of_pnpm(repo)]
    found: dict[Path, None] = {}
    for pattern in (one for each in lists if isinstance(each, list) for one in each):
        if isinstance(pattern, str) and not pattern.startswith(("/", "!")):
            parts = [part for part in pattern.split("/") if part not in ("", ".")]
            packages = (at for at in _matching(repo, parts) if (at / "package.json").is_file())
            found |= dict.fromkeys(islice(packages, MOST_WORKSPACES))
    return sorted(found)


def _of_pnpm(repo: Path) -> object:
    """The patterns in a pnpm-workspace.yaml; None where there are none."""
    try:
        listed = read_yaml(
            text_of(repo / "pnpm-workspace.yaml", MOST_READ), "pnpm-workspace.yaml"
        ).value
    except UsageError:
        return None
    return listed.get("packages") if isinstance(listed, dict) else None


def _matching(repo: Path, parts: Sequence[str]) -> Iterator[Path]:
    """The folders that a pattern names, nearest first; none that is installed, hidden or a link.

    What a folder has yet to match is looked at once, whatever ways lead there, and no more than
    `MOST_LOOKED_AT` are.
    """
    pending, known = deque([(repo, tuple(parts))]), {(repo, tuple(parts))}
    while pending:
        folder, left = pending.popleft()
        if not left:
            yield folder
            continue
        deep, rest = left[0] == "**", left[1:]
        places = [(folder, rest)] if deep else []
        for child in children(folder):
            name = child.name
            if not fnmatchcase(name, left[0]) or name == "node_modules" or name[:1] == ".":
                continue
            if child.is_dir() and not child.is_symlink():
                places.append((child, left if deep else rest))
        new = [one for one in dict.fromkeys(places) if one not in known]
        new = new[: MOST_LOOKED_AT - len(known)]
        known.update(new)
        pending.extend(new)
