"""Manifests and lock files: accept dependencies, and keys that no test tool reads.

Dependencies come from the registry, or are packages of the repository that stood before the run,
under names that nothing had. Those of Go and Cargo are in `kept_compiled`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.kept_part import KeptPart, Surrounding, old, whole
from agentrunner.verification.inputs.tree import folder_of, join
from agentrunner.verification.results.files import table, texts, toml_of

REGISTRY = "a dependency from the registry, or a package of the repository that stood before"
LOCKED = "lock entries of such dependencies"
UNREAD = "keys that no test tool reads"
VERSION = lazy_regex(
    r"[\^~<>=!v]*\s*\d[\w.+*-]*(\s*(\|\||-|,|\s)\s*[\^~<>=!v]*\s*\d[\w.+*-]*)*|\*|latest"
)
REQUIREMENT = lazy_regex(
    r"[A-Za-z0-9][\w.-]*(\s*\[[\w\s,.-]*\])?\s*(\(?[~=!<>]=?=?[^@/:;]*\)?)?(\s*;[^@]*)?"
)
NPM_DATA = frozenset(
    """name version description keywords author contributors license repository homepage bugs
    funding private publishConfig engines""".split()
)
"""Keys of package.json that only matter to readers and registries. `engines` can make an
installation fail, but changes nothing about what is run.
"""
NPM_DEPENDENCIES = (
    "dependencies", "devDependencies", "peerDependencies", "optionalDependencies",
)  # fmt: skip
PROJECT_DATA = frozenset(
    """name version description readme license license-files authors maintainers keywords
    classifiers urls""".split()
)


def _is_tool(name: str, around: Surrounding) -> bool:
    """Whether a package is the test tool, or has the name of one of its plug-ins."""
    plain = re.sub(r"[-_.]+", "-", name.lower())
    tools = {program.lower() for program in around.inputs.programs if len(program) > 2}
    return any(part in tools for part in [plain, *plain.split("-"), *plain.split("/")])


def same_but(before: Mapping[str, Any], after: Mapping[str, Any], keys: Iterable[str]) -> bool:
    """Whether two tables differ in no other keys."""
    left = {key: value for key, value in before.items() if key not in keys}
    return left == {key: value for key, value in after.items() if key not in keys}


def is_plain(name: str, version: object, around: Surrounding) -> bool:
    """Whether a dependency has a version of the registry, and is no test tool."""
    plain = isinstance(version, str) and VERSION.fullmatch(version.strip())
    return bool(plain) and not _is_tool(name, around)


def is_own(name: str, place: object, taken: Collection[str], around: Surrounding) -> bool:
    """Whether a dependency is a package of the repository, as it was, whose name nothing had."""
    inside = isinstance(place, str) and around.stood(join(folder_of(around.path), place))
    return inside and is_unknown(name, taken, around)


def is_unknown(name: str, taken: Collection[str], around: Surrounding) -> bool:
    """Whether nothing had this name, and no test tool or plug-in has it."""
    return name not in taken and not _is_tool(name, around)


def folder_named(spec: object) -> object:
    """The folder that a dependency's table names and by which alone it is found; else None."""
    free = {"path", "editable", "develop", "version", "features", "default-features"}
    return spec.get("path") if isinstance(spec, dict) and spec.keys() <= free else None


