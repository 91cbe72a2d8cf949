"""Runs claimed tests once more with the baseline's packages, where set-up ran on new code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agentrunner.verification.evidence.findings import packages_changed
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.inputs.shadows import KITS
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.packages import SOURCES, names_imported, put_back_packages
from agentrunner.verification.rooms.room import Room

MOST_READ = 2_000
"""Product files that are searched for imports."""


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
        replaced = await asyncio.to_thread(_put_back, exam, room, imported, tools)
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


def _put_back(exam: Examination, room: Room, imported: set[str], tools: set[str]) -> list[str]:
    replaced = []
    for folder, source in exam.verifier.rooms.sealed.folders():
        place = room.copy.path / folder.name
        if folder.copied and folder.packages and place.is_dir() and not place.is_symlink():
            found = put_back_packages(place, source, imported, tools)
            replaced += [str(Path(folder.name, name)) for name in found]
    home, before = room.copy.home, exam.verifier.rooms.sealed.home
    if home == room.own_home and (home / ".local").is_dir():
        found = put_back_packages(home / ".local", before / ".local", imported, tools)
        replaced += [f"~/.local/{name}" for name in found]
    return replaced
