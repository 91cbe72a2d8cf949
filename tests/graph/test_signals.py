"""Ctrl-C, TERM and HUP: an orderly stop wherever they come, and `resume` goes on from there."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from agentrunner.engine.queries import diff, undo
from agentrunner.storage.locks import run_lock
from agentrunner.storage.worker_ledger import RecordedEnd, StillRunning
from tests.kit.process import FILES, WORKER, Drill, done, until

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
SETUP = {"command": "sh hold.sh planning"}
PHASES = ["planning", "worker", "validation"]


@pytest.mark.series(4)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", SIGNALS, ids=[number.name for number in SIGNALS])
def test_a_signal_stops_in_order_and_resume_goes_on(
    tmp_path: Path, number: signal.Signals, phase: str
) -> None:
    with Drill.open(tmp_path, setup=SETUP) as drill:
        drill.hold(phase)
        process = drill.begin()
        drill.until_held(phase)
        process.send_signal(number)
        ended = done(process)
        assert ended.code == 128 + number, ended.stderr
        assert (ended.result["exit_code"], ended.result["reason"]) == (ended.code, "interrupted")
        drill.nothing_runs()
        assert "STOPPED" in drill.note()
        outcomes = [run.data["outcome"] for run in drill.logged("worker_run")]
        assert outcomes == {"planning": [], "worker": ["interrupted"]}.get(phase, ["completed"])
        # What a worker did is told although nothing has verified it yet.
        assert bool(ended.result["changed_files"]) == (phase == "validation")
        drill.let_go()
        result = drill.resume()
        assert (result["state"], result["exit_code"]) == ("COMPLETE", 0), result["text"]
        assert drill.starts == len(drill.logged("worker_run")) == (2 if phase == "worker" else 1)
        drill.nothing_runs()


def test_the_second_signal_ends_at_once_and_the_supervisor_ends_the_worker(tmp_path: Path) -> None:
    stubborn = f"trap '' TERM; {WORKER}"
    with Drill.open(tmp_path, worker=stubborn) as drill:
        drill.hold("worker")
        process = drill.begin()
        drill.until_held("worker")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        ended = done(process)
        assert ended.code in (128 + signal.SIGINT, 128 + signal.SIGTERM)
        assert f"The run is kept:  agentrunner resume {drill.run_id}" in ended.stderr
        assert time.monotonic() - began < 3
        assert drill.ledger.look("1-001") == StillRunning()
        until(
            lambda: isinstance(drill.ledger.look("1-001"), RecordedEnd), "the same stop is finished"
        )
        drill.nothing_runs()
        drill.let_go()
        assert drill.resume()["state"] == "COMPLETE"
        first = drill.logged("worker_run")[0]
        assert (first.key, first.data["outcome"]) == ("1-001", "interrupted")


def outlive(drill: Drill) -> None:
    """A run whose driver is killed while its worker works, and whose worker then ends by itself."""
    drill.hold("worker")
    process = drill.begin()
    drill.until_held("worker")
    process.kill()
    done(process)
    drill.let_go()
    until(lambda: isinstance(drill.ledger.look("1-001"), RecordedEnd), "the worker has ended")


@pytest.mark.whole
def test_a_cancel_after_a_kill_names_what_the_worker_did(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        outlive(drill)
        result = done(drill.command("cancel", drill.run_id)).result
        assert (result["reason"], result["changed_files"]) == ("cancelled", ["calc.py"])


@pytest.mark.whole
def test_the_time_of_a_worker_that_outlived_its_driver_counts(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        outlive(drill)
        path = drill.ledger.dir("1-001") / "result.json"
        told = json.loads(path.read_text())
        path.write_text(json.dumps({**told, "duration_sec": 100.0}))
        result = drill.resume()
        assert result["state"] == "COMPLETE" and 100 <= result["duration_sec"] < 160


@pytest.mark.whole
def test_a_run_whose_repository_is_gone_can_be_ended(tmp_path: Path) -> None:
    with Drill.open(tmp_path, runner={"approve": {"plan": "always"}}) as drill:
        assert drill.crash().code == 4
        drill.repo.rename(tmp_path / "elsewhere")
        refused = done(drill.command("resume", drill.run_id))
        assert (refused.code, refused.result["error"]["code"]) == (5, "repository-gone")
        ended = done(drill.command("cancel", drill.run_id))
        assert (ended.code, ended.result["reason"]) == (0, "cancelled"), ended.stderr
        assert not drill.repo.exists()
        (tmp_path / "elsewhere").rename(drill.repo)


def test_a_worker_may_save_its_work_when_the_run_is_stopped(tmp_path: Path) -> None:
    saves = "trap 'echo saved > saved.txt; exit 0' TERM; : > .work/held-worker; sleep 600 & wait"
    with Drill.open(tmp_path, worker=saves) as drill:
        process = drill.begin()
        drill.until_held("worker")
        process.send_signal(signal.SIGTERM)
        assert done(process).code == 143
        (run,) = drill.logged("worker_run")
        assert run.data["outcome"] == "interrupted"
        assert [change["path"] for change in run.data["changes"]] == ["saved.txt"]


def test_a_stopped_supervisor_is_given_up_at_the_host_s_own_deadline(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        drill.hold("worker")
        process = drill.begin()
        drill.until_held("worker")
        os.kill(drill.supervisor(), signal.SIGSTOP)
        process.kill()
        done(process)
        # As if its order had allowed it no time: whoever attaches now reads this limit.
        path = drill.ledger.dir("1-001") / "started.json"
        path.write_text(path.read_text().replace('"longest_sec": ', '"longest_sec": 1e-9, "was": '))
        drill.let_go()
        assert drill.resume()["state"] == "COMPLETE"
        runs = [(run.key, run.data["outcome"]) for run in drill.logged("worker_run")]
        assert runs == [("1-001", "lost"), ("1-001x1", "completed")]
        drill.nothing_runs()


def test_a_signal_before_anything_is_saved_leaves_nothing_running(tmp_path: Path) -> None:
    with Drill.open(tmp_path) as drill:
        process = drill.begin()
        until(lambda: (drill.state_dir / "runs").is_dir(), "the run has a folder")
        process.send_signal(signal.SIGINT)
        ended = done(process)
        assert ended.code == 128 + signal.SIGINT, ended.stderr
        assert "Traceback" not in ended.stderr
        until(lambda: run_lock(drill.folder).probe() is None, "its lock is free")
        drill.nothing_runs()
        assert drill.resume()["state"] == "COMPLETE"


def test_what_a_worker_did_that_died_with_its_supervisor_is_shown_and_undone(
    tmp_path: Path,
) -> None:
    edits = "echo broken > check.sh; : > .work/held-worker; sleep 600"
    with Drill.open(tmp_path, worker=edits) as drill:
        process = drill.begin()
        drill.until_held("worker")
        os.kill(drill.supervisor(), signal.SIGKILL)
        process.kill()
        done(process)
        drill.nothing_runs()
        assert "+broken" in diff(drill.state_dir, drill.run_id)
        assert undo(drill.state_dir, drill.run_id).files == ["check.sh"]
        assert drill.read("check.sh") == FILES["check.sh"]
        assert undo(drill.state_dir, drill.run_id).undo_taken_back
        assert drill.read("check.sh") == "broken\n"
