"""What a change shows by itself, without a test: that it is not the work, or more than that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agentrunner.state.run_state import Finding
from agentrunner.verification.findings import about_work
from agentrunner.verification.inputs.executed_files import only_reads
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.inspection.collateral import collateral
from agentrunner.verification.inspection.comments_on_work import only_comments, unfinished
from agentrunner.verification.inspection.has_to_stay import gone_though_kept
from agentrunner.verification.inspection.left_as_it_was import left_as_it_was
from agentrunner.verification.inspection.loose_code import loose_code
from agentrunner.verification.inspection.lost_files import lost_file
from agentrunner.verification.inspection.lost_refusals import lost_refusals
from agentrunner.verification.inspection.missing_failures import nothing_fails
from agentrunner.verification.inspection.only_declared import only_declared
from agentrunner.verification.inspection.still_there import still_there
from agentrunner.verification.inspection.taken_places import taken_place
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.left_out_tests import left_out
from agentrunner.verification.trees import with_edits

MOST_TRIED = 3
"""So many functions are put back as they were, two runs each."""


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
        or left_out(cases, trees.read)
    )
    if what:
        return about_work("missing", what)
    if what := collateral(trees, wanted):
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


async def refuses_less(exam: Examination, cases: Sequence[Case], wanted: str) -> Finding | None:
    """What the change does not refuse any more, though nobody asked for that.

    Tests ask for it where they are red as soon as it is back. Raises what running in rooms raises.
    """
    lost = await asyncio.to_thread(lambda: lost_refusals(_trees(exam, cases), wanted))
    for one in lost[:MOST_TRIED]:
        for edit in one.restored:
            edits = {one.path: [edit]}
            tree = await asyncio.to_thread(with_edits, exam.world.snapshots, exam.world.new, edits)
            if not any([await exam.first_red(case, tree, _green(case)) for case in cases]):
                return about_work("beside", one.shown)
    return None


def _green(case: Case) -> list[str]:
    """The names of the tests that a command reports as passed, if it reports any."""
    return [one for one in case.now.names if case.now.passed(one)] if case.now is not None else []


def _trees(exam: Examination, cases: Sequence[Case]) -> BothTrees:
    world = exam.world
    inputs = exam.differential.inputs(world.old, [case.target for case in cases])
    product = [path for path in sorted(world.old_paths) if inputs.input_at(path) is None]
    return BothTrees.of(world.snapshots, world.old, world.new, product, world.product)
