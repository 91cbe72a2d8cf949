"""Tests that were green all the time and belong to the work: what they compare with followed it.

The PRD asks for another output and lets a golden file change. A test that compares with this file
passed before and passes now; it is red with the new code and the old file, and with the old code
and the new file. So it asks for the new output. The worker wrote what it expects, so it is worth
what a test of the worker's own is worth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.prd_checks import outside_of_checks
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.new_checks import QUOTED

MOST_NAMES = 50
MOST_LINES = 5_000
WORD = lazy_regex(r"\w+")
IN_CODE = lazy_regex(r"`([^`\n]{2,60})`")
"""Beside texts in quotes a PRD writes others so, such as `<h2>`."""
WRITTEN = "what it expects was written by the worker: {} changed with the code, as the PRD permits"
UNSTATED = "{} says “{}” now, which is not what the requirements state in quotes"


class Followed(Struct, frozen=True):
    """Tests whose expected data followed the work."""

    names: Sequence[str] = ()
    paths: Sequence[str] = ()
    """The data."""
    why: str = ""
    """Why no test counts as such, although expected data followed the work."""

    @property
    def notes(self) -> list[str]:
        """What a reader of the proof has to know."""
        return [WRITTEN.format(", ".join(self.paths[:3]))]


async def find_followed_data(exam: Examination, case: Case) -> Followed:
    """Tests that passed before, pass now, and fail now with the expected data as it was.

    That they also fail on the old code with the new data is left to `find_shown_tests`. Raises
    what running in rooms raises.
    """
    world, differential = exam.world, exam.differential
    if case.before is None:
        return Followed()
    paths = await asyncio.to_thread(differential.rewritten_data, world, case.target, person=True)
    if not paths:
        return Followed()
    tree = await asyncio.to_thread(differential.with_paths, world.new, world.old, paths)
    ran = await exam.run(case.target, tree)
    if ran.results is None:
        return Followed()
    now = case.results
    green = [name for name in now.names if now.passed(name) and case.before.passed(name)]
    names = [
        name for name in green if any(test.outcome == "failed" for test in ran.results.named(name))
    ]
    if not names:
        return Followed()
    if why := await asyncio.to_thread(_why_unstated, exam, paths):
        return Followed(why=why)
    return Followed(names[:MOST_NAMES], paths)


def _why_unstated(exam: Examination, paths: Sequence[str]) -> str:
    """What data says that the PRD does not state, where it states texts in quotes. Blocks."""
    wanted = outside_of_checks(exam.verifier.spec.wanted)
    if stated := QUOTED.findall(wanted):
        stated += IN_CODE.findall(wanted)
    for path in paths:
        before, after = exam.world.was(path) or b"", exam.world.now(path) or b""
        if line := unstated(
            before.decode("utf-8", "replace"), after.decode("utf-8", "replace"), stated
        ):
            return UNSTATED.format(path, line[:80])
    return ""


def unstated(before: str, after: str, stated: Sequence[str]) -> str:
    """The first changed line with other words that states none of these texts anew. Pure.

    "" where there is none, and where nothing is stated.
    """
    old, new = before.splitlines(), after.splitlines()
    if not stated or max(len(old), len(new)) > MOST_LINES:
        return ""
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        pairs = [(old[a:b], new[c:d])]
        if b - a == d - c:
            pairs = [([x], [y]) for x, y in zip(old[a:b], new[c:d], strict=True)]
        for was, now in pairs:
            one, other = "\n".join(was), "\n".join(now)
            if WORD.findall(one) == WORD.findall(other):
                continue
            if not any(other.count(text) > one.count(text) for text in stated):
                return next((line.strip() for line in now if line.strip()), "less than before")
    return ""
