"""The slips of a small model cost no run: what is clear is taken, and the note says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")


def test_a_folder_of_a_dot_and_a_model_for_a_worker_without_one_are_taken(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    check = {"kind": "command", "run": TEST, "cwd": ".", "timeout_sec": 0}
    criterion = {"id": "AC-1", "description": "add adds.", "check": check}
    order = work()
    order = json.loads(json.dumps(order).replace('"exec"', '"Exec", "model": "gpt-9"'))
    run.start([plan(criterion), order, finish(), assess()], FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    taken = [text for code, text in run.warnings() if code == "reply-taken"]
    assert len(taken) == 4, taken
    assert all(word in " ".join(taken) for word in ("cwd", "timeout_sec", "mode", "gpt-9"))
    assert "gpt-9" in run.note()


@pytest.mark.series(3)
@pytest.mark.parametrize(
    ("written", "notices"),
    [
        ("fast", []),
        ("Fast", ["'fast'"]),
        ("command", ["'command' is taken as 'fast'"]),
        ("Command", ["taken as 'command'", "'command' is taken as 'fast'"]),
    ],
)
def test_another_spelling_or_a_kind_for_a_workers_name_is_noticed(
    tmp_path: Path, written: str, notices: list[str]
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    criterion = {"id": "AC-1", "description": "add adds.", "check": {"kind": "test"}}
    workers = [
        {"name": name, "kind": "command", "command": ["sh", "-c", FIX]} for name in ("fast", "slow")
    ]
    steps = [plan(criterion), work(worker=written), finish(), assess()]
    run.start(steps, FIX, test=TEST, runner={"workers": workers, "worker": None})
    assert run.ending == ("COMPLETE", "complete", 0)
    found = [text for code, text in run.warnings() if code == "reply-taken"]
    assert len(found) == len(notices)
    assert all(words in text for words, text in zip(notices, sorted(found), strict=True)), found


def test_a_plan_that_demands_nothing_demands_all_of_it(tmp_path: Path) -> None:
    """A small model called both of its criteria optional; then any work at all would complete."""
    run = Run(Project.make(tmp_path, SMALL))
    wish = {"id": "AC-1", "description": "add adds.", "critical": False, "check": {"kind": "test"}}
    run.start([plan(wish), work(), finish(), assess()], FIX, test=TEST)
    assert [one["critical"] for one in run.result["acceptance_criteria"]] == [True]
    assert "no criterion is critical" in " ".join(text for _, text in run.warnings())
