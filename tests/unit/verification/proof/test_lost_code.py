"""A refusal that is put back: what tests say then."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.inspection.restored_lines import LostCode
from agentrunner.verification.proof import change_alone
from agentrunner.verification.proof.case import Case
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.syntax.edits import Edit
from tests.kit.examinations import Scripted

TARGET = Target("test", "pytest", timeout_sec=60)
GREEN, RED = (Results("pytest", (TestResult("test_a", one),)) for one in ("passed", "failed"))
UNBUILT = Results("pytest", ())


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        (GREEN, GREEN, True),
        (RED, RED, False),
        (None, None, False),
        (UNBUILT, UNBUILT, False),
        (None, GREEN, True),
        (RED, None, False),
    ],
    ids=["green", "red", "not built", "no test", "built as a whole", "red, then not built"],
)
async def test_only_what_is_seen_green_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, first: Results | None, second: Results | None, asked: bool
) -> None:
    runs = {"1": first, "2": second}

    def answer(tree: str, only: Sequence[str]) -> Measured:
        assert only == ["test_a"]
        ran = cast("Any", SimpleNamespace(exit_code=0, timed_out=False))
        return Measured(TARGET, ran, runs[tree])

    restored = ((Edit(0, 0, "1"),), (Edit(0, 0, "2"),))
    lost = LostCode("refuses nothing", "Bad", "a.py", restored)
    monkeypatch.setattr(change_alone, "_trees", lambda exam, cases: None)
    monkeypatch.setattr(change_alone, "lost_refusals", lambda trees, wanted: [lost])
    monkeypatch.setattr(change_alone, "with_edits", lambda of, new, edits: edits["a.py"][0].text)
    exam = Scripted.of(answer, verifier=None, differential=None)
    case = Case(TARGET, None, was_red=True, now=GREEN)
    found = await change_alone.lost_code(exam, [case], "")
    assert bool(found) is asked
