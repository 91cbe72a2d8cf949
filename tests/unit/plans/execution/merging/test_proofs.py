"""What tasks have proven, and where that is kept."""

from __future__ import annotations

from pathlib import Path

from agentrunner.config.spec import Check
from agentrunner.plans.execution.merging.proofs import ProofBook, of_its_own, proofs_of
from agentrunner.state.run_state import CheckOutcome, Criterion
from tests.kit.merges import needs


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


def test_what_a_run_had_to_keep_for_others_is_not_its_own() -> None:
    others = needs("a").as_criterion()
    kept = Criterion(id="AC-2", description=others.description, check=others.check)
    mine = needs("a", "T-2")
    assert of_its_own([mine, type(mine)("T-2", kept)], [others]) == (mine,)


def test_proofs_are_kept_by_task_and_doubted_ones_apart(tmp_path: Path) -> None:
    book = ProofBook(tmp_path / "proofs")
    book.save("T-1", [needs("a")])
    doubted = needs("a", "T-2", 2)
    book.save("T-2", [needs("a", "T-2"), doubted], [doubted])
    assert book.of(["T-2", "T-3"]) == [needs("a", "T-2")]
    assert book.doubts("T-2") == (doubted,) and book.doubts("T-1") == book.doubts("T-3") == ()
    book.save("T-2", [needs("a", "T-2")])
    assert book.doubts("T-2") == ()
