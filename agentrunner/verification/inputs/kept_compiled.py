"""Manifests of Go and Cargo: accept dependencies, and new members of a workspace.

Packages of the repository may be as new as the folder that they are in, where nothing could mean
them before and nothing runs while others are built.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.kept_packages import (
    LOCKED,
    REGISTRY,
    UNREAD,
    folder_named,
    is_own,
    is_plain,
    is_unknown,
    same_but,
)
from agentrunner.verification.inputs.kept_part import KeptPart, Surrounding, old, whole
from agentrunner.verification.inputs.tree import folder_of, join
from agentrunner.verification.results.files import table, texts, toml_of

OWN = "a package of the repository"
CARGO_DATA = frozenset(
    """name version description authors license license-file documentation homepage repository
    readme keywords categories publish""".split()
)


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
            return "" if not old_go and is_own(found[1], found[2], taken, around) else found[0]

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
    use = re.compile(r"(?m)^[^\S\n]*use\s*(?:\(([^)]*)\)|(\S+)[ \t]*$)")

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
    plain = re.sub(r"(?m)^[^\S\n]*require\s*(?:\([^)]*\)|.*$)", "", text).split()
    if plain[::2] != ["module", "go"] or len(plain) != 4 or not around.is_new(folder):
        return False
    name, below = plain[1].strip('"`'), re.compile(rb"(?m)^[^\S\n]*(?:require )?(\S+) v\d")
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
        same_but(one, two, ("package", *kinds, "features", "bin", "target", "workspace"))
        and _members(table(one, "workspace"), table(two, "workspace"), around)
        and same_but(table(one, "package"), table(two, "package"), CARGO_DATA)
        and all(_crates(one, two, kind, around) for kind in kinds)
        and all(same_but(was, now, ("dependencies",)) for was, now in targets)
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
        if is_own(name, place := folder_named(spec), taken, around):
            continue
        new = (
            isinstance(place, str)
            and is_unknown(name, taken, around)
            and not _is_used(name, around)
        )
        if new and is_new_crate(join(folder_of(around.path), str(place)), around, seen):
            continue
        if not isinstance(spec, dict) or spec.keys() & {"path", "git", "registry", "package"}:
            return False
        if not is_plain(name, str(spec.get("version", "")), around):
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
        same_but(one, two, ("members",))
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
