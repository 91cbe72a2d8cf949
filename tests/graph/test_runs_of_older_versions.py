"""A run that an older version began: what was before it is measured anew, and that is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentrunner.engine.queries import diff, show, undo
from agentrunner.errors.runs import BaselineGone
from tests.kit.metas import assess, consult, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run


@pytest.fixture
def waiting(tmp_path: Path) -> Run:
    """A run that waits for an answer, without the copy of ignored files that older ones lack."""
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), consult("Which one?"), work(), finish(), assess()], FIX, test=TEST)
    assert run.kind == "ask_human"
    shutil.rmtree(run.folder.root / "sealed")
    return run


def test_its_baseline_is_measured_anew_and_the_run_goes_on(waiting: Run) -> None:
    waiting.answer("This.")
    assert waiting.ending == ("COMPLETE", "complete", 0)
    (criterion,) = waiting.result["acceptance_criteria"]
    assert criterion["grade"] == "proven"
    anew = "This run was begun by an older version: what was before it is measured anew."
    assert ("baseline-renewed", anew) in waiting.warnings()


def test_where_what_it_kept_is_gone_it_is_shown_and_not_resumed_and_that_is_said(
    tmp_path: Path,
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    script = [plan(), work(), consult("Which one?"), finish(), assess()]
    run.start(script, FIX, test=TEST)
    shutil.rmtree(run.folder.root / "sealed")
    objects = run.folder.root / "snapshots" / "objects"
    shutil.rmtree(objects)
    objects.mkdir()
    with pytest.raises(BaselineGone) as refused:
        run.answer("This.")
    said = refused.value
    assert "begun by an older version" in said.message
    assert "is shown, and not resumed" in said.message and f"show {run.id}" in said.remedy
    assert said.exit_code == 5
    assert show(run.project.state_dir, run.id).state == "VALIDATING"


def test_it_is_shown_and_undone_as_any_other(waiting: Run) -> None:
    state = waiting.project.state_dir
    assert show(state, waiting.id).waiting is not None
    assert diff(state, waiting.id) == ""
    assert undo(state, waiting.id)["files"] == []
