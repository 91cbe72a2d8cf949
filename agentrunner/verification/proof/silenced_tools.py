"""Commands that are green as the work tells a tool, or the program itself, to say nothing.

A type checker, a linter or a spelling checker obeys comments (`# type: ignore`, `// NOLINT`). Which
ones, no list can hold. The comments that the work added are taken out, and what its language has
for silencing (a pragma, `as any`); types that it took away are put back. Where the command then
reports what it reported before the work, it is they that turned it green. Tests with names have to
fail once more without that code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.lost_types import lost_types
from agentrunner.verification.syntax.silenced_warnings import WANTS_SILENCE, added_silenced_warnings
from agentrunner.verification.syntax.tokens import added_comments, lexical_family
from agentrunner.verification.trees import with_edits

MOST_FILES = 200
MOST_TRIED = 6
"""So many comments are taken out one by one, to name the one that matters."""
PLACED = lazy_regex(r":\d+|\bline \d+|^\s*\d+:\d+|\(\d+(?:,\d+)?\):? ", re.IGNORECASE)
"""What a line of output has that reports something at a place of a source."""
WHY = "{} says `{}`, and without that `{}` reports what it reported before the run: {}"
RED = "{} says `{}`, and without that {} fails: what it complained of is silenced, not fixed"


class _Silencer(Struct, frozen=True):
    """A comment, or code that silences, which the work added."""

    path: str
    line: int
    text: str
    edit: Edit


async def find_silenced_tools(
    exam: Examination, case: Case, names: Sequence[str], asked: str
) -> str:
    """Why green tests, or a green command without `names`, are taken to be silenced; else "".

    Where `asked` asks for silence, code may do that. Raises what running in rooms raises.
    """
    code = await asyncio.to_thread(_added_code, exam) if not WANTS_SILENCE.search(asked) else []
    if code and (names or any(lexical_family(one.path) == "shell" for one in code)):
        tree = await asyncio.to_thread(_without, exam, code)
        if red := await exam.first_red(case, tree, names):
            return RED.format(f"{code[0].path}:{code[0].line}", code[0].text, red)
    return "" if names else await _silenced_command(exam, case.target, code)


async def _silenced_command(exam: Examination, target: Target, code: Sequence[_Silencer]) -> str:
    added = [*code, *await asyncio.to_thread(_added_comments, exam)]
    if not added:
        return ""
    without = await _run_without(exam, target, added)
    if without.passed:
        return ""
    before = reports(await exam.run(target, exam.world.old))
    if not (again := before & reports(without)):
        return ""
    for one in added[:MOST_TRIED] if len(added) > 1 else ():
        alone = await _run_without(exam, target, [one])
        if not alone.passed and (found := before & reports(alone)):
            return _why(one, target, found)
    return _why(added[0], target, again)


def _why(one: _Silencer, target: Target, reports: set[str]) -> str:
    text = " ".join(one.text.encode("latin-1").decode("utf-8", "replace").split())[:80]
    return WHY.format(f"{one.path}:{one.line}", text, target.shell, min(reports)[:200])


async def _run_without(exam: Examination, target: Target, some: Sequence[_Silencer]) -> Measured:
    return await exam.run(target, await asyncio.to_thread(_without, exam, some))


def reports(measured: Measured) -> set[str]:
    """What the output reports at places of sources, without their numbers.

    A tool that writes the place alone in a line (`--> app.py:1:8`) says above what is there.
    """
    lines = f"{measured.ran.stdout}\n{measured.ran.stderr}".splitlines()
    found = set()
    for above, line in pairwise(["", *lines]):
        if PLACED.search(line):
            text = line if _has_words(line) else f"{above} {line}"
            if _has_words(text):
                found.add(" ".join(re.sub(r"\d+", "N", text).split()))
    return found


def _has_words(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) > 2


def _added_code(exam: Examination) -> list[_Silencer]:
    """The code of the work that silences. Blocks."""
    world = exam.world
    return [
        _Silencer(path, one.line, one.text, one.edit)
        for path in world.product[:MOST_FILES]
        for added in (added_silenced_warnings, lost_types)
        for one in added(path, world.was(path) or b"", world.now(path) or b"")
    ]


def _added_comments(exam: Examination) -> list[_Silencer]:
    """The comments that only the new product has. Blocks."""
    world = exam.world
    return [
        _Silencer(path, after.count(b"\n", 0, start) + 1, text, Edit(start, start + len(text), ""))
        for path in world.product[:MOST_FILES]
        if (after := world.now(path)) is not None
        for start, text in added_comments(path, world.was(path) or b"", after)
        if not (start == 0 and text.startswith("#!"))
    ]


def _without(exam: Examination, some: Sequence[_Silencer]) -> str:
    """The tree that is handed over without these comments. Blocks."""
    edits = {one.path: [other.edit for other in some if other.path == one.path] for one in some}
    return with_edits(exam.world.snapshots, exam.world.new, edits)
