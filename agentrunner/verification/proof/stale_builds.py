"""Builds that git ignores, made before the run from sources that the work changes.

A library or program that a test loads may stand beside its sources, built by somebody at some time.
Where the work changes the sources and nothing builds it again, the tests say what the old sources
did. Whether a file is such a build is told by the names in it, and whether it decides is tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from agentrunner.state.run_state import Finding
from agentrunner.verification.evidence.findings import not_built_again
from agentrunner.verification.evidence.ignored_builds import is_compiled
from agentrunner.verification.evidence.target import Measured
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.rooms.room import Room


async def find_stale_build(exam: Examination, case: Case) -> Finding | None:
    """A finding where a green command rests on a build that nothing makes again; None for none.

    Raises what running in rooms raises.
    """
    sources = [path for path in exam.total.all if is_compiled(path)]
    if not sources:
        return None
    old, new = exam.world.old, exam.world.new
    builds = await asyncio.to_thread(exam.verifier.builds.of, old, new, sources)
    if not builds:
        return None
    _, made = await _run(exam, case, builds, remove=False)
    if not (builds := {path: of for path, of in builds.items() if path not in made}):
        return None
    without, made = await _run(exam, case, builds, remove=True)
    if _is_green(case, without):
        return None
    found = [path for path in builds if path not in made]
    related = [one for one in sources if any(one in builds[path] for path in found)]
    return not_built_again(case.target, found, related) if found else None


def _is_green(case: Case, ran: Measured) -> bool:
    if case.now is None or ran.results is None:
        return ran.passed
    passing = (name for name in case.now.names if case.now.passed(name))
    return all(ran.results.passed(name) for name in passing)


async def _run(
    exam: Examination, case: Case, builds: Collection[str], *, remove: bool
) -> tuple[Measured, list[str]]:
    """Run a command on the new tree, set up as that requires; return what it made of the builds."""
    before: dict[str, tuple[int, int]] = {}

    def prepare(room: Room) -> None:
        for path in builds if remove else ():
            (room.copy.path / path).unlink(missing_ok=True)
        before.update(_states(room, builds))

    why = "without builds of before the run" if remove else "once more"
    exam.verifier.announce(case.target, why)
    async with exam.verifier.room_for(exam.world.new, exam.total, prepare) as (room, run):
        ran = await run(case.target)
        after = await asyncio.to_thread(_states, room, builds)
    return ran, [path for path in builds if path in after and after[path] != before.get(path)]


def _states(room: Room, builds: Collection[str]) -> dict[str, tuple[int, int]]:
    found = {}
    for path in builds:
        place = room.copy.path / path
        if place.is_file():
            facts = place.lstat()
            found[path] = facts.st_ctime_ns, facts.st_ino
    return found
