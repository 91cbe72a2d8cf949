"""Landing: one commit, merged; refused with evidence; done again, it changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentrunner.config.spec import Check
from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution.merging.merge_queue import (
    MAX_EVIDENCE,
    MergeConflict,
    Merged,
    TaskWork,
    TestsRed,
    merge_work,
)
from agentrunner.plans.execution.merging.merge_verdict import MergeCandidate, MergeVerdict
from agentrunner.plans.execution.merging.proofs import ProvenCriterion
from agentrunner.results import Result
from agentrunner.state.run_state import Criterion
from agentrunner.storage.failpoints import FailPointReached
from tests.kit.merges import Tests
from tests.kit.repository import AT, WHO, committed

BRANCH = "plan"


@dataclass
class Bench:
    """A clone with a plan's branch, and work trees on it."""

    clone: CloneStore
    place: Path
    made: int = 0

    @property
    def head(self) -> str:
        return self.clone.resolve(f"refs/heads/{BRANCH}")

    def work(self, files: dict[str, str], start: str = "", **result: Any) -> TaskWork:
        """A task's work from the plan's head, or from another commit."""
        self.made += 1
        folder = self.place / f"w{self.made}"
        start = start or self.head
        self.clone.check_out(folder, start)
        for name, text in files.items():
            (folder / name).write_text(text)
        fields = {"changed_files": sorted(files), "proof": ["it was red"], **result}
        ended = Result(exit_code=0, run_id=f"r{self.made}").model_copy(update=fields)
        title = f"Task {self.made}"
        return TaskWork(f"T-{self.made}", title, folder, start, (start,), ended)

    async def merge(
        self, work: TaskWork, tests: Tests | None = None
    ) -> Merged | MergeConflict | TestsRed:
        tests = tests or Tests()
        return await merge_work(self.clone, BRANCH, work, author=WHO, at=AT, tests=tests)

    def show(self, *words: str) -> str:
        return self.clone.git.run(*words).decode()

    def second(
        self, first: TaskWork, refused: MergeConflict | TestsRed, files: dict[str, str]
    ) -> TaskWork:
        """The same task's second round, on the merge that was refused."""
        start = self.clone.commit_tree(
            refused.tree, parents=(refused.head,), message="m\n", author=WHO, at=AT
        )
        work = self.work(files, start)
        return replace(work, task_id=first.task_id, parents=(refused.head,))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    repo = committed(tmp_path / "shop", {"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"})
    clone = CloneStore(tmp_path / "clone.git", repo)
    clone.branch(BRANCH, clone.fetch())
    return Bench(clone, tmp_path)


async def test_first_work_is_the_new_head_and_later_work_is_merged(bench: Bench) -> None:
    first, second = bench.work({"a.txt": "1\n"}), bench.work({"c.txt": "c\n"})
    landed = await bench.merge(first)
    assert isinstance(landed, Merged) and landed.commit == bench.head
    assert bench.show("log", "-1", "--format=%an <%ae> %aI|%B", bench.head).strip() == (
        "Hana <hana@example.org> 2026-01-01T00:00:00+00:00|"
        "Task 1\n\n- it was red\n\nTask: T-1\nRun: r1"
    )
    await bench.merge(second)
    parents = bench.show("log", "-1", "--format=%P", bench.head).split()
    assert parents[0] == landed.commit and len(parents) == 2
    assert bench.show("show", f"{bench.head}:a.txt") == "1\n"
    assert bench.show("show", f"{bench.head}:c.txt") == "c\n"


async def test_only_what_the_run_changed_is_committed(bench: Bench) -> None:
    work = bench.work({"a.txt": "1\n"})
    (work.folder / "report.xml").write_text("of the tests")
    (work.folder / "b.txt").unlink()
    await bench.merge(work)
    assert bench.show("ls-tree", "--name-only", bench.head).split() == ["a.txt", "b.txt"]
    await bench.merge(replace(bench.work({}), paths=("b.txt",), folder=work.folder))
    assert bench.show("ls-tree", "--name-only", bench.head).split() == ["a.txt"]


async def test_a_conflict_comes_back_with_its_hunks_and_is_mended_by_a_second_round(
    bench: Bench,
) -> None:
    first, second = bench.work({"a.txt": "ONE\n"}), bench.work({"a.txt": "uno\n"})
    await bench.merge(first)
    head = bench.head
    refused = await bench.merge(second)
    assert isinstance(refused, MergeConflict) and bench.head == head == refused.head
    assert "a.txt" in refused.evidence and "ONE" in refused.evidence and "uno" in refused.evidence
    lazy = bench.second(second, refused, {"c.txt": "something else\n"})
    again = await bench.merge(lazy)
    assert isinstance(again, MergeConflict) and "still in a.txt" in again.evidence
    assert bench.head == head
    mended = bench.second(second, refused, {"a.txt": "ONE uno\n"})
    assert isinstance(await bench.merge(mended), Merged)
    assert bench.show("show", f"{bench.head}:a.txt") == "ONE uno\n"
    assert bench.show("log", "-1", "--format=%P", bench.head).split() == [head]


