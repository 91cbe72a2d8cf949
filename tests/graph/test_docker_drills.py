"""Runs on Docker that are stopped from outside: by a signal, by a full disk."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrunner.sandboxes.docker.owners import RUN
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.missing import missing
from tests.kit.process import WORKER, Drill, done

SAVES = f"trap 'echo saved > .work/saved; exit 0' TERM; ({WORKER}) & wait"


@pytest.fixture(autouse=True)
def _engine() -> None:
    require_docker()


def test_a_signal_stops_in_order_and_resume_goes_on(tmp_path: Path) -> None:
    """T22: the worker may save its work; then nothing is left of its box."""
    with Drill.open(tmp_path, sandbox="docker", worker=SAVES, runner=IN_DOCKER) as drill:
        drill.hold("worker")
        process = drill.begin()
        drill.until_held("worker")
        assert containers(drill.run_id) != ""
        process.send_signal(signal.SIGINT)
        ended = done(process)
        assert (ended.code, ended.result["reason"]) == (130, "interrupted"), ended
        assert (drill.work / "saved").read_text() == "saved\n"
        drill.nothing_runs()
        assert containers(drill.run_id) == ""
        drill.let_go()
        ended = done(drill.command("resume", drill.run_id))
        assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended
        outcomes = [record.data["outcome"] for record in drill.logged("worker_run")]
        assert outcomes == ["interrupted", "completed"]
        drill.nothing_runs()
    assert containers(drill.run_id) == ""


def containers(run_id: str) -> str:
    """Those of a run, whatever they do."""
    command = ["docker", "ps", "-aq", "--filter", f"label={RUN}={run_id}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A state folder of 4 MiB. Not in a namespace of its own: the engine has to see it."""
    place = tmp_path / "state"
    place.mkdir()
    if os.geteuid() != 0:
        missing("only root can mount a small disk")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        missing(f"no mounts here: {mounted.stderr.decode()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_full_state_folder_stops_the_run_and_room_lets_it_go_on(
    tmp_path: Path, small_disk: Path
) -> None:
    with Drill.open(tmp_path, sandbox="docker", runner=IN_DOCKER) as drill:
        drill.hold("worker")
        process = drill.begin()
        drill.until_held("worker")
        filler = small_disk / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}"], capture_output=True, check=False)
        drill.let_go()
        ended = done(process)
        assert ended.code == 5 and ended.result["error"]["code"] == "disk-full", ended
        filler.unlink()
        ended = done(drill.command("resume", drill.run_id))
        assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended
        assert drill.starts == 1
        drill.nothing_runs()
