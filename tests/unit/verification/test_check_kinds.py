"""What has to know of every kind of check does: whoever adds one learns what is left to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.prd import describe_check
from agentrunner.config.rules import _NEEDS
from agentrunner.config.spec import Check, TestSpec
from agentrunner.protocol import CHECK_KINDS
from agentrunner.protocol.messages import CheckDraft
from agentrunner.verification.evidence.checks import is_executable

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "task-file.md"
FILLED = {
    "run": "true", "path": "a.txt", "file": "tests/test_a.py", "test_name": "test_a",
    "name": "test_a", "must_change": ["src/**"],
}  # fmt: skip


def test_a_planner_can_fill_what_a_task_file_can() -> None:
    assert set(CheckDraft.model_fields) == set(Check.model_fields)


@pytest.mark.parametrize("kind", CHECK_KINDS)
def test_every_kind_is_read_described_decided_and_explained(kind: str) -> None:
    check = Check.model_validate({"kind": kind, **FILLED})
    assert kind in _NEEDS or kind == "test", "config/rules.py: what it needs"
    assert describe_check(check) != "nothing to execute", "config/prd.py"
    assert is_executable(check, TestSpec(command="pytest")), "verification/evidence/checks.py"
    row = next(line for line in PAGE.read_text("utf-8").splitlines() if "`…check.kind`" in line)
    assert f"`{kind}`" in row
