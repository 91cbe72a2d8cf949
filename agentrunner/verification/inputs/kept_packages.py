"""Manifests and lock files: accept registry dependencies, and keys that no test tool reads."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.kept_part import Kept, Surrounding, old, whole
from agentrunner.verification.inputs.tree import folder_of, join
from agentrunner.verification.results.manifests import table

REGISTRY = "a dependency from the registry"
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


# -- JavaScript ---------------------------------------------------------------------------------


def keep_package_json(before: str, after: str, around: Surrounding) -> Kept:
    """package.json: accept new dependencies, scripts nothing runs, and what only readers see."""
    one, two = json.loads(before), json.loads(after)
    if not isinstance(one, dict) or not isinstance(two, dict):
        return old(before)
    kept = dict(one)
    reasons = []
    for key in two:
        if key in NPM_DATA or (key not in one and key in ("bin", "types", "exports", "files")):
            kept[key] = two[key]
    for key in NPM_DATA & one.keys() - two.keys():
        del kept[key]
    for key in NPM_DEPENDENCIES:
        fine = _npm_dependencies(table(one, key), table(two, key), around)
        if fine != table(one, key):
            reasons.append(REGISTRY)
            kept[key] = fine
    scripts = _npm_scripts(table(one, "scripts"), table(two, "scripts"), around)
    if scripts != table(one, "scripts"):
        reasons.append("a script that nothing runs by itself")
        kept["scripts"] = scripts
    if kept == two:
        return whole(after, reasons[0] if reasons else "keys that no test tool reads")
    return Kept(to_bytes(json.dumps(kept, indent=2, ensure_ascii=False)) + b"\n")


def _npm_dependencies(
    one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding
) -> dict[str, object]:
    """Return the old dependencies plus new ones from the registry."""
    out = dict(one)
    for name, version in two.items():
        plain = isinstance(version, str) and VERSION.fullmatch(version.strip())
        if plain and not _is_tool(name, around):
            out[name] = version
    return out


def _npm_scripts(
    one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding
) -> dict[str, object]:
    out = {name: text for name, text in one.items() if name in two or _is_run(name, one, around)}
    scripts = {**one, **two}
    out.update((name, text) for name, text in two.items() if not _is_run(name, scripts, around))
    return out


def _is_run(name: str, scripts: Mapping[str, Any], around: Surrounding) -> bool:
    """Whether a command or a life cycle runs a script, directly or as its pre or post script."""
    if name in around.inputs.scripts:
        return True
    for prefix in ("pre", "post"):
        base = name.removeprefix(prefix)
        if base != name and base in around.inputs.scripts:
            return True
    return (
        name.startswith(("pre", "post"))
        and name.removeprefix("pre").removeprefix("post") not in scripts
    )


def keep_package_lock(before: str, after: str, around: Surrounding) -> Kept:
    """package-lock.json: accept new packages from hosts already used, without links or scripts."""
    one, two = json.loads(before), json.loads(after)
    was, now = table(one, "packages"), table(two, "packages")
    hosts = {urlsplit(str(entry.get("resolved"))).netloc for entry in was.values()
             if isinstance(entry, dict) and entry.get("resolved")}  # fmt: skip
    for name, entry in now.items():
        if name == "" or entry == was.get(name):
            continue
        if not isinstance(entry, dict) or entry.get("link") or entry.get("hasInstallScript"):
            return old(before)
        if not name.rpartition("node_modules/")[1]:
            return old(before)
        place = urlsplit(str(entry.get("resolved") or ""))
        if place.scheme not in ("http", "https") or (hosts and place.netloc not in hosts):
            return old(before)
        if not entry.get("integrity") or _is_tool(name.rpartition("node_modules/")[2], around):
            return old(before)
    if not hosts or not _same_but(one, two, ("packages", "dependencies", "version", "name")):
        return old(before)
    return whole(after, "lock entries of dependencies from the registry")


def keep_text_lock(before: str, after: str, around: Surrounding) -> Kept:
    """yarn.lock, pnpm-lock.yaml and the like: accept only added lines, from hosts already used."""
    was = set(before.split("\n"))
    added = [line for line in after.split("\n") if line not in was]
    text = "\n".join(added)
    if re.search(r"\b(file|link|portal|patch|git|ssh|workspace|exec):|git\+|\.git\b|\.\./", text):
        return old(before)
    hosts = set(re.findall(r"https?://([^/\s\"']+)", before))
    if not set(re.findall(r"https?://([^/\s\"']+)", text)) <= hosts or "requiresBuild" in text:
        return old(before)
    kept = set(after.split("\n"))
    gone = [line for line in before.split("\n") if line not in kept and "integrity" in line]
    return old(before) if gone else whole(after, "lock entries of dependencies from the registry")


# -- Python -------------------------------------------------------------------------------------


def keep_pyproject(before: str, after: str, around: Surrounding) -> Kept:
    """pyproject.toml: accept dependencies, project data, settings of tools that nothing runs."""
    one, two = tomllib.loads(before), tomllib.loads(after)
    reason = ""
    fine = _same_but(one, two, ("project", "dependency-groups", "tool"))
    project = _project(table(one, "project"), table(two, "project"), around)
    groups = _groups(table(one, "dependency-groups"), table(two, "dependency-groups"), around)
    tools = _tools(table(one, "tool"), table(two, "tool"), around)
    if one.get("project") != two.get("project") or groups != "same":
        reason = REGISTRY if project == "added" or groups == "added" else ""
    if fine and project and groups and tools:
        return whole(after, reason or "keys that no test tool reads")
    return Kept(to_bytes(_spliced(before, after, lambda name: _is_free_table(name, around))))


def _project(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> str:
    changing = {"dependencies", "optional-dependencies", "scripts", *PROJECT_DATA}
    if not _same_but(one, two, changing):
        return ""
    state = _requirements(one.get("dependencies"), two.get("dependencies"), around)
    extras = _groups(
        table(one, "optional-dependencies"), table(two, "optional-dependencies"), around
    )
    names = table(two, "scripts").keys() - table(one, "scripts").keys()
    same = all(table(two, "scripts").get(k) == v for k, v in table(one, "scripts").items())
    if not same or any(name in around.inputs.programs for name in names) or not (state and extras):
        return ""
    return "added" if "added" in (state, extras) else "same"


def _groups(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> str:
    states = [_requirements(one.get(name), two.get(name), around) for name in {*one, *two}]
    return "" if "" in states else "added" if "added" in states else "same"


def _requirements(one: Any, two: Any, around: Surrounding) -> str:
    """Return `same`, `added` if only registry requirements were added or changed, "" otherwise."""
    if one == two:
        return "same"
    was, now = one or [], two or []
    if not isinstance(was, list) or not isinstance(now, list):
        return ""
    added = [text for text in now if text not in was]
    gone = [text for text in was if text not in now]
    names = {_name(text) for text in added}
    if any(_name(text) not in names for text in gone):
        return ""
    return "added" if all(_is_requirement(text, around) for text in added) else ""


def _name(text: object) -> str:
    found = re.match(r"[\w.-]+", text) if isinstance(text, str) else None
    return re.sub(r"[-_.]+", "-", found[0].lower()) if found else str(text)


def _is_requirement(text: object, around: Surrounding) -> bool:
    return (
        isinstance(text, str)
        and bool(REQUIREMENT.fullmatch(text.strip()))
        and not _is_tool(_name(text), around)
    )


def _tools(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    for name in {*one, *two}:
        if one.get(name) == two.get(name):
            continue
        if name == "poetry" and _poetry(table(one, name), table(two, name), around):
            continue
        if not _is_free_table(f"tool.{name}", around):
            return False
    return True


def _poetry(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    if not _same_but(one, two, ("dependencies", *PROJECT_DATA)):
        return False
    was, now = table(one, "dependencies"), table(two, "dependencies")
    return (
        all(
            was.get(name) == value
            or (isinstance(value, str) and VERSION.fullmatch(value) and not _is_tool(name, around))
            for name, value in now.items()
        )
        and was.keys() <= now.keys()
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


def _spliced(before: str, after: str, is_free: Any) -> str:
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


def keep_requirements(before: str, after: str, around: Surrounding) -> Kept:
    """requirements.txt: accept plain lines that were added."""
    was, now = (
        [line.split(" #")[0].strip() for line in text.splitlines() if line.strip()
         and not line.lstrip().startswith("#")]
        for text in (before, after)
    )  # fmt: skip
    plain = [re.sub(r"\s*(\\$|--hash=\S+)", "", line).strip() for line in now if line not in was]
    added = [line for line in plain if line]
    gone = [line for line in was if line not in now and not line.startswith("--hash")]
    names = {_name(line) for line in added}
    fine = all(_is_requirement(line, around) for line in added)
    if fine and all(_name(line) in names for line in gone):
        return whole(after, REGISTRY if added else "comments alone")
    return old(before)


def keep_toml_lock(before: str, after: str, around: Surrounding) -> Kept:
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
    for key, package in now.items():
        if package == was.get(key):
            continue
        if key in was and package.get("source") == was[key].get("source"):
            hashes = ("checksum", "files", "sdist", "wheels")
            if all(package.get(h) == was[key].get(h) for h in hashes):
                continue  # only its dependencies or markers changed
        if key[0] in own and _is_local(package, around):
            continue
        if _is_tool(key[0], around) or _is_local(package, around):
            return old(before)
        source = _source(package)
        if source not in sources and not (rust and source.startswith("registry+") and not sources):
            return old(before)
    return whole(after, "lock entries of dependencies from the registry")


def _is_local(package: Mapping[str, Any], around: Surrounding) -> bool:
    source = package.get("source")
    if isinstance(source, dict):
        return not ("registry" in source or source.get("type") == "legacy")
    if source is None:
        return around.path.endswith(("Cargo.lock", "uv.lock"))
    return not str(source).startswith("registry+")


def _source(package: Mapping[str, Any]) -> str:
    source = package.get("source")
    if isinstance(source, dict):
        return str(source.get("registry") or source.get("url") or source)
    return str(source or "")


# -- Go, Rust, Java, Ruby, PHP --------------------------------------------------------------------


def keep_go_mod(before: str, after: str, around: Surrounding) -> Kept:
    """go.mod: accept requirements if everything else is unchanged."""
    need = re.compile(r"^\s*require\s*(?:\(([^)]*)\)|(.*)$)", re.MULTILINE)

    def rest(text: str) -> list[str]:
        return need.sub("", re.sub(r"//[^\n]*", "", text)).split()

    def needs(text: str) -> dict[str, str]:
        plain = "\n".join(found[1] or found[2] for found in need.finditer(text))
        return dict(re.findall(r"^\s*(\S+)\s+(v\S+)", plain, re.MULTILINE))

    one, two = needs(before), needs(after)
    if rest(before) != rest(after) or not one.keys() <= two.keys():
        return old(before)
    return whole(after, REGISTRY if one != two else "comments alone")


def keep_go_sum(before: str, after: str, around: Surrounding) -> Kept:
    """go.sum: accept hashes of further modules; a known module keeps its hash."""
    line = re.compile(r"(\S+ v\S+) (h1:\S+)")

    def hashes(text: str) -> dict[str, str] | None:
        found = [line.fullmatch(one.strip()) for one in text.splitlines() if one.strip()]
        return {m[1]: m[2] for m in found if m} if all(found) else None

    one, two = hashes(before), hashes(after)
    if one is None or two is None or any(one.get(k, v) != v for k, v in two.items()):
        return old(before)
    return whole(after, "lock entries of dependencies from the registry")


def keep_go_vendored(before: str, after: str, around: Surrounding) -> Kept:
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


def keep_cargo(before: str, after: str, around: Surrounding) -> Kept:
    """Cargo.toml: accept registry dependencies, a new program, and data about the package."""
    one, two = tomllib.loads(before), tomllib.loads(after)
    reason, fine = (
        "",
        _same_but(
            one, two, ("package", "dependencies", "dev-dependencies", "features", "bin", "target")
        ),
    )
    fine = fine and _same_but(table(one, "package"), table(two, "package"), CARGO_DATA)
    for key in ("dependencies", "dev-dependencies"):
        fine = fine and _crates(table(one, key), table(two, key), around)
        reason = reason or REGISTRY * (one.get(key) != two.get(key))
    targets = [table(two, "target"), table(one, "target")]
    for name in {*targets[0], *targets[1]}:
        was, now = table(targets[1], name), table(targets[0], name)
        same = _same_but(was, now, ("dependencies",))
        fine = (
            fine
            and same
            and _crates(table(was, "dependencies"), table(now, "dependencies"), around)
        )
    fine = fine and _programs(one.get("bin"), two.get("bin"), around)
    reason = reason or "a new program in a list of programs" * (one.get("bin") != two.get("bin"))
    if fine:
        return whole(after, reason or "keys that no test tool reads")
    return old(before)


def _crates(one: Mapping[str, Any], two: Mapping[str, Any], around: Surrounding) -> bool:
    for name, value in two.items():
        if one.get(name) == value:
            continue
        spec = {"version": value} if isinstance(value, str) else value
        if not isinstance(spec, dict) or spec.keys() & {"path", "git", "registry", "package"}:
            return False
        if not VERSION.fullmatch(str(spec.get("version", ""))) or _is_tool(name, around):
            return False
        if name in one and isinstance(one[name], dict) and one[name].keys() & {"path", "git"}:
            return False
    return one.keys() <= two.keys()


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


def keep_pom(before: str, after: str, around: Surrounding) -> Kept:
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


def keep_gemfile(before: str, after: str, around: Surrounding) -> Kept:
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


def keep_gemfile_lock(before: str, after: str, around: Surrounding) -> Kept:
    """Gemfile.lock: accept gems from remotes already used."""
    was, now = before.splitlines(), after.splitlines()
    heads = [line for line in now if re.match(r"[A-Z]|\s+(remote|revision|branch|ref|glob):", line)]
    if any(line not in was for line in heads) or any(
        not re.match(r"\s+[\w.-]+( \(.*\))?!?$", line) or line.endswith("!")
        for line in now if line not in was and line.strip()
    ):  # fmt: skip
        return old(before)
    return whole(after, "lock entries of dependencies from the registry")


def keep_composer(before: str, after: str, around: Surrounding) -> Kept:
    """composer.json: accept required packages by version, and what only readers see."""
    one, two = json.loads(before), json.loads(after)
    fine = _same_but(one, two, ("require", "require-dev", *NPM_DATA, "authors", "support"))
    for key in ("require", "require-dev"):
        was, now = table(one, key), table(two, key)
        for name, version in now.items():
            if was.get(name) != version and (
                not VERSION.fullmatch(str(version)) or _is_tool(name, around)
            ):
                fine = False
        fine = fine and was.keys() <= now.keys()
    return whole(after, REGISTRY) if fine else old(before)


def keep_composer_lock(before: str, after: str, around: Surrounding) -> Kept:
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
    return whole(after, "lock entries of dependencies from the registry")
