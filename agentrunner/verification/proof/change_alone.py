"""What a change shows by itself, without a test: that it is not the work, or more than that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice

from agentrunner.state.run_state import Finding
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.findings import about_work
from agentrunner.verification.evidence.target import in_repo
from agentrunner.verification.inputs.executed_files import only_reads
from agentrunner.verification.inspection.beside_the_task import changed_beside
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.inspection.collateral import collateral, loose_code
from agentrunner.verification.inspection.comments_on_work import (
    only_comments,
    unfinished,
    unwritten,
)
from agentrunner.verification.inspection.has_to_stay import gone_though_kept
from agentrunner.verification.inspection.left_as_it_was import left_as_it_was, still_there
from agentrunner.verification.inspection.lost_files import lost_file, taken_place
from agentrunner.verification.inspection.lost_refusals import MOST_TRIED, lost_refusals
from agentrunner.verification.inspection.missing_failures import nothing_fails, only_declared
from agentrunner.verification.inspection.restored_lines import LostCode
from agentrunner.verification.inspection.weaker_tests import weaker_test
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.code_equality import is_same_code
from agentrunner.verification.trees import with_edits
from agentrunner.verification.world import SnapshotTrees

READS_DOCSTRINGS = lazy_regex(
    rb"__doc__|\bgetdoc\b|\bdocopt\b|(?m:^[ \t]*@\w)|(?m:^[ \t]*class\s+\w+\s*\((?!\s*\)))"
)
"""What hands docstrings on: a decorator gets the function with its own, a base class the class."""
ASKS_FOR_TEXT = lazy_regex(r"(?i)\bdoc(?!k)|\bhelp\b|\busage\b|説明|文書|ドキュメント|ヘルプ")

LEFT_OUT = "{}, a test of the work itself, is left out: it says what is not done"
CONDITION = lazy_regex(
    r"(?i)skip_?(?:if|unless)|platform|GOOS|\bif\b|\bunless\b|cfg|importorskip|requires_\w|enabled\w*on"
    r"|\bskip:\s*(?!true|[\"'])"
    r"|assum(?:e|ing)"
)
"""What says when a test is left out."""
AROUND = 400
"""So many characters before and after a test's name are searched for that."""
IDLE = frozenset({"skipped", "xfailed"})


def shown_by_the_change(exam: Examination, cases: Sequence[Case], wanted: str) -> Finding | None:
    """What the change itself shows not to be the work, whatever its tests say. Blocks.

    Where a test or check of people was seen to turn, comments say no more than that.
    """
    trees = _trees(exam, cases)
    what = (
        left_as_it_was(trees, wanted)
        or still_there(trees, wanted)
        or gone_though_kept(trees, wanted)
        or lost_file(trees)
        or taken_place(trees)
        or only_declared(trees, wanted)
        or nothing_fails(trees, wanted)
        or unwritten(trees, wanted)
        or left_out(cases, trees.read)
    )
    if what:
        return about_work("missing", what)
    what = collateral(trees, wanted) or weaker_test(_put_back(exam), *exam.world.readers, wanted)
    if what:
        return about_work("beside", what)
    if (
        exam.same_code
        and exam.report.proofs
        and all(only_reads(case.target.shell) for case in cases)
    ):
        what = only_comments(trees, wanted)
    elif any(proof.grade == "proven" for proof in exam.report.proofs):
        what = ""
    else:
        what = unfinished(trees, wanted) or loose_code(trees, wanted)
    return about_work("missing", what) if what else None


async def lost_code(exam: Examination, cases: Sequence[Case], wanted: str) -> Finding | None:
    """What the change does not refuse any more, or lost elsewhere, though nobody asked for that.

    It is asked about where all tests pass again with it. Raises what running in rooms raises.
    """

    def look() -> list[LostCode]:
        trees = _trees(exam, cases)
        beside = islice(changed_beside(trees, wanted, _put_back(exam)), MOST_TRIED)
        return [*lost_refusals(trees, wanted), *beside]

    lost = await asyncio.to_thread(look)
    for one in lost:
        for edits_of in one.restored:
            edits = {one.path: [*edits_of]}
            tree = await asyncio.to_thread(with_edits, exam.world.snapshots, exam.world.new, edits)
            if all([await _passes_again(exam, case, tree) for case in cases]):
                return about_work("beside", one.shown)
    return None


async def _passes_again(exam: Examination, case: Case, tree: str) -> bool:
    """Whether what passed is seen to pass on a tree: one that cannot be built shows nothing."""
    names = _green(case)
    ran = await exam.run(case.target, tree, names)
    if not names:
        return ran.passed
    return ran.results is not None and all(map(ran.results.passed, names))


def _green(case: Case) -> list[str]:
    """The names of the tests that a command reports as passed, if it reports any."""
    return [one for one in case.now.names if case.now.passed(one)] if case.now is not None else []


def _put_back(exam: Examination) -> list[str]:
    """Changed paths beside the product that nothing permits to change."""
    return [one.path for one in exam.world.changes if not one.understood]


def _trees(exam: Examination, cases: Sequence[Case]) -> BothTrees:
    world = exam.world
    inputs = exam.differential.inputs(world.old, [case.target for case in cases])
    product = [path for path in sorted(world.old_paths) if inputs.input_at(path) is None]
    return BothTrees.of(world.snapshots, world.old, world.new, product, world.product)


def left_out(cases: Iterable[Case], read: ReadFile) -> str:
    """A new test that is skipped or expected to fail, whatever is around it; else "". Blocks.

    A check that runs one test by its name skips all others; one that passes anywhere is run.
    """
    cases = list(cases)
    run = {name for case in cases if case.now for name in case.now.names if case.now.passed(name)}
    for case in cases:
        for test in case.now.tests if case.now and case.before else ():
            assert case.before is not None
            if test.outcome not in IDLE or test.name in run or case.before.named(test.name):
                continue
            path = in_repo(test.file, case.target.cwd)
            text = (read(path) or b"").decode("utf-8", "replace") if path else ""
            place = text.find(own_name(test.name))
            if place < 0 or CONDITION.search(text[max(place - AROUND, 0) : place + AROUND]):
                continue
            return LEFT_OUT.format(test.name)
    return ""


def is_unchanged(world: SnapshotTrees) -> bool:
    """Whether the work changed no more than comments and layout.

    False where a part of it is in no language that is known.
    """
    return _all_same(world, docstrings=True)


def is_only_text(world: SnapshotTrees, asked: str) -> bool:
    """Whether the work is no more than that and docstrings that nothing reads.

    False where there is none, and where `asked` is about texts.
    """
    unread = not ASKS_FOR_TEXT.search(asked) and not any(
        READS_DOCSTRINGS.search(world.now(path) or b"") for path in world.product
    )
    return bool(world.product) and _all_same(world, docstrings=not unread)


def _all_same(world: SnapshotTrees, *, docstrings: bool) -> bool:
    sources = [*world.sources()]
    return len(sources) == len(world.product) and all(
        before is not None and is_same_code(before, after, language, docstrings=docstrings)
        for _, language, before, after in sources
    )
