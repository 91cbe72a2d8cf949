"""Manifests and lock files: accept dependencies, and keys that no test tool reads.

Dependencies come from the registry, or are packages of the repository that stood before the run,
under names that nothing had. In Go and Rust they may be as new as the folder that they are in.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.kept_part import KeptPart, Surrounding, old, whole
from agentrunner.verification.inputs.tree import folder_of, join
from agentrunner.verification.results.files import table, texts, toml_of

REGISTRY = "a dependency from the registry, or a package of the repository that stood before"
OWN = "a package of the repository"
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
CARGO_DATA = frozenset(
    """name version description authors license license-file documentation homepage repository
    readme keywords categories publish""".split()
)


def _is_tool(name: str, around: Surrounding) -> bool:
    """Whether a package is the test tool, or has the name of one of its plug-ins."""
    plain = re.sub(r"[-_.]+", "-", name.lower())
    tools = {program.lower() for program in around.inputs.programs if len(program) > 2}
    return any(part in tools for part in [plain, *plain.split("-"), *plain.split("/")])


def _same_but(before: Mapping[str, Any], after: Mapping[str, Any], keys: Iterable[str]) -> bool:
    left = {key: value for key, value in before.items() if key not in keys}
    return left == {key: value for key, value in after.items() if key not in keys}


def _is_plain(name: str, version: object, around: Surrounding) -> bool:
    """Whether a dependency has a version of the registry, and is no test tool."""
    plain = isinstance(version, str) and VERSION.fullmatch(version.strip())
    return bool(plain) and not _is_tool(name, around)


def _is_own(name: str, place: object, taken: Collection[str], around: Surrounding) -> bool:
    """Whether a dependency is a package of the repository, as it was, whose name nothing had."""
    inside = isinstance(place, str) and around.stood(join(folder_of(around.path), place))
    return inside and _is_new(name, taken, around)


def _is_new(name: str, taken: Collection[str], around: Surrounding) -> bool:
    return name not in taken and not _is_tool(name, around)


def _folder(spec: object) -> object:
    """The folder that a dependency's table names and by which alone it is found; else None."""
    free = {"path", "editable", "develop", "version", "features", "default-features"}
    return spec.get("path") if isinstance(spec, dict) and spec.keys() <= free else None


