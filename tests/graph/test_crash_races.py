"""Several processes want one run or one repository: one proceeds, the others are told who does."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.engine.queries import diff, show, undo
from agentrunner.engine.runs import cancel, resume
from agentrunner.errors import LockHeld
from agentrunner.execution.deps import Clock
from agentrunner.storage.locks import me, repository_lock
from agentrunner.storage.worker_ledger import RecordedEnd
from tests.kit.process import Drill, done, living, until


def killed_at_work(drill: Drill) -> None:
    """The runner is killed while the worker is held; its supervisor lives on."""
    drill.hold("worker")
    process = drill.begin()
    drill.until_held("worker")
    process.kill()
    assert done(process).code == -signal.SIGKILL


def shown(drill: Drill) -> str:
    """What `show` prints for a person."""
    given = ["show", drill.run_id, "--state-dir", str(drill.state_dir)]
    command = [sys.executable, "-m", "agentrunner", *given]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_of_two_runners_in_one_repository_one_is_told_who_the_other_is(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        drill.hold("worker")
        first = drill.begin()
        drill.until_held("worker")
        run_id = drill.run_id
        alias = tmp_path / "alias"
        alias.symlink_to(drill.repo)
        second = done(drill.command("run", "--set", f"task.repo={alias}", str(drill.task_file)))
        assert second.code == 5
        assert second.result["error"]["code"] == "busy"
        assert run_id in second.result["error"]["message"]
        assert drill.run_id == run_id  # the refused one left no folder
        drill.let_go()
        assert done(first).code == 0
        assert drill.starts == 1


def test_while_only_the_supervisor_lives_others_are_refused_and_resume_attaches(
    tmp_path: Path,
) -> None:
    with Drill.open(tmp_path) as drill:
        killed_at_work(drill)
        assert "still working" in shown(drill) and "agentrunner resume" in shown(drill)
        refused = done(drill.begin())
        assert (refused.code, refused.result["error"]["code"]) == (5, "busy")
        attached = drill.command("resume", drill.run_id)
        until(lambda: drill.events_of("run_resumed"), "resume has begun")
        refused = done(drill.begin())
        assert (refused.code, refused.result["error"]["code"]) == (5, "busy")
        drill.let_go()
        ended = done(attached)
        assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended.stderr
        assert drill.starts == 1
        assert [run.data["outcome"] for run in drill.logged("worker_run")] == ["completed"]
        drill.nothing_runs()
        assert "still working" not in shown(drill)


def test_what_a_worker_did_after_its_runner_was_killed_is_shown_and_put_back(
    tmp_path: Path,
) -> None:
    worker = "echo late > late.txt; sh hold.sh worker"
    with Drill.open(tmp_path, worker=worker) as drill:
        killed_at_work(drill)
        before = show(drill.state_dir, drill.run_id)
        assert (before.worker_runs, before.changed_files) == (1, [])
        assert "1 round" in shown(drill)
        drill.let_go()
        until(lambda: isinstance(drill.ledger.look("1-001"), RecordedEnd), "the worker has ended")
        after = show(drill.state_dir, drill.run_id)
        assert (after.worker_runs, after.changed_files, after.lines_added) == (1, ["late.txt"], 1)
        assert "+late" in diff(drill.state_dir, drill.run_id)
        assert undo(drill.state_dir, drill.run_id).files == ["late.txt"]
        assert not (drill.repo / "late.txt").exists()


def all_killed_at_work(drill: Drill) -> None:
    """Runner and supervisor are killed while the worker is held; the box dies with them."""
    killed_at_work(drill)
    os.kill(drill.supervisor(), signal.SIGKILL)
    drill.nothing_runs()


@pytest.mark.parametrize("rebooted", [False, True])
def test_runner_and_supervisor_killed_at_once_the_worker_dies_and_is_done_again(
    tmp_path: Path, rebooted: bool
) -> None:
    with Drill.open(tmp_path) as drill:
        all_killed_at_work(drill)
        if rebooted:  # the pids that were noted are somebody else's by now
            path = drill.ledger.dir("1-001") / "started.json"
            facts = json.loads(path.read_bytes())
            facts["boot_id"] = "another"
            facts["supervisor"]["pid"] = facts["worker"]["pid"] = os.getpid()
            path.write_text(json.dumps(facts))
        drill.let_go()
        assert drill.resume()["state"] == "COMPLETE"
        runs = [(run.key, run.data["outcome"]) for run in drill.logged("worker_run")]
        assert runs == [("1-001", "lost"), ("1-001x1", "completed")]
        assert drill.starts == 2


def test_a_supervisor_killed_under_a_living_runner_is_a_loss_and_one_new_try(
    tmp_path: Path,
) -> None:
    with Drill.open(tmp_path) as drill:
        drill.hold("worker")
        process = drill.begin()
        drill.until_held("worker")
        drill.let_go()
        os.kill(drill.supervisor(), signal.SIGKILL)
        ended = done(process)
        assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended.stderr
        outcomes = {run.key: run.data["outcome"] for run in drill.logged("worker_run")}
        assert outcomes in (
            {"1-001": "lost", "1-001x1": "completed"},
            {"1-001": "completed"},  # it was quicker than we
        )


@pytest.mark.parametrize("racers", [3])
def test_of_racing_resumes_exactly_one_proceeds(tmp_path: Path, racers: int) -> None:
    with Drill.open(tmp_path) as drill:
        killed_at_work(drill)
        racing = [drill.command("resume", drill.run_id) for _ in range(racers)]
        until(
            lambda: sum(process.poll() is not None for process in racing) == racers - 1,
            "all but one have given up",
        )
        drill.let_go()
        codes = sorted(done(process).code for process in racing)
        assert codes == [0, 5, 5]
        assert drill.starts == 1
        assert len(drill.events_of("run_resumed")) == 1
        drill.nothing_runs()


class LateClock(Clock):
    """Somebody else drives a whole attempt just before the run's lock is taken."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile: Callable[[], object] | None = meanwhile

    def stamp(self) -> str:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            thread = threading.Thread(target=meanwhile)
            thread.start()
            thread.join()
        return super().stamp()