@pytest.mark.parametrize("stuck", [False, True])
async def test_what_no_run_could_begin_on_is_done_anew_on_the_head(
    bench: Bench, stuck: bool
) -> None:
    """Else the round that is to mend it would only meet a set-up that fails."""
    first, second = bench.work({"a.txt": "ONE\n"}), bench.work({"a.txt": "uno\n"})
    third, tests = bench.work({"c.txt": "c\n"}), Tests(["the set-up fails"], stuck=stuck)
    await bench.merge(first)
    conflict, red = await bench.merge(second, tests), await bench.merge(third, tests)
    assert isinstance(conflict, MergeConflict) and isinstance(red, TestsRed)
    head = bench.clone.tree_of(bench.head)
    for refused, patch in ((conflict, "+uno"), (red, "+c")):
        assert (refused.tree == head) is stuck
        assert (patch in refused.evidence and "Do it anew" in refused.evidence) is stuck
    assert "the set-up fails" in red.evidence
    assert ("a.txt, and the set-up command fails" in conflict.evidence) is stuck
    again = bench.second(second, conflict, {"a.txt": "ONE uno\n"})
    assert isinstance(await bench.merge(again), Merged)


async def test_a_file_that_one_side_deleted_is_told_of(bench: Bench) -> None:
    first, second = bench.work({"b.txt": "more\n"}), bench.work({})
    (second.folder / "b.txt").unlink()
    second = replace(second, paths=("b.txt",))
    await bench.merge(first)
    refused = await bench.merge(second)
    assert isinstance(refused, MergeConflict) and "b.txt: one side changed it" in refused.evidence


async def test_evidence_is_bounded(bench: Bench) -> None:
    lines = range(3000)
    first = bench.work({"a.txt": "".join(f"ours {n}\n" for n in lines)})
    second = bench.work({"a.txt": "".join(f"theirs {n}\n" for n in lines)})
    await bench.merge(first)
    refused = await bench.merge(second)
    assert isinstance(refused, MergeConflict) and len(refused.evidence) <= MAX_EVIDENCE + 100
    refused = await bench.merge(second, Tests(stuck=True))
    assert isinstance(refused, MergeConflict) and len(refused.evidence) <= MAX_EVIDENCE + 100
    assert "more of the kind" in refused.evidence


async def test_tests_decide_before_the_branch_moves(bench: Bench) -> None:
    head, tests = bench.head, Tests(["two tests fail"])
    counts = {"passed": 2, "failed": 0, "baseline_passed": 3, "baseline_failed": 1}
    work = bench.work({"a.txt": "1\n"}, test=SimpleNamespace(**counts))
    refused = await bench.merge(work, tests)
    assert isinstance(refused, TestsRed) and refused.evidence == "two tests fail"
    assert bench.head == head
    landed = await bench.merge(work, tests)
    assert isinstance(landed, Merged)
    assert (
        tests.asked
        == [MergeCandidate(landed.commit, head, landed.commit, work.task_id, removed=2)] * 2
    )


async def test_another_landing_in_between_is_tested_with_as_well(bench: Bench) -> None:
    other, work = bench.work({"c.txt": "c\n"}), bench.work({"a.txt": "1\n"})

    class Slow(Tests):
        async def examine(self, candidate: MergeCandidate) -> MergeVerdict:
            if not self.asked:
                await bench.merge(other)
            return await super().examine(candidate)

    tests = Slow()
    landed = await bench.merge(work, tests)
    assert isinstance(landed, Merged) and landed.commit == bench.head
    first, second = tests.asked
    assert (first.commit, second.commit) == (first.mine, bench.head)
    assert (second.mine, second.before) == (first.mine, bench.show("rev-parse", "plan^1").strip())
    assert bench.show("show", f"{bench.head}:c.txt") == "c\n"


@pytest.mark.parametrize("point", ["landing_before_move", "landing_after_move"])
async def test_a_landing_that_was_cut_short_is_done_once(
    bench: Bench, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    works: Sequence[TaskWork] = [bench.work({"a.txt": "1\n"}), bench.work({"c.txt": "c\n"})]
    for work in works:
        with monkeypatch.context() as patch:
            patch.setenv("AGENTRUNNER_TEST", "1")
            patch.setenv("AGENTRUNNER_FAILPOINT", f"{point}:raise")
            with pytest.raises(FailPointReached):
                await bench.merge(work)
        landed = await bench.merge(work)
        assert isinstance(landed, Merged) and landed.commit == bench.head
        assert await bench.merge(work) == landed
    # Two commits of work, one merge, and the first one.
    assert bench.show("rev-list", "--count", bench.head).strip() == "4"


async def test_work_that_changed_nothing_moves_nothing(bench: Bench) -> None:
    head, tests = bench.head, Tests(["its own check is red"])
    work = bench.work({})
    refused = await bench.merge(work, tests)
    assert isinstance(refused, TestsRed) and tests.asked[0].commit == head
    assert await bench.merge(work, tests) == Merged(head)
    assert bench.head == head


async def test_what_is_doubted_is_told_of_work_that_landed_before_as_well(bench: Bench) -> None:
    """A process that was killed right after the branch moved had no time to tell it."""
    check = Check(kind="command", run="true")
    doubt = ProvenCriterion("T-1", Criterion(id="AC-1", description="it is done", check=check))
    work, tests = bench.work({"a.txt": "1\n"}), Tests(doubted=(doubt,))
    landed = await bench.merge(work, tests)
    assert isinstance(landed, Merged) and landed.doubts == (doubt,)
    assert await bench.merge(work, tests) == landed
    assert len(tests.asked) == 1