def _only_adds(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    """Whether no dependency is gone, and those that are new or changed are plain ones."""
    return one.keys() <= two.keys() and all(
        one.get(name) == version
        or is_plain(name, version, around)
        or is_own(name, folder_named(version), one, around)
        for name, version in two.items()
    )


# -- JavaScript ---------------------------------------------------------------------------------


def keep_package_json(before: str, after: str, around: Surrounding) -> KeptPart:
    """package.json: accept new dependencies, scripts nothing runs, and what only readers see."""
    one, two = json.loads(before), json.loads(after)
    if not isinstance(one, dict) or not isinstance(two, dict):
        return old(before)
    free = NPM_DATA | ({"bin", "types", "exports", "files"} - one.keys())
    kept = {
        key: side[key] for key in {**one, **two} if key in (side := two if key in free else one)
    }
    reasons = []
    taken = {name for key in NPM_DEPENDENCIES for name in table(one, key)}
    for key in NPM_DEPENDENCIES:
        was, now = table(one, key), table(two, key)
        fine = was | {
            name: version
            for name, version in now.items()
            if is_plain(name, version, around) or is_own(name, _linked(version), taken, around)
        }
        if fine != was:
            reasons.append(REGISTRY)
            kept[key] = fine
    was, now = table(one, "scripts"), table(two, "scripts")
    scripts = {name: was[name] for name in was if name in now or _is_run(name, was, around)}
    scripts |= {name: now[name] for name in now if not _is_run(name, was | now, around)}
    if scripts != was:
        reasons.append("a script that nothing runs by itself")
        kept["scripts"] = scripts
    if kept == two:
        return whole(after, reasons[0] if reasons else UNREAD)
    return KeptPart(to_bytes(json.dumps(kept, indent=2, ensure_ascii=False)) + b"\n")


def _linked(version: object) -> str | None:
    """The folder that a version of package.json names; None for another one."""
    found = re.fullmatch(r"(?:file|link):(.+)", version) if isinstance(version, str) else None
    return found[1] if found else None


def _is_run(name: str, scripts: Mapping[str, Any], around: Surrounding) -> bool:
    """Whether a command or a life cycle runs a script, directly or as its pre or post script."""
    names = {name, name.removeprefix("pre"), name.removeprefix("post")}
    if not names.isdisjoint(around.inputs.scripts):
        return True
    plain = name.removeprefix("pre").removeprefix("post")
    return name.startswith(("pre", "post")) and plain not in scripts


def keep_package_lock(before: str, after: str, around: Surrounding) -> KeptPart:
    """package-lock.json: accept new packages from hosts already used, and links to packages of the
    repository that stood before, all without scripts.
    """
    one, two = json.loads(before), json.loads(after)
    was, now = table(one, "packages"), table(two, "packages")
    hosts = {urlsplit(str(entry.get("resolved"))).netloc for entry in was.values()
             if isinstance(entry, dict) and entry.get("resolved")}  # fmt: skip
    taken = {path.rpartition("node_modules/")[2] for path in was}
    fine = bool(now) and all(
        not name
        or entry == was.get(name)
        or _is_locked(name, entry, hosts, around)
        or _is_linked(name, entry, taken, around)
        for name, entry in now.items()
    )
    if fine and same_but(one, two, ("packages", "dependencies", "version", "name")):
        return whole(after, LOCKED)
    return old(before)


def _is_locked(path: str, entry: Any, hosts: set[str], around: Surrounding) -> bool:
    """Whether an entry of package-lock.json comes from these hosts, without links or scripts."""
    _, folder, name = path.rpartition("node_modules/")
    if not folder or not isinstance(entry, dict) or _is_tool(name, around):
        return False
    place = urlsplit(str(entry.get("resolved") or ""))
    known = place.scheme in ("http", "https") and place.netloc in hosts and entry.get("integrity")
    return bool(known) and not (entry.get("link") or entry.get("hasInstallScript"))


def _is_linked(path: str, entry: Any, taken: Collection[str], around: Surrounding) -> bool:
    """Whether an entry of package-lock.json is, or links to, a package of the repository."""
    if not isinstance(entry, dict) or entry.get("hasInstallScript"):
        return False
    _, folder, name = path.rpartition("node_modules/")
    if not folder:
        return not entry.get("link") and is_own(path, path, taken, around)
    return bool(entry.get("link")) and is_own(name, entry.get("resolved"), taken, around)


def keep_text_lock(before: str, after: str, around: Surrounding) -> KeptPart:
    """yarn.lock, pnpm-lock.yaml and the like: accept only added lines, from hosts already used."""
    was, now = set(before.split("\n")), set(after.split("\n"))
    text = "\n".join(line for line in after.split("\n") if line not in was)
    odd = r"\b(file|link|portal|patch|git|ssh|workspace|exec):|git\+|\.git\b|\.\./|requiresBuild"
    hosts, named = (set(re.findall(r"https?://([^/\s\"']+)", one)) for one in (before, text))
    gone = any("integrity" in line for line in was - now)
    if re.search(odd, text) or not named <= hosts or gone:
        return old(before)
    return whole(after, LOCKED)


# -- Python -------------------------------------------------------------------------------------


def keep_pyproject(before: str, after: str, around: Surrounding) -> KeptPart:
    """pyproject.toml: accept dependencies, project data, settings of tools that nothing runs."""
    one, two = tomllib.loads(before), tomllib.loads(after)
    was, now = _requirements(one), _requirements(two)
    fine = (
        same_but(one, two, ("project", "dependency-groups", "tool"))
        and _project(table(one, "project"), table(two, "project"), around)
        and all(_are_plain(was.get(group), now.get(group), around) for group in {*was, *now})
        and _tools(table(one, "tool"), table(two, "tool"), _required(was), around)
    )
    if fine:
        return whole(after, REGISTRY if was != now else UNREAD)
    return KeptPart(to_bytes(_spliced(before, after, lambda name: _is_free_table(name, around))))


def _project(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    """Whether a project's table differs at most in data, requirements and new programs."""
    was, now = table(one, "scripts"), table(two, "scripts")
    new = now.keys() - was.keys()
    changing = {"dependencies", "optional-dependencies", "scripts", *PROJECT_DATA}
    return (
        same_but(one, two, changing)
        and was.items() <= now.items()
        and new.isdisjoint(around.inputs.programs)
    )


def _requirements(file: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """All lists of requirements in a pyproject.toml."""
    groups = {
        "": {"": table(file, "project").get("dependencies")},
        "extra": table(file, "project", "optional-dependencies"),
        "group": table(file, "dependency-groups"),
    }
    return {(kind, name): found for kind in groups for name, found in groups[kind].items()}


def _required(requirements: Mapping[tuple[str, str], Any]) -> set[str]:
    """The names in lists of requirements."""
    return {_name(text) for listed in requirements.values() for text in texts(listed)}


def _are_plain(one: Any, two: Any, around: Surrounding) -> bool:
    """Whether of a list's requirements only ones from the registry were added or changed."""
    was, now = one or [], two or []
    if one == two or not isinstance(was, list) or not isinstance(now, list):
        return bool(one == two)
    added = [text for text in now if text not in was]
    return _replaces([text for text in was if text not in now], added, around)


def _replaces(gone: list[Any], added: list[Any], around: Surrounding) -> bool:
    """Whether what was added is plain, and has all the names of what is gone."""
    names = {_name(text) for text in added}
    return all(_is_requirement(text, around) for text in added) and all(
        _name(text) in names for text in gone
    )


def _name(text: object) -> str:
    found = re.match(r"[\w.-]+", text) if isinstance(text, str) else None
    return re.sub(r"[-_.]+", "-", found[0].lower()) if found else str(text)


def _is_requirement(text: object, around: Surrounding) -> bool:
    return (
        isinstance(text, str)
        and bool(REQUIREMENT.fullmatch(text.strip()))
        and not _is_tool(_name(text), around)
    )


def _tools(
    one: Mapping[str, Any], two: Mapping[str, Any], taken: Collection[str], around: Surrounding
) -> bool:
    for name in {*one, *two}:
        if one.get(name) == two.get(name):
            continue
        if name == "uv" and _uv(table(one, name), table(two, name), taken, around):
            continue
        if name == "poetry" and _poetry(table(one, name), table(two, name), around):
            continue
        if not _is_free_table(f"tool.{name}", around):
            return False
    return True


def _uv(
    one: Mapping[str, Any], two: Mapping[str, Any], taken: Collection[str], around: Surrounding
) -> bool:
    """Whether uv's table got no more than packages of the repository, by path or as members."""
    members, more = (texts(table(side, "workspace").get("members")) for side in (one, two))
    added = [place for place in more if place not in members]
    was, now = table(one, "sources"), table(two, "sources")
    here = folder_of(around.path)
    return (
        same_but(one, two, ("sources", "workspace"))
        and same_but(table(one, "workspace"), table(two, "workspace"), ("members",))
        and more[: len(members)] == members
        and all(around.stood(join(here, place)) for place in added)
        and was.items() <= now.items()
        and all(
            is_own(_name(name), folder_named(source), taken, around)
            or (source == {"workspace": True} and _is_member(_name(name), taken, around))
            for name, source in now.items()
            if name not in was
        )
    )


def _is_member(name: str, taken: Collection[str], around: Surrounding) -> bool:
    """Whether a name is that of a package of the repository, as it was, and nothing else had it."""

    def is_its(manifest: str) -> bool:
        text = (around.read(manifest) or b"").decode("utf-8", "replace")
        stands = _name(table(toml_of(text), "project").get("name"))
        return name == stands and around.stood(folder_of(manifest))

    manifests = (one for one in around.inputs.before if one.endswith("/pyproject.toml"))
    return is_unknown(name, taken, around) and any(map(is_its, manifests))


def _poetry(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    return same_but(one, two, ("dependencies", *PROJECT_DATA)) and _only_adds(
        table(one, "dependencies"), table(two, "dependencies"), around
    )


STEERING_TOOLS = frozenset({"uv", "pdm", "hatch", "poetry", "setuptools", "rye", "pixi", "flit"})
"""Tools that decide what is installed, from where, and what runs during installation."""


def _is_free_table(name: str, around: Surrounding) -> bool:
    """Whether a table configures a tool that no command runs and that installs nothing."""
    parts = name.strip("[] ").split(".")
    return (
        parts[0] == "tool"
        and len(parts) > 1
        and parts[1] not in around.inputs.programs
        and parts[1] not in STEERING_TOOLS
        and parts[1] not in ("pytest", "coverage", "tox")
    )


def _spliced(before: str, after: str, is_free: Callable[[str], bool]) -> str:
    """Return the old text with those tables of the new one that do not affect the proof."""
    one, two = _tables(before), _tables(after)
    out = [two.get(name, "") if is_free(name) else text for name, text in one.items()]
    out += [text for name, text in two.items() if name not in one and is_free(name)]
    return "".join(out)


def _tables(text: str) -> dict[str, str]:
    found: dict[str, str] = {"": ""}
    name = ""
    for line in text.splitlines(keepends=True):
        if match := re.match(r"\s*(\[\[?)([^\]]+)\]", line):
            name = match[2].strip()
            while match[1] == "[[" and name in found:
                name += " "
        found[name] = found.get(name, "") + line
    return found


def keep_requirements(before: str, after: str, around: Surrounding) -> KeptPart:
    """requirements.txt: accept plain lines that were added."""
    was, now = (
        [line.split(" #")[0].strip() for line in text.splitlines() if line.strip()
         and not line.lstrip().startswith("#")]
        for text in (before, after)
    )  # fmt: skip
    plain = [re.sub(r"\s*(\\$|--hash=\S+)", "", line).strip() for line in now if line not in was]
    added = [line for line in plain if line]
    gone = [line for line in was if line not in now and not line.startswith("--hash")]
    if _replaces(gone, added, around):
        return whole(after, REGISTRY if added else "comments alone")
    return old(before)


def keep_toml_lock(before: str, after: str, around: Surrounding) -> KeptPart:
    """poetry.lock, uv.lock, pdm.lock, Cargo.lock: accept new packages from sources already used."""
    one, two = tomllib.loads(before), tomllib.loads(after)

    def packages(lock: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
        found = lock.get("package")
        return {
            (str(p.get("name")), str(p.get("version"))): p
            for p in (found if isinstance(found, list) else []) if isinstance(p, dict)
        }  # fmt: skip

    was, now = packages(one), packages(two)
    own = {name for (name, _), package in was.items() if _is_local(package, around)}
    sources = {_source(package) for package in was.values() if not _is_local(package, around)}
    rust = around.path.endswith("Cargo.lock")
    taken = {name for name, _ in was}
    for key, package in now.items():
        if package == was.get(key):
            continue
        if key in was and package.get("source") == was[key].get("source"):
            hashes = ("checksum", "files", "sdist", "wheels")
            if all(package.get(h) == was[key].get(h) for h in hashes):
                continue  # only its dependencies or markers changed
        if key[0] in own and _is_local(package, around):
            continue
        place = None if rust else _place(package)
        if rust and package.get("source") is None and key[0] not in taken:
            continue  # where it is, the manifests say
        if is_own(key[0], place, taken, around):
            continue
        if _is_tool(key[0], around) or _is_local(package, around):
            return old(before)
        source = _source(package)
        if source not in sources and not (rust and source.startswith("registry+") and not sources):
            return old(before)
    return whole(after, LOCKED)


def _is_local(package: Mapping[str, Any], around: Surrounding) -> bool:
    source = package.get("source")
    if isinstance(source, dict):
        return not ("registry" in source or source.get("type") == "legacy")
    if source is None:
        return around.path.endswith(("Cargo.lock", "uv.lock"))
    return not str(source).startswith("registry+")


def _place(package: Mapping[str, Any]) -> object:
    """The folder of a package of the repository, in uv's words or Poetry's."""
    source = table(package, "source")
    names = ("url",) if source.get("type") == "directory" else ("editable", "directory", "virtual")
    return next((source[name] for name in names if name in source), None)


def _source(package: Mapping[str, Any]) -> str:
    source = package.get("source")
    if isinstance(source, dict):
        return str(source.get("registry") or source.get("url") or source)
    return str(source or "")


# -- Java, Ruby, PHP ------------------------------------------------------------------------------


def keep_pom(before: str, after: str, around: Surrounding) -> KeptPart:
    """pom.xml: accept dependencies with plain coordinates."""
    block = re.compile(r"\s*<dependency>(.*?)</dependency>", re.DOTALL)
    listing = re.compile(r"<dependencies>\s*</dependencies>")

    def rest(text: str) -> list[str]:
        return listing.sub("", block.sub("", text)).split()

    one, two = block.findall(before), block.findall(after)
    added = [text for text in two if text not in one]
    tags = {tag for text in added for tag in re.findall(r"<(\w+)", text)}
    allowed = {"groupId", "artifactId", "version", "scope", "type", "optional"}
    if rest(before) != rest(after) or any(text not in two for text in one) or not tags <= allowed:
        return old(before)
    if any("<scope>system" in text for text in added):
        return old(before)
    return whole(after, REGISTRY)


def keep_gemfile(before: str, after: str, around: Surrounding) -> KeptPart:
    """Gemfile: accept gems by name and version."""
    gem = re.compile(r"gem\s+[\"']([\w-]+)[\"'](\s*,\s*[\"'][^\"'/@:]*[\"'])*")
    was = before.splitlines()
    now = after.splitlines()
    added = [line.strip() for line in now if line not in was and line.strip()]
    if any(line not in now for line in was if line.strip()):
        return old(before)
    for line in added:
        found = gem.fullmatch(line.split("#")[0].strip())
        if line and not line.startswith("#") and (not found or _is_tool(found[1], around)):
            return old(before)
    return whole(after, REGISTRY)


def keep_gemfile_lock(before: str, after: str, around: Surrounding) -> KeptPart:
    """Gemfile.lock: accept gems from remotes already used."""
    was, now = before.splitlines(), after.splitlines()
    heads = [line for line in now if re.match(r"[A-Z]|\s+(remote|revision|branch|ref|glob):", line)]
    if any(line not in was for line in heads) or any(
        not re.match(r"\s+[\w.-]+( \(.*\))?!?$", line) or line.endswith("!")
        for line in now if line not in was and line.strip()
    ):  # fmt: skip
        return old(before)
    return whole(after, LOCKED)


def keep_composer(before: str, after: str, around: Surrounding) -> KeptPart:
    """composer.json: accept required packages by version, and what only readers see."""
    one, two = json.loads(before), json.loads(after)
    kinds = ("require", "require-dev")
    fine = same_but(one, two, (*kinds, *NPM_DATA, "authors", "support"))
    fine &= all(_only_adds(table(one, kind), table(two, kind), around) for kind in kinds)
    return whole(after, REGISTRY) if fine else old(before)


def keep_composer_lock(before: str, after: str, around: Surrounding) -> KeptPart:
    """composer.lock: accept packages from hosts already used, except composer plug-ins."""
    one, two = json.loads(before), json.loads(after)
    was = [p for key in ("packages", "packages-dev") for p in one.get(key) or []]
    now = [p for key in ("packages", "packages-dev") for p in two.get(key) or []]
    hosts = {urlsplit(str(table(p, "dist").get("url"))).netloc for p in was}
    for package in now:
        if package in was:
            continue
        dist = table(package, "dist")
        if package.get("type") in ("composer-plugin", "path") or dist.get("type") != "zip":
            return old(before)
        if urlsplit(str(dist.get("url"))).netloc not in hosts:
            return old(before)
    if not same_but(one, two, ("packages", "packages-dev", "content-hash", "_readme")):
        return old(before)
    return whole(after, LOCKED)