def _only_adds(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    """Whether no dependency is gone, and those that are new or changed are plain ones."""
    return one.keys() <= two.keys() and all(
        one.get(name) == version
        or _is_plain(name, version, around)
        or _is_own(name, _folder(version), one, around)
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
            if _is_plain(name, version, around) or _is_own(name, _linked(version), taken, around)
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
    if fine and _same_but(one, two, ("packages", "dependencies", "version", "name")):
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
        return not entry.get("link") and _is_own(path, path, taken, around)
    return bool(entry.get("link")) and _is_own(name, entry.get("resolved"), taken, around)


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
        _same_but(one, two, ("project", "dependency-groups", "tool"))
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
        _same_but(one, two, changing)
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
        _same_but(one, two, ("sources", "workspace"))
        and _same_but(table(one, "workspace"), table(two, "workspace"), ("members",))
        and more[: len(members)] == members
        and all(around.stood(join(here, place)) for place in added)
        and was.items() <= now.items()
        and all(
            _is_own(_name(name), _folder(source), taken, around)
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
    return _is_new(name, taken, around) and any(map(is_its, manifests))


def _poetry(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    return _same_but(one, two, ("dependencies", *PROJECT_DATA)) and _only_adds(
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
        if _is_own(key[0], place, taken, around):
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


# -- Go, Rust, Java, Ruby, PHP --------------------------------------------------------------------


def keep_go_mod(before: str, after: str, around: Surrounding) -> KeptPart:
    """go.mod: accept requirements if everything else is unchanged."""
    need = re.compile(r"^[^\S\n]*require\s*(?:\(([^)]*)\)|(.*)$)", re.MULTILINE)

    def rest(text: str) -> list[str]:
        return need.sub("", re.sub(r"//[^\n]*", "", text)).split()

    def without_own(text: str) -> str:
        """Without the places of packages of the repository; before 1.17 not all names are told."""
        old_go = re.search(r"(?m)^go 1\.(?:\d|1[0-6])$", before)
        taken = re.split(r"\s+", before)
        place = re.compile(r"(?m)^replace (\S+)(?: v\S+)? => (\./\S+)$")

        def kept(found: re.Match[str]) -> str:
            return "" if not old_go and _is_own(found[1], found[2], taken, around) else found[0]

        return place.sub(kept, text)

    def needs(text: str) -> dict[str, str]:
        plain = "\n".join(found[1] or found[2] for found in need.finditer(text))
        return dict(re.findall(r"^\s*(\S+)\s+(v\S+)", plain, re.MULTILINE))

    one, two = needs(before), needs(after)
    if rest(before) != rest(without_own(after)) or not one.keys() <= two.keys():
        return old(before)
    return whole(after, REGISTRY if one != two else "comments alone")


def keep_go_work(before: str, after: str, around: Surrounding) -> KeptPart:
    """go.work: accept further modules of the repository that nothing steers by their manifest."""
    use = re.compile(r"(?m)^\s*use\s*(?:\(([^)]*)\)|(\S+)[ \t]*$)")

    def parts(text: str) -> tuple[set[str], list[str]]:
        plain = re.sub(r"//[^\n]*", "", text)
        used = {place for hit in use.finditer(plain) for place in (hit[1] or hit[2]).split()}
        return used, use.sub("", plain).split()

    (was, rest), (now, new_rest) = parts(before), parts(after)
    here = folder_of(around.path)
    if rest != new_rest or not was <= now:
        return old(before)
    fine = all(is_new_module(join(here, place), around) for place in now - was)
    return whole(after, OWN) if fine else old(before)


def is_new_module(folder: str, around: Surrounding) -> bool:
    """Whether a folder that is new holds a module of Go that only requires others, and that no
    import or requirement could mean before."""
    text = (around.read_now(join(folder, "go.mod")) or b"").decode("utf-8", "replace")
    text = re.sub(r"//[^\n]*", "", text)
    plain = re.sub(r"(?m)^\s*require\s*(?:\([^)]*\)|.*$)", "", text).split()
    if plain[::2] != ["module", "go"] or len(plain) != 4 or not around.is_new(folder):
        return False
    name, below = plain[1].strip('"`'), re.compile(rb"(?m)^\s*(?:require )?(\S+) v\d")
    for path in around.inputs.before:
        if path.endswith((".go", "go.mod", "go.sum", "go.work")):
            source = around.read(path) or b""
            known = (one.decode() for one in below.findall(source) if not path.endswith(".go"))
            if to_bytes(name) in source or any(name.startswith(f"{one}/") for one in known):
                return False
    return True


def keep_go_sum(before: str, after: str, around: Surrounding) -> KeptPart:
    """go.sum: accept hashes of further modules; a known module keeps its hash."""
    line = re.compile(r"(\S+ v\S+) (h1:\S+)")

    def hashes(text: str) -> dict[str, str] | None:
        found = [line.fullmatch(one.strip()) for one in text.splitlines() if one.strip()]
        return {m[1]: m[2] for m in found if m} if all(found) else None

    one, two = hashes(before), hashes(after)
    if one is None or two is None or any(one.get(k, v) != v for k, v in two.items()):
        return old(before)
    return whole(after, LOCKED)


def keep_go_vendored(before: str, after: str, around: Surrounding) -> KeptPart:
    """vendor/modules.txt: accept modules by version, without `replace` or another Go version.

    What is below vendor/ is judged separately, and put back together with this file.
    """
    if not around.path.endswith("vendor/modules.txt"):
        return old(before)

    def modules(text: str) -> dict[str, str]:
        parts = re.split(r"^# ", text, flags=re.MULTILINE)[1:]
        return {part.split("\n")[0].strip(): part for part in parts}

    def go(part: str) -> list[str]:
        return re.findall(r"^##.*\b(go [\d.]+)", part, re.MULTILINE)

    one, two = modules(before), modules(after)
    other = [name for name in {*one, *two} if "=>" in name and one.get(name) != two.get(name)]
    steers = any(go(one[name]) != go(two[name]) for name in one.keys() & two.keys())
    if other or steers or "## workspace" in (before + after):
        return old(before)
    return whole(after, "lock entries of vendored modules")


def keep_cargo(before: str, after: str, around: Surrounding) -> KeptPart:
    """Cargo.toml: accept registry dependencies, a new program, and data about the package."""
    one, two = tomllib.loads(before), tomllib.loads(after)
    kinds = ("dependencies", "dev-dependencies")
    was, now = table(one, "target"), table(two, "target")
    targets = [(table(was, name), table(now, name)) for name in {*was, *now}]
    fine = (
        _same_but(one, two, ("package", *kinds, "features", "bin", "target", "workspace"))
        and _members(table(one, "workspace"), table(two, "workspace"), around)
        and _same_but(table(one, "package"), table(two, "package"), CARGO_DATA)
        and all(_crates(one, two, kind, around) for kind in kinds)
        and all(_same_but(was, now, ("dependencies",)) for was, now in targets)
        and all(_crates(was, now, "dependencies", around) for was, now in targets)
        and _programs(one.get("bin"), two.get("bin"), around)
    )
    if not fine:
        return old(before)
    if any(one.get(kind) != two.get(kind) for kind in kinds):
        return whole(after, REGISTRY)
    is_new = one.get("bin") != two.get("bin")
    return whole(after, "a new program in a list of programs" if is_new else UNREAD)


KINDS = ("dependencies", "dev-dependencies", "build-dependencies")
"""Tables of Cargo.toml that name crates."""


def _crates(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    kind: str,
    around: Surrounding,
    seen: frozenset[str] = frozenset(),
) -> bool:
    one, two = table(before, kind), table(after, kind)
    taken = {name for group in KINDS for name in table(before, group)}
    for name, value in two.items():
        if one.get(name) == value:
            continue
        spec = {"version": value} if isinstance(value, str) else value
        if _is_own(name, place := _folder(spec), taken, around):
            continue
        new = isinstance(place, str) and _is_new(name, taken, around) and not _is_used(name, around)
        if new and is_new_crate(join(folder_of(around.path), str(place)), around, seen):
            continue
        if not isinstance(spec, dict) or spec.keys() & {"path", "git", "registry", "package"}:
            return False
        if not _is_plain(name, str(spec.get("version", "")), around):
            return False
        if table(one, name).keys() & {"path", "git"}:
            return False
    return one.keys() <= two.keys()


def _is_used(crate: str, around: Surrounding) -> bool:
    """Whether some source of before the run has a path that begins with the name of a crate."""
    path = re.compile(rb"(?<!\w)" + to_bytes(crate.replace("-", "_")) + rb"\s*::")
    sources = (one for one in around.inputs.before if one.endswith(".rs"))
    return any(path.search(around.read(one) or b"") for one in sources)


def _members(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    """Whether a workspace of Cargo got no more than crates of the repository."""
    was, now = texts(one.get("members")), texts(two.get("members"))
    here = folder_of(around.path)
    return (
        _same_but(one, two, ("members",))
        and {*was} <= {*now}
        and all(
            around.stood(place) or is_new_crate(place, around)
            for place in (join(here, member) for member in now if member not in was)
        )
    )


def is_new_crate(folder: str, around: Surrounding, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a folder that is new holds a crate of which nothing runs while others are built.

    Those in `seen` are being looked at: the tests of two crates may use one another.
    """
    if folder in seen:
        return True
    within = replace(around, path=join(folder, "Cargo.toml"))
    text = (around.read_now(join(folder, "Cargo.toml")) or b"").decode("utf-8", "replace")
    crate = toml_of(text)
    package = table(crate, "package")
    return (
        around.is_new(folder)
        and "name" in package
        and not around.exists(join(folder, "build.rs"))
        and crate.keys() <= {"package", "dependencies", "dev-dependencies", "features"}
        and package.keys() <= {*CARGO_DATA, "edition", "rust-version"}
        and all(
            _crates({}, crate, kind, within, seen | {folder})
            for kind in ("dependencies", "dev-dependencies")
        )
    )


def _programs(one: Any, two: Any, around: Surrounding) -> bool:
    was = one if isinstance(one, list) else []
    now = two if isinstance(two, list) else []
    if now[: len(was)] != was:
        return False
    names = {str(entry.get("name")) for entry in was if isinstance(entry, dict)}
    for entry in now[len(was) :]:
        if not isinstance(entry, dict) or str(entry.get("name")) in names:
            return False
        path = entry.get("path")
        if path is not None and not around.is_product(join(folder_of(around.path), str(path))):
            return False
    return True


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
    fine = _same_but(one, two, (*kinds, *NPM_DATA, "authors", "support"))
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
    if not _same_but(one, two, ("packages", "packages-dev", "content-hash", "_readme")):
        return old(before)
    return whole(after, LOCKED)
