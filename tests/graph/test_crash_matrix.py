"""kill -9 of AgentRunner and of the supervisor at every fail-point; `resume` ends it right."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrunner.storage.events import read_events
from agentrunner.storage.failpoints import IN_RUNNER, IN_SUPERVISOR
from agentrunner.storage.worker_ledger import NotExecuted
from tests.kit.process import FILES, Drill, at_point
from tests.kit.project import BROKEN, PYTEST

Notes = Callable[[str], str]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    """The note of a run that nothing happens to, by sandbox."""
    known: dict[str, str] = {}

    def note(sandbox: str) -> str:
        if sandbox not in known:
            with Drill.open(tmp_path_factory.mktemp("undisturbed"), sandbox=sandbox) as drill:
                ended = drill.crash()
                assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended.stderr
                assert drill.starts == 1
                known[sandbox] = drill.note()
        return known[sandbox]

    return note


def once_or_lost(drill: Drill, lost: int) -> None:
    """Every worker run was started once; `lost` of them came to nothing and have a successor."""
    runs = drill.logged("worker_run")
    ids = [run.key for run in runs]
    assert len(ids) == len(set(ids))
    outcomes = [run.data["outcome"] for run in runs]
    assert outcomes.count("lost") + outcomes.count("infra") == lost
    assert outcomes[-1] == "completed" or lost
    started = [name for name in ids if drill.ledger.started(name)]
    assert drill.starts <= len(started)
    assert set(ids) >= {folder.name for folder in drill.folder.workers_dir.iterdir()}


RUNNER_CASES = [(point, "bwrap") for point in IN_RUNNER] + [
    (point, "none")
    for point in ("after_claim", "mid_spec", "mid_work", "after_finish", "before_proof")
]


@pytest.mark.series(4)
@pytest.mark.parametrize(("point", "sandbox"), RUNNER_CASES)
def test_a_killed_runner_goes_on_where_it_was(
    tmp_path: Path, undisturbed: Notes, point: str, sandbox: str
) -> None:
    with Drill.open(tmp_path, sandbox=sandbox) as drill:
        assert drill.crash(**at_point(point)).code == -signal.SIGKILL
        result = drill.resume()
        assert (result["state"], result["exit_code"]) == ("COMPLETE", 0), result["text"]
        once_or_lost(drill, lost=0)
        assert drill.starts == 1
        assert drill.note() == undisturbed(sandbox)
        drill.nothing_runs()


def test_what_a_person_writes_before_a_killed_run_goes_on_stays_theirs(tmp_path: Path) -> None:
    with Drill.open(tmp_path, sandbox="none") as drill:
        assert drill.crash(**at_point("after_finish")).code == -signal.SIGKILL
        (drill.repo / "mine.txt").write_text("by hand\n")
        assert drill.resume()["state"] == "COMPLETE"
        (edit,) = drill.logged("human_edit")
        assert edit.data["paths"] == ["mine.txt"]


@pytest.mark.series(3)
@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
@pytest.mark.parametrize("point", IN_SUPERVISOR)
def test_a_killed_supervisor_is_a_recorded_loss_and_never_a_third_blind_try(
    tmp_path: Path, point: str, sandbox: str
) -> None:
    with Drill.open(tmp_path, sandbox=sandbox) as drill:
        ended = drill.crash(**at_point(point))  # every supervisor dies there
        done_its_work = point in ("supervisor_after_worker", "supervisor_before_result")
        if sandbox == "none" and done_its_work:
            # Nobody starts it again; what it did is looked at, and is enough.
            assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended.stderr
            assert drill.starts == 1
        else:
            assert (ended.code, ended.result["error"]["code"]) == (5, "worker-lost"), ended.stderr
            assert drill.resume()["state"] == "COMPLETE"
        runs = drill.logged("worker_run")
        assert runs[0].data["outcome"] == ("infra" if _never(drill) else "lost")
        ids = [run.key for run in runs]
        assert len(ids) == len(set(ids)) and drill.starts <= len(ids)
        assert {folder.name for folder in drill.folder.workers_dir.iterdir()} <= set(ids)
        drill.nothing_runs()


def _never(drill: Drill) -> bool:
    return drill.ledger.look("1-001") == NotExecuted()


def test_a_run_that_keeps_nothing_keeps_what_resume_needs_until_its_end(tmp_path: Path) -> None:
    with Drill.open(tmp_path, runner={"retention_days": 0}) as drill:
        assert drill.crash(**at_point("during_note")).code == -signal.SIGKILL
        assert drill.resume()["state"] == "COMPLETE"
        assert list((drill.state_dir / "runs").iterdir()) == []
        assert "COMPLETE" in drill.read(".agent-runner/task-probe.md")


NAMED = {"files": FILES | BROKEN, "test": PYTEST}


@pytest.mark.parametrize("task", [{}, NAMED], ids=["by its exit code", "by names"])
def test_a_killed_examination_repeats_no_run_that_has_ended(
    tmp_path: Path, task: dict[str, Any]
) -> None:
    with Drill.open(tmp_path, sandbox="none", **task) as drill:
        assert drill.crash(**at_point("after_proof")).code == -signal.SIGKILL
        kept = list((drill.folder.root / "proof").rglob("*.json"))
        before = _awaited(drill)
        assert len(kept) > 1 and before.count("once more") == 1
        assert drill.resume()["state"] == "COMPLETE"
        assert [why for why in _awaited(drill)[len(before) :] if why] == []
        assert list((drill.folder.root / "proof").iterdir()) == []


def _awaited(drill: Drill) -> list[str]:
    """Why each command ran that was waited for; "" for the first run on a tree."""
    events = read_events(drill.folder.events_file)
    return [str(one.get("why") or "") for one in events if one["event"] == "awaiting"]


def test_every_fail_point_is_in_the_matrix() -> None:
    assert {point for point, _ in RUNNER_CASES} == set(IN_RUNNER)
