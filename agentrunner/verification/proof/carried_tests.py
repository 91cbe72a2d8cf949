"""Claimed tests whose files the PRD lets change: asked once more as they were worded before.

That a test may be adapted to a move or a new name settles its imports, and not what it asserts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from agentrunner.git.restore import Entry
from agentrunner.verification.findings import tests_reworded
from agentrunner.verification.inputs.steering import matches
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.struck import MISSING
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.carried import bound_otherwise, carried, defined_instead
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.languages import language_of

MOST_MOVED = 20


async def hold_as_worded(exam: Examination, case: Case, now: Results) -> list[str] | None:
    """Claimed tests of changed files that pass as they were worded before.

    None where one of them passes by its new wording alone: then a finding is added.

    Where the old wording cannot be carried over to the new code, nothing is said. Raises what runs
    in rooms raise.
    """
    claimed = _claimed(sorted(exam.claims(case).claimed), now)
    changed = await asyncio.to_thread(_permitted_by_the_prd, exam)
    if not claimed or not changed:
        return []
    pairs = await asyncio.to_thread(_old_and_new, exam, changed)
    if not pairs:
        return []
    instead = [
        f"{path} defines {', '.join(names)} itself, which it imported before"
        for path, (one, other) in pairs.items()
        if (names := defined_instead(one, other, language_of(path) or ""))
    ]
    asked = exam.verifier.spec.wanted
    went = await asyncio.to_thread(_went, exam)
    instead += [
        f"{path} imports {', '.join(names)} as something else than before"
        for path, (one, other) in pairs.items()
        if (names := bound_otherwise(one, other, language_of(path) or "", asked, went))
    ]
    target = case.target
    if instead:
        finding = tests_reworded(target, [], sorted(pairs), instead[0])
        return None if exam.report.stopped_by(finding, target.id) else []
    tree = await asyncio.to_thread(_tree, exam, pairs)
    if tree is None:
        return []
    if tree == exam.world.new:
        return [name for name in claimed if now.passed(name)]
    ran = await exam.run(target, tree, claimed)
    if ran.results is None:
        return []
    lost = [
        test
        for test in ran.results.tests
        if test.name in claimed and test.outcome == "failed" and not MISSING.search(test.message)
    ]
    if not lost:
        return [name for name in claimed if ran.results.passed(name)]
    first = lost[0]
    message = first.message.strip().splitlines()[0][:200] if first.message.strip() else "it fails"
    names = [test.name for test in lost]
    finding = tests_reworded(target, names, sorted(pairs), f"{first.name}: {message}")
    return None if exam.report.stopped_by(finding, target.id) else []


def _claimed(names: Sequence[str], now: Results) -> list[str]:
    """The claimed tests that pass now, also where their module has another name now."""
    own = {own_name(name): name for name in names if name not in now.names}
    return [
        test.name
        for test in now.tests
        if test.outcome == "passed" and (test.name in names or own_name(test.name) in own)
    ]


def _permitted_by_the_prd(exam: Examination) -> list[str]:
    """Changed inputs that the PRD's words let change; a person's own list settles it. Blocks."""
    test = exam.verifier.test
    may = test.may_change if test is not None else []
    permitted = exam.differential.adapted(exam.world.allowed)
    return sorted(path for path in permitted if not matches(path, may))


def _old_and_new(exam: Examination, paths: list[str]) -> dict[str, tuple[bytes, bytes]]:
    """Of changed files in known languages the old text and the new one, by where they are now."""
    snapshots = exam.verifier.snapshots
    was, now = snapshots.reader(exam.world.old), snapshots.reader(exam.world.new)
    left = {path: text for path in paths if (text := was(path)) is not None and now(path) is None}
    found: dict[str, tuple[bytes, bytes]] = {}
    for path in paths:
        language, after = language_of(path), now(path)
        if language is None or after is None:
            continue
        before = was(path)
        if before is None:  # it has come here: from where most of its tests stood
            before = _origin(definitions(after, language).keys(), language, left)
        if before is not None and before != after:
            found[path] = (before, after)
    return found


def _origin(names: Set[str], language: str, left: Mapping[str, bytes]) -> bytes | None:
    """The text of the file that is gone and has most of these tests; None for none."""
    common = {
        path: len(names & definitions(text, language).keys())
        for path, text in left.items()
        if language_of(path) == language
    }
    best = max(common, key=lambda path: common[path], default="")
    return left[best] if best and common[best] else None


def _tree(exam: Examination, pairs: Mapping[str, tuple[bytes, bytes]]) -> str | None:
    """The new tree with the old wording carried over; None where none can be. Blocks."""
    snapshots = exam.verifier.snapshots
    entries = snapshots.list(exam.world.new)
    made: dict[str, Entry | None] = {}
    read = False
    for path, (before, after) in pairs.items():
        text = carried(before, after, language_of(path) or "")
        read = read or text is not None
        if text is not None and text != after:
            made[path] = (entries[path][0], snapshots.write_blob(text))
    return snapshots.combine(exam.world.new, made) if read else None


def _went(exam: Examination) -> dict[str, frozenset[str]]:
    """By the name of a module whose file is gone: parts of the path where it stands now. Blocks.

    That is the new file of its name, or else the one that is most like it.
    """
    before = exam.verifier.snapshots.reader(exam.world.old)
    after = exam.verifier.snapshots.reader(exam.world.new)
    found: dict[str, frozenset[str]] = {}
    for old in sorted(exam.total.deleted)[:MOST_MOVED]:
        path = PurePosixPath(old)
        added = [
            one for one in map(PurePosixPath, sorted(exam.total.added)) if one.suffix == path.suffix
        ][:MOST_MOVED]
        text = before(old) or b""
        same = [one for one in added if one.name == path.name] or sorted(
            added, key=lambda one: _likeness(text, after(str(one)) or b"")
        )[-1:]
        if same:
            found[path.stem] = frozenset(part for one in same for part in one.with_suffix("").parts)
    return found


def _likeness(one: bytes, other: bytes) -> float:
    """From 0 to 1: how many lines two files share."""
    return SequenceMatcher(None, one.splitlines(), other.splitlines(), autojunk=False).ratio()
