"""Examinations of whole commits: one fresh checkout each, set up once; and what is known after."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.errors import EnvironmentNotReady
from agentrunner.plans.execution.merging.merge_verdict import MergeVerdict
from agentrunner.storage.run_folder import RunFolder, kept_sandbox
from tests.kit.merges import Trees, needs
from tests.kit.project import require_bwrap


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees.make(tmp_path)


async def test_tests_and_checks_run_in_one_box_for_each_commit(trees: Trees) -> None:
    """What the tests leave behind is there for the checks: it is the same checkout."""
    trees.test = "touch tested"
    first = trees.commit(trees.base, "a.txt")
    proofs = (needs("a.txt", "T-2"), needs("tested", "T-2"))
    assert await trees.look(first, trees.base, proofs=proofs) == MergeVerdict()
    assert trees.set_ups == 2, "one for the commit, one for the tests before it"
    # All of that is known of the tree now, in a later process as well.
    assert await trees.look(first, trees.base, proofs=proofs) == MergeVerdict()
    assert trees.set_ups == 0
    assert {path.name for path in trees.folder.iterdir()} == {"outcomes", "proofs"}
    # Only what is not known is run.
    second = trees.commit(first, "c.txt")
    assert await trees.look(second, first, task_id="T-3") == MergeVerdict()
    assert trees.set_ups == 1


async def test_checks_of_landed_tasks_hold_as_long_as_these_are_in_the_plan(trees: Trees) -> None:
    first = trees.commit(trees.base, "a.txt")
    second = trees.commit(first, gone=["a.txt"])
    reads = needs("a.txt", kind="file", run="", path="a.txt", exists=True)
    proofs = (needs("a.txt"), reads)
    assert await trees.look(first, trees.base, task_id="T-1", proofs=proofs) == MergeVerdict()
    found = await trees.look(second, first)
    assert found.broken == proofs
    assert "T-1 (AC-1)" in found.evidence and "a.txt does not exist" in found.evidence
    # Red before as well: not this one's doing.
    third = trees.commit(second, "c.txt")
    assert await trees.look(third, second) == MergeVerdict()
    trees.living.clear()
    assert await trees.look(second, first) == MergeVerdict()


async def test_what_a_task_has_proven_must_hold_on_the_merge(trees: Trees) -> None:
    mine = trees.commit(trees.base, "a.txt")
    merge = trees.commit(trees.base, "c.txt")
    own = needs("a.txt", "T-2")
    found = await trees.look(merge, trees.base, mine=mine, proofs=(own,))
    assert found.broken == (own,) and not found.doubts
    assert trees.set_ups == 2, "on the merge, and on its own commit"
    # It landed as others had it: nothing is moved, and what it has proven is looked at there.
    found = await trees.look(trees.base, trees.base, mine=mine, proofs=(own,))
    assert found.broken == (own,)


@pytest.mark.parametrize("merged", [False, True])
async def test_what_a_commit_alone_does_not_hold_is_doubted_and_asked_no_more(
    trees: Trees, merged: bool
) -> None:
    """As what is in a folder that git ignores: it was in the work tree of the run only."""
    mine = trees.commit(trees.base, "a.txt")
    commit = trees.commit(mine, "c.txt") if merged else mine
    ignored, kept = needs("ignored", "T-2"), needs("a.txt", "T-2")
    found = await trees.look(commit, trees.base, mine=mine, proofs=(ignored, kept))
    assert found == MergeVerdict(doubts=(ignored,))
    assert await trees.tests().doubts("T-2") == (ignored,)
    assert trees.set_ups == (2 if merged else 1)
    trees.living.append("T-2")
    after = trees.commit(commit, "d.txt", gone=["a.txt"])
    assert (await trees.look(after, commit, task_id="T-3")).broken == (kept,)


@pytest.mark.parametrize("test", [None, "true"])
async def test_a_set_up_that_a_commit_breaks_goes_back_to_its_task(
    trees: Trees, test: str | None
) -> None:
    trees.test, trees.setup = test, "echo deps of $(ls); test ! -f bad.txt"
    bad = trees.commit(trees.base, "bad.txt")
    own = (needs("b.txt", "T-2"),)
    found = await trees.look(bad, trees.base, proofs=own)
    assert found.evidence.startswith("The set-up command fails on a fresh checkout of this task")
    assert "deps of b.txt bad.txt" in found.evidence and found.broken == ()
    tests = trees.tests()
    assert [await tests.sets_up(commit, ("", "")) for commit in (trees.base, bad)] == [True, False]
    # Where it fails without the commit as well, it is nobody's doing.
    trees.setup = "false"
    with pytest.raises(EnvironmentNotReady, match="set-up"):
        await trees.look(bad, trees.base, proofs=own)


async def test_what_does_not_start_is_told_from_what_is_red(trees: Trees) -> None:
    bad = trees.commit(trees.base, "bad.txt")
    for exit_code in (1, 127):
        trees.test = f"test ! -f bad.txt || exit {exit_code}"
        found = await trees.look(bad, trees.base)
        assert found.evidence and found.stuck is (exit_code == 127)
    trees.test = None
    check = needs("", run="test ! -f bad.txt || exit 127")
    await trees.look(trees.base, trees.base, task_id="T-1", proofs=(check,))
    found = await trees.look(bad, trees.base)
    assert found.broken == (check,) and found.stuck


async def test_a_plan_that_is_joined_to_a_branch_keeps_what_it_has_proven(trees: Trees) -> None:
    trees.test = "test ! -f red.txt"
    head = trees.commit(trees.base, "a.txt", "t.txt")
    proofs = (needs("a.txt"), needs("ignored"))
    await trees.look(head, trees.base, task_id="T-1", proofs=proofs)
    theirs = trees.commit(trees.base, "theirs.txt")
    tests = trees.tests()
    joined = trees.commit(head, "theirs.txt")
    assert await tests.joined(joined, theirs, head) == MergeVerdict()
    without = trees.commit(theirs, "t.txt")
    found = await tests.joined(without, theirs, head)
    assert found.broken == (needs("a.txt"),) and "the plan's result and that" in found.evidence
    red = trees.commit(joined, "red.txt")
    found = await tests.joined(red, theirs, head)
    assert found.evidence.startswith("The tests fail on the plan's result") and not found.broken


async def test_the_box_is_that_of_the_run(trees: Trees) -> None:
    """With `auto` the run's choice holds, and what is known is known of that box."""
    require_bwrap()
    trees.sandbox, trees.test = {"kind": "auto"}, "true"
    outside = trees.place / "outside"
    shows = needs("", "T-2", run=f"touch {outside}; test -f b.txt")
    first = trees.commit(trees.base, "a.txt")
    assert (
        await trees.look(first, trees.base, proofs=(shows,), sandbox=("bwrap", ""))
        == MergeVerdict()
    )
    assert not outside.exists() and trees.set_ups == 0, "the box was none"
    await trees.look(first, trees.base, proofs=(shows,), sandbox=("none", ""))
    assert outside.exists() and trees.set_ups == 2
    await trees.look(first, trees.base, proofs=(shows,), sandbox=("bwrap", ""))
    assert kept_sandbox(RunFolder(trees.folder)) == ("bwrap", "")
    outside.unlink()
    trees.living.append("T-2")
    joined = trees.commit(first, "theirs.txt")
    assert await trees.tests().joined(joined, trees.base, first) == MergeVerdict()
    assert not outside.exists()
