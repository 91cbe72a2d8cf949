"""What tasks have proven, and what of it a merge breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrunner.conductor.merged_tests import MergedTests
from agentrunner.conductor.proofs import Proof, ProofBook, Seen, newly_broken, proofs_of, told
from agentrunner.runs.workspace import CloneStore
from agentrunner.task.context import CheckOutcome, Criterion
from agentrunner.task.spec import Check
from tests.kit.project import Project, require_bwrap
from tests.unit.conductor.test_landing import AT, WHO


def proof(task_id: str = "T-1", **check: Any) -> Proof:
    asked = Check(**{"kind": "command", "run": "test -f a.txt", **check})
    return Proof(task_id, Criterion(id="AC-1", description="a is there", check=asked))


RED, GREEN = Seen(True, "no such file"), Seen(False)


@pytest.mark.parametrize(
    ("now", "before", "broken"),
    [(GREEN, None, False), (RED, None, True), (RED, GREEN, True), (RED, RED, False)],
)
def test_only_what_was_green_and_is_red_is_broken(
    now: Seen, before: Seen | None, broken: bool
) -> None:
    one = proof()
    was = {} if before is None else {one.key: before}
    found = newly_broken([one, proof("T-2")], {one.key: now}, was)
    assert found == ((one,) if broken else ())
    text = told(found, {one.key: now})
    assert bool(text) is broken
    if broken:
        for part in ("T-1 (AC-1)", "`test -f a.txt`", "no such file"):
            assert part in text


def test_a_run_proves_what_its_checks_passed_and_no_diff() -> None:
    kinds = {"green": "command", "red": "command", "diff": "diff"}
    criteria = [
        Criterion(id=name, description=name, check=Check(kind=kind, run="true"))
        for name, kind in kinds.items()
    ]
    checks = [
        CheckOutcome(criterion_id=name, what="x", outcome="failed" if name == "red" else "passed")
        for name in kinds
    ]
    assert [one.criterion.id for one in proofs_of("T-1", criteria, checks)] == ["green"]


def test_proofs_are_kept_by_task(tmp_path: Path) -> None:
    book = ProofBook(tmp_path / "proofs")
    book.save("T-1", [proof()])
    book.save("T-2", [proof("T-2")])
    assert book.of(["T-2", "T-3"]) == [proof("T-2")]


async def test_checks_of_landed_tasks_are_run_on_a_merged_tree(tmp_path: Path) -> None:
    require_bwrap()
    project = Project.make(tmp_path, {"b.txt": "one\n"})
    spec = project.spec(test=None, runner={"meta": {"kind": "checklist"}})
    clone = CloneStore(tmp_path / "clone.git", project.repo)
    base = clone.fetch()
    (tmp_path / "a.txt").touch()

    def commit(parent: str) -> str:
        at = {"author": WHO, "at": AT}
        return clone.commit(tmp_path, ["a.txt"], parents=(parent,), message="m", **at)  # type: ignore[arg-type]

    first = commit(base)
    (tmp_path / "a.txt").unlink()
    second = commit(first)
    living = ["T-1"]
    tests = MergedTests(
        clone,
        tmp_path / "merged",
        spec,
        state_dir=project.state_dir,
        environ={"HOME": "/nowhere"},
        living=lambda: living,
    )
    shell, reads = proof(), proof(kind="file", run="", path="a.txt", exists=True)
    assert await tests.broken(first, base, first, "T-1", [shell, reads]) == ((), "")
    broken, text = await tests.broken(second, first, second, "T-2", [])
    assert broken == (shell, reads) and "T-1 (AC-1)" in text and "a.txt does not exist" in text
    # Red before as well: not this one's doing.
    assert await tests.broken(second, second, second, "T-3", []) == ((), "")
    # What the task that lands has proven on its own work must hold on the merge.
    own = proof("T-4", run="! test -f b.txt || test -f a.txt")
    broken, _ = await tests.broken(second, second, first, "T-4", [own])
    assert broken == (own,)
    # A task that was taken out of the plan asks for nothing any more.
    living.clear()
    assert await tests.broken(second, first, second, "T-5", []) == ((), "")
    assert sorted(path.name for path in (tmp_path / "merged").iterdir()) == ["outcomes", "proofs"]
