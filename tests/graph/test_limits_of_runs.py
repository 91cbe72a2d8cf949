"""A worker that takes too much, in whole runs: ended, named for it, told to the planner."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.kit.bwrap import require_bwrap
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.metas import assess, finish, plan, work
from tests.kit.process import living
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

HOG = "python3 -c 'import time; x = b\"x\" * (1 << 30); time.sleep(1000)'"
BOMB = "python3 -c 'import os, time\nfor _ in range(300): os.fork() or time.sleep(1000)'"


@pytest.fixture(params=["bwrap", "docker"])
def box(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    name: str = request.param
    if name == "docker":
        require_docker()
        return IN_DOCKER
    require_bwrap()
    return {"worker": {}, "sandbox": {"kind": "bwrap"}}


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("limit", "greedy", "outcome"),
    [
        ({"memory": "64m"}, HOG, "oom"),
        ({"disk": "20m"}, "head -c 300M /dev/zero > big; sleep 1000", "disk_limit"),
    ],
    ids=["memory", "disk"],
)
def test_who_takes_too_much_is_ended_and_the_planner_is_told(
    tmp_path: Path,
    box: dict[str, dict[str, Any]],
    limit: dict[str, str],
    greedy: str,
    outcome: str,
) -> None:
    """The second round does it right, in a box that is as good as new."""
    run = Run(Project.make(tmp_path, SMALL))
    worker = f'case "$(cat)" in *gently*) rm -f big; {FIX};; *) {greedy};; esac'
    began = time.monotonic()
    run.start(
        [plan(), work(), work("Do it gently."), finish(), assess()],
        worker,
        test=TEST,
        runner={**box, "sandbox": {**box["sandbox"], **limit}},
    )
    assert [record.data["outcome"] for record in run.log("worker_run")] == [outcome, "completed"]
    assert outcome in run.prompt(2)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert outcome in run.note()
    assert time.monotonic() - began < 30
    assert living(tmp_path) == {}


@pytest.mark.series(2)
def test_a_huge_file_with_nothing_in_it_holds_nothing_up(
    tmp_path: Path, box: dict[str, dict[str, Any]]
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    began = time.monotonic()
    runner = {**box, "meta": {"max_loops": 0}}
    script = [plan(), work(), finish(), assess()]
    run.start(script, f"{FIX}; truncate -s 10G big", test=TEST, runner=runner)
    # It is not kept, so what was verified could not be handed over again.
    assert run.ending[0] == "NEEDS_REVIEW" and "big" in " ".join(run.result["missing"])
    assert time.monotonic() - began < 30
    state = sum(path.stat().st_size for path in run.project.state_dir.rglob("*") if path.is_file())
    assert state < 64 << 20


def test_a_bomb_of_processes_meets_its_limit_and_is_gone(
    tmp_path: Path, box: dict[str, dict[str, Any]]
) -> None:
    run = Run(Project.make(tmp_path, SMALL))
    run.start(
        [plan(), work(), finish(), assess()],
        f"{FIX}; ({BOMB}) 2> said",
        test=TEST,
        runner={**box, "sandbox": {**box["sandbox"], "pids": 40}},
    )
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "BlockingIOError" in run.project.read("said")
    assert living(tmp_path) == {}
