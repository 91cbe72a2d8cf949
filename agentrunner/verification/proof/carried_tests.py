"""Runs claimed tests whose files the PRD lets change once more, as they were worded before.

That a test may be adapted to a move or a new name permits other imports, not other assertions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from agentrunner.text.terminal import sanitize
from agentrunner.verification.evidence.findings import tests_reworded
from agentrunner.verification.inputs.steering_files import matches
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.red_on_old_code import MISSING
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.imports import bound_otherwise, carried, defined_instead
from agentrunner.verification.syntax.languages import language_of

MOST_MOVED = 20


async def hold_as_worded(exam: Examination, case: Case) -> list[str] | None:
    """Claimed tests of changed files that pass as they were worded before.

    None where one of them passes only with its new wording and this stops the examination: then a
    finding is added. [] where the old wording cannot be carried over to the new code. Raises what
    running in rooms raises.
    """
    claimed = _claimed_that_pass(sorted(exam.claims(case).claimed), case.results)
    changed = await asyncio.to_thread(_permitted_by_the_prd, exam)
    if not claimed or not changed:
        return []
    pairs = await asyncio.to_thread(_old_and_new, exam, changed)
    if not pairs:
        return []
    reworded_by = [
        f"{path} defines {', '.join(names)} itself, which it imported before"
        for path, (old_text, new_text) in pairs.items()
        if (names := defined_instead(old_text, new_text, language_of(path) or ""))
    ]
    asked = exam.verifier.spec.wanted
    moved_modules = await asyncio.to_thread(_paths_of_moved_modules, exam)
    reworded_by += [
        f"{path} imports {', '.join(names)} as something else than before"
        for path, (old_text, new_text) in pairs.items()
        if (
            names := bound_otherwise(
                old_text, new_text, language_of(path) or "", asked, moved_modules
            )
        )
    ]
    target = case.target
    if reworded_by:
        finding = tests_reworded(target, [], sorted(pairs), reworded_by[0])
        return None if exam.report.stopped_by(finding, target.id) else []
    tree = await asyncio.to_thread(_with_old_wording, exam, pairs)
    if tree is None:
        return []
    if tree == exam.world.new:
        return [name for name in claimed if case.results.passed(name)]
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
    output = sanitize(first.message).strip().splitlines()
    message = output[0][:200] if output else "it fails"
    names = [test.name for test in lost]
    finding = tests_reworded(target, names, sorted(pairs), f"{first.name}: {message}")
    return None if exam.report.stopped_by(finding, target.id) else []


def _claimed_that_pass(names: Sequence[str], now: Results) -> list[str]:
    """The claimed tests that pass now, including those whose module has another name now."""
    own = {own_name(name): name for name in names if name not in now.names}
    return [
        test.name
        for test in now.tests
        if test.outcome == "passed" and (test.name in names or own_name(test.name) in own)
    ]


def _permitted_by_the_prd(exam: Examination) -> list[str]:
    """Changed inputs that the PRD's words permit to change, without a person's own list. Blocks."""
    test = exam.verifier.test
    may = test.may_change if test is not None else []
    permitted = exam.differential.adapted(exam.world.allowed)
    return sorted(path for path in permitted if not matches(path, may))


def _old_and_new(exam: Examination, paths: list[str]) -> dict[str, tuple[bytes, bytes]]:
    """Old and new text of changed files in known languages, by their present path. Blocks."""
    was, now = exam.world.was, exam.world.now
    gone_texts = {
        path: text for path in paths if (text := was(path)) is not None and now(path) is None
    }
    found: dict[str, tuple[bytes, bytes]] = {}
    for path in paths:
        language, after = language_of(path), now(path)
        if language is None or after is None:
            continue
        before = was(path)
        if before is None:  # it was moved here: take the file that had most of its tests
            before = _origin(definitions(after, language).keys(), language, gone_texts)
        if before is not None and before != after:
            found[path] = (before, after)
    return found


def _origin(names: Set[str], language: str, gone_texts: Mapping[str, bytes]) -> bytes | None:
    """The text of the deleted file that had most of these tests; None for none."""
    common = {
        path: len(names & definitions(text, language).keys())
        for path, text in gone_texts.items()
        if language_of(path) == language
    }
    best = max(common, key=lambda path: common[path], default="")
    return gone_texts[best] if best and common[best] else None


def _with_old_wording(exam: Examination, pairs: Mapping[str, tuple[bytes, bytes]]) -> str | None:
    """The new tree with the old wording carried over; None where none can be. Blocks."""
    made: dict[str, bytes] = {}
    any_carried = False
    for path, (before, after) in pairs.items():
        text = carried(before, after, language_of(path) or "")
        any_carried = any_carried or text is not None
        if text is not None and text != after:
            made[path] = text
    return exam.world.snapshots.with_texts(exam.world.new, made) if any_carried else None


def _paths_of_moved_modules(exam: Examination) -> dict[str, frozenset[str]]:
    """Where modules went whose files are gone: parts of the new path, by module name. Blocks.

    The new path is that of the added file of the same name, else of the one most like it.
    """
    before, after = exam.world.was, exam.world.now
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
    """The share of lines that two files have in common, from 0 to 1."""
    return SequenceMatcher(None, one.splitlines(), other.splitlines(), autojunk=False).ratio()
