"""A green command without test names whose tests the worker added to, or wrote more of.

It was green before, so no exit code turned. What is new in it shows the work where the old product
fails with it, and where the new product fails with its new functions emptied. Then the command is
worth what the worker's own tests are worth by name: shown.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Awaitable, Callable, Sequence

from agentrunner.state.run_state import Proof
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text
from agentrunner.verification.evidence.target import TEST
from agentrunner.verification.inputs.programs import SAYS_NO
from agentrunner.verification.inputs.references import family_by_first_line, family_of
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.proof.case import Case, label
from agentrunner.verification.proof.data_changes import COMMENTS, NO_COMMENT
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.inline_canaries import canaries_of_programs
from agentrunner.verification.proof.packages import holds_with_old_packages
from agentrunner.verification.proof.silenced_tools import find_silent_program
from agentrunner.verification.world import SnapshotTrees

SHELL = lazy_regex(rb"#!.*\b(?:ba|da|z|k|a)?sh\b")
NOTHING = b"exit 0\n"
JUDGES = r"\W+(?:\w+\W+){0,4}?(?:pass(?:es)?|succeeds?|green|agrees?|accepts?)\b"
"""What follows the name of a program that has to be content, and may not be rewritten for that."""

PASSES_BEFORE = "the code before the run passes with what is new in it as well"
BY_TEXT = "it passes on the code before the run as soon as the new text stands there in comments"
WHERE_EMPTY = "it passes with the new functions emptied as well"
NO_PRODUCT = "nothing that stood before was changed, and no function is new"
NOT_AGAIN = "it is not green each time"
QUOTED = lazy_regex(r"\"([^\"\n]{2,60})\"")
SHOWS = "it passes now, and fails on the code before the run with what the worker added to it"


async def why_not_shown(
    exam: Examination,
    case: Case,
    paths: Sequence[str],
    asks_too_little: Callable[[], Awaitable[str]],
) -> str:
    """Why what is new in a green command (`paths`) shows nothing; "" where a proof was added.

    Raises what running in rooms raises.
    """
    target, world = case.target, exam.world
    if mute := await asyncio.to_thread(_never_fails, paths, world):
        return f"{mute} asserts nothing"
    old = await asyncio.to_thread(_old_with_what_is_new, exam, case)
    if (await exam.run(target, old)).passed:
        return PASSES_BEFORE
    with_text = await asyncio.to_thread(_with_new_text, exam, old)
    if with_text != old and (await exam.run(target, with_text)).passed:
        return BY_TEXT
    without = exam.without_work
    trees = [
        await without.emptied(added=True),
        await without.emptied(added=True, memory=True),
        await without.emptied(),
    ]
    emptied = list(dict.fromkeys(tree for tree in trees if tree is not None))
    for tree in emptied:
        if (await exam.run(target, tree)).passed:
            return WHERE_EMPTY
    if not emptied and world.old_paths.isdisjoint(world.product):
        return NO_PRODUCT
    if doubt := await asks_too_little():
        return doubt
    again = await exam.run(target, world.new)
    if not again.passed:
        return NOT_AGAIN
    if written := await asyncio.to_thread(exam.deciding, again.moved, target):
        return f"it writes {written[0]}, which decides about it"
    findings = len(exam.report.findings)
    if not await holds_with_old_packages(exam, case, ()):
        del exam.report.findings[findings:]  # the command was green before: a doubt, no more
        return exam.report.doubts.pop(target.id, "it needs other packages than before")
    dead = await canaries_of_programs(exam, target)
    if dead.finding is not None:
        return dead.finding.message
    if silent := await find_silent_program(exam, target):
        return silent
    exam.report.proofs.append(
        Proof(
            target=target.id,
            author="worker",
            grade="shown",
            text=f"{label(target)}`{target.shell}`, the worker's own: {SHOWS}",
            notes=list(dead.notes),
        )
    )
    return ""


def _old_with_what_is_new(exam: Examination, case: Case) -> str:
    """The old product with the inputs of the proof as the worker left them. Blocks.

    So are all new files that are no programs: a test may read them.
    """
    world, differential = exam.world, exam.differential
    tree = differential.with_new_programs(case.target)
    data = [
        path
        for path in world.product
        if path not in world.old_paths and not _family(path, world.now(path) or b"")
    ]
    return differential.with_paths(tree, world.new, data)


def _with_new_text(exam: Examination, tree: str) -> str:
    """The tree with the new text of each changed product file as comments at its end. Blocks."""
    world = exam.world
    entries = world.snapshots.list(tree)
    made: dict[str, bytes] = {}
    for path in world.product:
        before, after = world.was(path), world.now(path)
        if before is None or after is None or path not in entries or NO_COMMENT.search(before):
            continue
        if mark := COMMENTS.get(_family(path, before)):
            text = to_text(after).splitlines()
            lines = "".join(f"{mark} {line.rstrip(chr(92))}\n" for line in text)
            made[path] = before.rstrip(b"\n") + b"\n\n\n" + to_bytes(lines)
    return world.snapshots.with_texts(tree, made)


def _never_fails(paths: Sequence[str], world: SnapshotTrees) -> str:
    """A new program in C that has no word by which it could fail; else "". Blocks.

    There, code that gives zero in the place of what is new need not compile, which is red as well.
    """
    for path in paths:
        text = (world.now(path) or b"") if world.was(path) is None else b""
        if text and _family(path, text) == "c" and not SAYS_NO.search(to_text(text)):
            return path
    return ""


def _family(path: str, source: bytes) -> str:
    head = source[:200].decode("utf-8", "replace")
    return family_of(path) or family_by_first_line(head)


async def subjects_of_checks(exam: Examination, cases: Sequence[Case]) -> set[str]:
    """Changed shell programs that checks of people run, and that are the work. Raises what running
    in rooms raises.

    `sh deploy.sh a b && test -e b/x` asks what deploy.sh did. Where a program that the requirements
    speak of does nothing, and ends well, such a check is red: it is not the program that says yes.
    """
    found: set[str] = set()
    for case in cases:
        if case.now is not None or case.target.id == TEST or case.target.author != "person":
            continue
        for path in await asyncio.to_thread(_candidates, exam, case):
            idle = await asyncio.to_thread(_idle, exam, path)
            if path not in found and not (await exam.run(case.target, idle)).passed:
                found.add(path)
    return found


def _candidates(exam: Examination, case: Case) -> list[str]:
    """Programs that the command runs and the requirements speak of. Blocks."""
    wanted = outside_of_checks(exam.verifier.spec.wanted)
    return [
        one.path
        for one in exam.world.changes
        if one.path in exam.world.old_paths
        and _is_run(one.path, case.target.shell)
        and (one.path.endswith((".sh", ".bash")) or SHELL.match(exam.world.now(one.path) or b""))
        and _is_spoken_of(one.path, wanted)
    ]


def _is_run(path: str, shell: str) -> bool:
    name = re.escape(posixpath.basename(path))
    return bool(re.search(rf"(?:^|[\s;&|(/]){name}(?=[\s;&|)<>]|$)", shell))


def _is_spoken_of(path: str, wanted: str) -> bool:
    name = posixpath.basename(path)
    names = "|".join(re.escape(one) for one in {name, name.partition(".")[0]})
    mention = rf"(?i:(?<![\w-])(?:{names})(?![\w-]))"
    return bool(re.search(mention, wanted)) and not re.search(mention + JUDGES, wanted)


def _idle(exam: Examination, path: str) -> str:
    """The new tree in which a program does nothing. Blocks."""
    text = exam.world.now(path) or b""
    first = text.split(b"\n", 1)[0] + b"\n" if text.startswith(b"#!") else b"#!/bin/sh\n"
    return exam.world.snapshots.with_texts(exam.world.new, {path: first + NOTHING})
