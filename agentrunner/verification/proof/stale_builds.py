"""Builds that git ignores, made before the run from sources that the work changes.

A library or program that a test loads may stand beside its sources, built by somebody at some time.
Where the work changes the sources and nothing builds it again, the tests say what the old sources
did. Whether a file is such a build is told by the names in it, and whether it decides is tried.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from agentrunner.state.run_state import Finding
from agentrunner.verification.delivered_tree import NATIVE
from agentrunner.verification.findings import not_built_again
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.rooms.room import Room
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.target import Measured

COMPILED = ("go", "rust", "java")
DEFINED = re.compile(
    rb"\b(?:c?p?def)\s+(?:[\w*]+\s+)*?(\w{3,})\s*\("  # Cython
    rb"|\bfunc\s*\([^()]*\)\s*(\w{3,})\s*\("  # Go, of a type
    rb"|\b(\w{3,})\s*(?:<[^<>;{}]*>)?\([^;{}]*\)[^;{}()]*\{"
)
"""The head of a function: its name, its parameters and the beginning of its body."""
CONTROL = frozenset({b"for", b"while", b"switch", b"match", b"catch", b"select", b"synchronized"})
LARGEST = 64 << 20
"""Bytes of a file that is taken for a build."""
MOST_READ = 1 << 30
"""Bytes of binary files that are read in all."""
MOST_FILES = 200


async def find_stale_build(exam: Examination, case: Case) -> Finding | None:
    """A finding where a green command rests on a build that nothing makes again; None for none.

    Raises what running in rooms raises.
    """
    sources = [path for path in exam.total.all if _is_compiled(path)]
    if not sources:
        return None
    builds = await asyncio.to_thread(_builds_of, exam, sources)
    if not builds:
        return None
    _, made = await _run(exam, case, builds, remove=False)
    if made:
        return None
    without, made = await _run(exam, case, builds, remove=True)
    if _is_green(case, without):
        return None
    found = [path for path in builds if path not in made]
    related = [one for one in sources if any(one in builds[path] for path in found)]
    return not_built_again(case.target, found, related) if found else None


def _is_compiled(path: str) -> bool:
    return bool(NATIVE.search(path)) or language_of(path) in COMPILED


def _is_green(case: Case, ran: Measured) -> bool:
    if case.now is None or ran.results is None:
        return ran.passed
    passing = (name for name in case.now.names if case.now.passed(name))
    return all(ran.results.passed(name) for name in passing)


async def _run(
    exam: Examination, case: Case, builds: Collection[str], *, remove: bool
) -> tuple[Measured, list[str]]:
    """Run a command on the new tree, set up as that requires; return what it made of the builds."""
    verifier = exam.verifier
    read = await asyncio.to_thread(verifier.trees.reader, exam.world.new)
    verifier.awaits(case.target, "without builds of before the run" if remove else "once more")
    async with verifier.rooms.open(exam.world.new) as room:
        if remove:
            await asyncio.to_thread(_remove, room, builds)
        before = await asyncio.to_thread(_states, room, builds)
        room, _ = await verifier.set_up.in_room(room, exam.total)
        ran = await verifier.measurer.run(case.target, room, read)
        after = await asyncio.to_thread(_states, room, builds)
    return ran, [path for path in builds if path in after and after[path] != before.get(path)]


def _remove(room: Room, builds: Collection[str]) -> None:
    for path in builds:
        (room.copy.path / path).unlink(missing_ok=True)


def _states(room: Room, builds: Collection[str]) -> dict[str, tuple[int, int]]:
    found = {}
    for path in builds:
        place = room.copy.path / path
        if place.is_file():
            facts = place.lstat()
            found[path] = facts.st_ctime_ns, facts.st_ino
    return found


def _builds_of(exam: Examination, sources: Iterable[str]) -> dict[str, list[str]]:
    """Ignored binary files of before the run that hold what these sources define, with those."""
    world = exam.world
    read = exam.verifier.trees.reader(world.old)
    names = {path: _names(read(path) or b"") for path in sources}
    names = {path: found for path, found in names.items() if found}
    if not names:
        return {}
    found: dict[str, list[str]] = {}
    left = MOST_READ
    for path, content, packages in _ignored_binaries(exam):
        left -= len(content)
        if left < 0 or len(found) >= MOST_FILES:
            break
        related = [
            source
            for source, words in names.items()
            if _holds(content, words) and (not packages or _is_called_after(path, source))
        ]
        if related:
            found[path] = related
    return found


def _names(source: bytes) -> set[bytes]:
    return {name for hit in DEFINED.findall(source) for name in hit if name} - CONTROL


def _holds(content: bytes, names: Collection[bytes]) -> bool:
    """Whether most of the names are in a binary file, as words or within mangled ones."""
    there = sum(
        bool(re.search(rb"(?<![A-Za-z_])%s(?![a-z_])" % re.escape(name), content)) for name in names
    )
    return 2 * there > len(names)


def _is_called_after(build: str, source: str) -> bool:
    """Whether a file in a package folder has the name of a source or of a folder around it."""
    stem = PurePosixPath(build).name.partition(".")[0].removeprefix("lib").lstrip("_")
    place = PurePosixPath(source)
    return stem in {place.stem.lstrip("_"), *place.parent.parts}


def _ignored_binaries(exam: Examination) -> Iterator[tuple[str, bytes, bool]]:
    """Binary files that git ignores, as they were before the run; and whether packages they are."""
    snapshots = exam.verifier.snapshots
    entries: Mapping[str, tuple[str, str]] = snapshots.list(exam.world.old)
    ignored = sorted(snapshots.ignored_paths(list(entries)))
    sizes = snapshots.sizes(exam.world.old, ignored)
    for path in ignored:
        if 0 < sizes.get(path, 0) <= LARGEST:
            content = snapshots.read(exam.world.old, path) or b""
            if b"\0" in content[:4096]:
                yield path, content, False
    for folder, place in exam.verifier.rooms.sealed.folders():
        if not folder.copied:
            continue
        for inner, _, files in os.walk(place):
            for name in sorted(files):
                content = _binary(Path(inner, name))
                if content:
                    below = Path(inner, name).relative_to(place)
                    yield f"{folder.name}/{below}", content, folder.packages


def _binary(path: Path) -> bytes:
    """The content of a binary file; empty for any other, and for one that is too large."""
    try:
        if path.is_symlink() or not 0 < path.lstat().st_size <= LARGEST:
            return b""
        with path.open("rb") as file:
            head = file.read(4096)
            return head + file.read() if b"\0" in head else b""
    except OSError:
        return b""
