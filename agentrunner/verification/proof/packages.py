"""Installed packages after a repeated set-up: puts back those that are not the product's.

A set-up on the delivered tree runs what a worker wrote. Of what it installed, new packages and
other versions of what the product imported before the run stay. What only tests and tools use is
put back as it was, and so are programs and what Python loads by itself. Handles Python and
JavaScript. Everything here blocks.
"""

from __future__ import annotations

import asyncio
import filecmp
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from agentrunner.folders import walk
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.findings import packages_changed
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.inputs.references import JS_IMPORT, PYTHON_FROM, PYTHON_IMPORT
from agentrunner.verification.inputs.shadows import KITS
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.rooms.copies import copy_tree
from agentrunner.verification.rooms.room import Room

MOST_READ = 2_000
"""Product files that are searched for imports."""

LOADED_UNASKED = frozenset({"sitecustomize", "usercustomize"})
PROGRAMS = ("bin", "Scripts", ".bin")
PLUGIN = lazy_regex(r"(?m)^\[pytest11\]|^\[nose2?\.")
"""What makes test tools load a package that nobody imports."""
MOST_FILES = 400
"""Files of one package that are searched for imports."""
SOURCES = (".py", ".js", ".cjs", ".mjs", ".jsx", ".ts", ".tsx", ".mts", ".cts")


def names_imported(texts: Iterable[tuple[str, str]]) -> set[str]:
    """Top-level names of the packages that sources import; each source is a path and its text."""
    found: set[str] = set()
    for path, text in texts:
        if path.endswith(".py"):
            found.update(
                hit[2].partition(".")[0] for hit in PYTHON_FROM.finditer(text) if not hit[1]
            )
            for hit in PYTHON_IMPORT.finditer(text):
                words = (part.split() for part in hit[1].split(","))
                found.update(word[0].partition(".")[0] for word in words if word)
        else:
            bare = (hit[1] for hit in JS_IMPORT.finditer(text) if not hit[1].startswith((".", "/")))
            found.update("/".join(name.split("/")[: 1 + name.startswith("@")]) for name in bare)
    return found - {""}


def put_back_packages(
    new: Path,
    old: Path,
    imported: Collection[str],
    tools: Collection[str],
    stood: Callable[[str], bool],
) -> list[str]:
    """Put a folder of packages back except what the product imports; return what was put back.

    `old` is the folder at the baseline, `imported` are the names that the product imported then,
    and `tools` are names that are never the product's. `stood` says whether a line of a path file
    is a folder of the repository as it was before the run: what installs a package of that kind
    stays. The paths returned are relative to `new`.
    """
    found = []
    for root in _roots(new):
        place = root.relative_to(new)
        before = old / place
        names = _with_dependencies(before, set(imported)) - set(tools)

        def stays(name: str, *, is_new: bool, names: Collection[str] = names) -> bool:
            return name not in LOADED_UNASKED and (is_new or name in names)

        found += [str(place / name) for name in _put_back(root, before, stays, stood)]
    for name in PROGRAMS:
        if (new / name).is_dir():
            put_back = _put_back(new / name, old / name, _keeps_nothing, _keeps_nothing)
            found += [f"{name}/{one}" for one in put_back]
    return found


def _keeps_nothing(_name: str, *, is_new: bool = False) -> bool:
    return False


def _roots(folder: Path) -> Iterator[Path]:
    """Folders in which each entry is a package."""
    if folder.name in ("site-packages", "node_modules"):
        yield folder
    else:
        yield from sorted(folder.glob("lib/python*/site-packages"))


def _entries(root: Path) -> set[str]:
    """The packages and modules of a folder, and what lies beside them; `@scope/name` for scopes."""
    found: set[str] = set()
    if not root.is_dir():
        return found
    for entry in os.scandir(root):
        if entry.name.startswith("@") and entry.is_dir(follow_symlinks=False):
            found.update(f"{entry.name}/{inner.name}" for inner in os.scandir(entry.path))
        elif entry.name not in ("__pycache__", ".package-lock.json", ".yarn-integrity", ".cache"):
            found.add(entry.name)
    return found


def _put_back(
    root: Path, before: Path, stays: Callable[..., bool], stood: Callable[[str], bool]
) -> list[str]:
    """Put back each entry that changed and does not stay; return the names put back."""
    was, now = _entries(before), _entries(root)
    known = {_module(name) for name in was}
    paths = {_without_numbers(before / name) for name in was if name.endswith(".pth")}
    replaced = []
    for name in sorted(was | now):
        new_path, old_path = root / name, before / name
        if (name in was and name in now and _is_same(new_path, old_path)) or _is_metadata(name):
            continue
        module = _module(name)
        if name.endswith(".pth"):
            if new_path.is_file() and _without_numbers(new_path) in paths:
                continue  # it is from another version of the project itself
            if name not in was and new_path.is_file() and not new_path.is_symlink():
                lines = new_path.read_text(errors="replace").split("\n")
                if all(stood(line) for line in lines if line.strip()):
                    continue
        elif stays(module, is_new=module not in known):
            continue
        _replace(new_path, old_path)
        replaced.append(name)
    replaced += _plugins(root, before, now)
    return replaced


def _plugins(root: Path, before: Path, now: Collection[str]) -> list[str]:
    """Remove new plug-ins of test tools: the package stays, but nothing loads it unasked."""
    replaced = []
    for name in sorted(filter(_is_metadata, now)):
        entry_points, old_entry_points = (
            root / name / "entry_points.txt",
            before / name / "entry_points.txt",
        )
        if (
            entry_points.is_symlink()
            or not entry_points.is_file()
            or _is_same(entry_points, old_entry_points)
        ):
            continue
        if PLUGIN.search(entry_points.read_text(errors="replace")):
            _replace(entry_points, old_entry_points)
            replaced.append(f"{name}/entry_points.txt")
    return replaced