@pytest.mark.whole
def test_a_resume_that_comes_late_does_not_repeat_an_attempt(tmp_path: Path) -> None:
    with Drill.open(tmp_path, worker="true", runner={"meta": {"max_loops": 0}}) as drill:
        assert drill.crash().result["state"] == "FAILED"
        late = replace(drill.options(), clock=LateClock(drill.resume))
        assert asyncio.run(resume(drill.run_id, late)).attempt == 3
        assert [event["attempt"] for event in drill.events_of("run_resumed")] == [2, 3]


def test_cancel_ends_a_live_run_its_worker_and_its_note(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        drill.hold("worker")
        process = drill.begin()
        drill.until_held("worker")
        cancelled = done(drill.command("cancel", drill.run_id))
        assert (cancelled.code, cancelled.result["state"]) == (0, "FAILED"), cancelled.stderr
        assert cancelled.result["reason"] == "cancelled"
        assert done(process).code == 143
        drill.nothing_runs()
        assert [run.data["outcome"] for run in drill.logged("worker_run")] == ["interrupted"]
        assert drill.starts == 1
        assert len(drill.logged("decision")) == 1
        assert "FAILED" in drill.note()


def test_cancel_of_a_run_whose_runner_is_dead_records_what_its_worker_did(tmp_path: Path) -> None:
    worker = "echo evil > check.sh; echo start >> .work/starts; sh hold.sh worker"
    with Drill.open(tmp_path, worker=worker) as drill:
        killed_at_work(drill)
        result = asyncio.run(cancel(drill.run_id, drill.options())).as_dict()
        assert (result["state"], result["reason"]) == ("FAILED", "cancelled")
        drill.nothing_runs()
        (run,) = drill.logged("worker_run")
        assert run.data["outcome"] == "interrupted"
        assert [change["path"] for change in run.data["changes"]] == ["check.sh"]
        assert drill.starts == 1


@pytest.mark.whole
def test_cancel_of_a_run_whose_worker_was_lost_starts_no_other(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        all_killed_at_work(drill)
        result = asyncio.run(cancel(drill.run_id, drill.options())).as_dict()
        assert (result["state"], result["reason"]) == ("FAILED", "cancelled")
        runs = [(run.key, run.data["outcome"]) for run in drill.logged("worker_run")]
        assert runs == [("1-001", "lost")]
        assert drill.starts == 1
        drill.nothing_runs()


@pytest.mark.whole
def test_a_new_plan_does_not_begin_beside_the_old_worker(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        killed_at_work(drill)
        text = drill.task_file.read_text(encoding="utf-8")
        drill.task_file.write_text(text.replace("Make it work.", "Make it work well."))
        result = asyncio.run(resume(drill.run_id, drill.options(), on_change="replan")).as_dict()
        assert (result["state"], result["attempt"]) == ("COMPLETE", 2)
        runs = [(run.key, run.data["outcome"]) for run in drill.logged("worker_run")]
        assert runs[0] == ("1-001", "interrupted")
        assert drill.starts == len(runs) == 2
        drill.nothing_runs()


def test_resume_of_a_run_is_refused_while_another_run_has_the_repository(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        all_killed_at_work(drill)
        lock = repository_lock(drill.state_dir, drill.repo)
        lock.acquire(me("other-0000", "2026-01-01T00:00:00Z"))
        with pytest.raises(LockHeld, match="other-0000"):
            drill.resume()
        lock.close()
        drill.let_go()
        assert drill.resume()["state"] == "COMPLETE"


def test_resume_ends_what_a_killed_runner_left_of_its_checks(tmp_path: Path) -> None:
    """Without a sandbox a check outlives its runner; a box may too, for the blink of an eye."""
    with Drill.open(tmp_path, sandbox="none") as drill:
        drill.hold("validation")
        process = drill.begin()
        drill.until_held("validation")
        process.kill()
        done(process)
        box = drill.folder.sandbox_dir
        stuck = subprocess.Popen(
            ["sh", "-c", "read x", "bwrap", "--die-with-parent", "--bind", box, box],
            stdin=subprocess.PIPE,
        )
        assert len(living(drill.place)) >= 2
        assert drill.resume()["state"] == "COMPLETE"
        assert stuck.wait(5) == -signal.SIGKILL
        assert stuck.stdin is not None
        stuck.stdin.close()
        drill.nothing_runs()


def test_a_run_can_be_named_as_soon_as_it_has_a_folder(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        process = drill.begin()
        until(lambda: any((drill.state_dir / "runs").glob("*/index.json")), "the run has a name")
        process.kill()
        done(process)
        ended = done(drill.command("resume", drill.run_id))
        assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended.stderr
