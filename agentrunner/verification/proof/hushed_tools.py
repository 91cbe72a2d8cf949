"""Checks that are green as comments of the work tell their tool to say nothing.

A type checker, a linter or a spelling checker obeys comments (`# type: ignore`, `// NOLINT`). Which
ones, no list can hold. The comments that the work added are taken out: where the command then
reports what it reported before the work, it is they that turned it green.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.tokens import comments, lexical_family
from agentrunner.verification.target import Measured, Target

MOST_FILES = 200
MOST_TRIED = 6
"""So many comments are taken out one by one, to name the one that matters."""
PLACED = re.compile(r":\d+|\bline \d+|^\s*\d+:\d+", re.IGNORECASE)
"""What a line of output has that reports something at a place of a source."""
WHY = "{} says `{}`, and without that comment `{}` reports what it reported before the run: {}"


@dataclass(frozen=True)
class _Comment:
    path: str
    line: int
    text: str
    edit: Edit


async def hushed_by_comment(exam: Examination, target: Target) -> str:
    """Why a green command is taken to be silenced by a comment; "" where it is not.

    Raises what running in rooms raises.
    """
    added = await asyncio.to_thread(_added_comments, exam)
    if not added:
        return ""
    without = await _run_without(exam, target, added)
    if without.passed:
        return ""
    before = _reports(await exam.run(target, exam.world.old))
    if not (again := before & _reports(without)):
        return ""
    for one in added[:MOST_TRIED] if len(added) > 1 else ():
        alone = await _run_without(exam, target, [one])
        if not alone.passed and (found := before & _reports(alone)):
            return _why(one, target, found)
    return _why(added[0], target, again)


def _why(comment: _Comment, target: Target, reports: set[str]) -> str:
    text = " ".join(comment.text.encode("latin-1").decode("utf-8", "replace").split())[:80]
    return WHY.format(f"{comment.path}:{comment.line}", text, target.shell, min(reports)[:200])


async def _run_without(exam: Examination, target: Target, some: Sequence[_Comment]) -> Measured:
    return await exam.run(target, await asyncio.to_thread(_without, exam, some))


def _reports(measured: Measured) -> set[str]:
    """The lines of output that report something at a place, without their numbers."""
    lines = f"{measured.ran.stdout}\n{measured.ran.stderr}".splitlines()
    return {
        " ".join(re.sub(r"\d+", "N", line).split())
        for line in lines
        if PLACED.search(line) and len(re.findall(r"[A-Za-z]{2,}", line)) > 2
    }


def _added_comments(exam: Examination) -> list[_Comment]:
    """The comments that only the new product has. Blocks."""
    snapshots, world = exam.verifier.snapshots, exam.world
    was, read = snapshots.reader(world.old), snapshots.reader(world.new)
    found: list[_Comment] = []
    for path in world.product[:MOST_FILES]:
        after = read(path)
        family = lexical_family(path, after or b"")
        if after is None or family is None:
            continue
        old = Counter(text for _, text in comments(was(path) or b"", family))
        for start, text in comments(after, family):
            if old[text]:
                old[text] -= 1
            elif not (start == 0 and text.startswith("#!")):
                line = after.count(b"\n", 0, start) + 1
                found.append(_Comment(path, line, text, Edit(start, start + len(text), "")))
    return found


def _without(exam: Examination, some: Sequence[_Comment]) -> str:
    """The tree that is handed over without these comments. Blocks."""
    snapshots, world = exam.verifier.snapshots, exam.world
    read = snapshots.reader(world.new)
    made = {
        path: applied(read(path) or b"", [one.edit for one in some if one.path == path])
        for path in {one.path for one in some}
    }
    return snapshots.with_texts(world.new, made)