def _without_numbers(place: Path) -> str:
    """The text of a .pth file, with each number replaced by N."""
    return re.sub(r"\d+", "N", place.read_text(errors="replace"))


def _is_metadata(name: str) -> bool:
    return name.endswith((".dist-info", ".egg-info"))


def _module(name: str) -> str:
    """The name to import: `near` for `near.py` and `near.cpython-311-x86_64-linux-gnu.so`."""
    return name if "/" in name else re.sub(r"\.(py|pth|so|pyd|[\w-]+\.so|[\w-]+\.pyd)$", "", name)


def _with_dependencies(root: Path, names: set[str]) -> set[str]:
    """These names, and what their packages import from this folder in turn."""
    there = {_module(name): name for name in _entries(root)}
    pending, found = sorted(names), set(names)
    while pending:
        name = pending.pop()
        if name in there:
            more = names_imported(_sources(root / there[name])) & there.keys() - found
            found |= more
            pending += sorted(more)
    return found


def _sources(place: Path) -> Iterator[tuple[str, str]]:
    if place.is_file():
        paths = [place]
    else:
        paths = [
            Path(folder, name) for folder, _, names in walk(place)
            for name in sorted(names) if "node_modules" not in Path(folder).parts[len(place.parts):]
        ]  # fmt: skip
    for path in [path for path in paths if path.suffix in SOURCES][:MOST_FILES]:
        if not path.is_symlink() and path.is_file():
            yield path.name, path.read_text(errors="replace")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two files, links or folders have the same content; byte code is ignored."""
    if one.is_symlink() or other.is_symlink():
        return (
            one.is_symlink() and other.is_symlink() and os.readlink(one) == os.readlink(other)  # noqa: PTH115 - its text
        )
    if not (one.is_dir() and other.is_dir()):
        return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)
    names = _entry_names(one)
    if names != _entry_names(other):
        return False
    return all(_is_same(one / name, other / name) for name in names)


def _entry_names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir() if not _is_byte_code(entry.name)}


def _is_byte_code(name: str) -> bool:
    return name == "__pycache__" or name.endswith(".pyc")


def _replace(place: Path, source: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    if source.is_dir() and not source.is_symlink():
        copy_tree(source, place)
    elif os.path.lexists(source):
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, place, follow_symlinks=False)


async def holds_with_old_packages(exam: Examination, case: Case, names: Sequence[str]) -> bool:
    """Whether the claimed tests pass without what set-up made of the worker's code.

    The packages that only tests and tools use are put back in a separate room. Nothing is run
    without a new set-up, or where it left these packages as they were. `names` are the claimed
    tests, none for a command without test names. On failure a finding is kept; the result is true
    if a person has settled it.
    """
    verifier, world, target = exam.verifier, exam.world, case.target
    if not verifier.set_up.needed_again(exam.total):
        return True
    imported, tools = await asyncio.to_thread(_imported_names, exam, target)
    async with verifier.room_for(world.new, exam.total) as (room, run):
        replaced = await asyncio.to_thread(_put_packages_back, exam, room, imported, tools)
        if not replaced:
            return True
        verifier.announce(target, "with the packages of before the run")
        again = await run(target, only=names)
    if again.results is None:
        red = [] if again.passed else [f"`{target.shell}`"]
    else:
        results = again.results
        red = [name for name in names if not results.passed(name)]
    if not red:
        return True
    return not exam.report.stopped_by(packages_changed(target, replaced, red), target.id)


def _imported_names(exam: Examination, target: Target) -> tuple[set[str], set[str]]:
    """Names that the product imported before the run, its own included; and those of tools."""
    inputs = exam.differential.inputs(exam.world.old, [target])
    paths = [path for path in exam.world.old_paths if path.endswith(SOURCES)]
    sources = sorted((p for p in paths if inputs.input_at(p) is None), key=lambda p: p.count("/"))
    texts = exam.world.snapshots.read_many(exam.world.old, sources[:MOST_READ])
    found = set()
    for path, data in texts.items():
        own = {part.partition(".")[0] for part in path.split("/")}
        found |= names_imported([(path, data.decode("utf-8", "replace"))]) - own
    tops = (path.removeprefix("src/").partition("/")[0] for path in sources)
    found |= {name.partition(".")[0] for name in tops}
    tools = {name for program in inputs.programs for name in KITS.get(program, program).split()}
    return found, tools


def _put_packages_back(
    exam: Examination, room: Room, imported: set[str], tools: set[str]
) -> list[str]:
    repo, changed = Path(exam.verifier.spec.repo), exam.total.all

    def stood(line: str) -> bool:
        if not Path(line).is_relative_to(repo) or ".." in Path(line).parts:
            return False
        folder = f"{Path(line).relative_to(repo)}/"
        known = any(path.startswith(folder) for path in exam.world.old_paths)
        return known and not any(path.startswith(folder) for path in changed)

    replaced = []
    for folder, source in exam.verifier.rooms.sealed.folders():
        place = room.copy.path / folder.name
        if folder.copied and folder.packages and place.is_dir() and not place.is_symlink():
            found = put_back_packages(place, source, imported, tools, stood)
            replaced += [str(Path(folder.name, name)) for name in found]
    home, before = room.copy.home, exam.verifier.rooms.sealed.home
    if home == room.own_home and (home / ".local").is_dir():
        local = home / ".local"
        found = put_back_packages(local, before / ".local", imported, tools, stood)
        replaced += [f"~/.local/{name}" for name in found]
    return replaced
