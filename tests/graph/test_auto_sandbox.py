"""`auto`: the first box in which the baseline starts; said, and kept when the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.bwrap import require_bwrap
from tests.kit.docker import IMAGE, require_docker
from tests.kit.metas import assess, consult, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

AUTO = {"worker": {"docker_image": IMAGE}, "sandbox": {"kind": "auto", "read_paths": ["/usr"]}}
NOT_IN_DOCKER = f"if [ -e /.dockerenv ]; then exit 127; fi; {TEST}"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    require_docker()
    require_bwrap()
    return Run(Project.make(tmp_path, SMALL))


def boxes(run: Run) -> list[str]:
    """What the header of each step says about the box."""
    events = run.project.events
    return [e["header"]["box"] for e in events if e["event"] in ("run_started", "run_resumed")]


SCRIPT = [plan(), consult("Which?"), work(), finish(), assess()]


def test_docker_comes_first(run: Run) -> None:
    run.start(SCRIPT, f"test -e /.dockerenv && {FIX}", test=TEST, runner=AUTO)
    run.answer("This.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert all("Docker" in box and "sha256:" in box for box in boxes(run)), boxes(run)
    assert IMAGE in boxes(run)[0]


def test_an_image_in_which_the_tests_do_not_start_is_passed_over(run: Run) -> None:
    worker = f"test ! -e /.dockerenv && {FIX}"
    run.start(SCRIPT, worker, test=NOT_IN_DOCKER, runner=AUTO)
    assert run.kind == "ask_human"
    (told,) = [message for code, message in run.warnings() if code == "box-changed"]
    assert "cannot start in the sandbox" in told and "bwrap" in told
    assert told in run.note()
    run.answer("This.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "Docker" in boxes(run)[0] and "bwrap" in boxes(run)[1], boxes(run)


def test_without_the_image_it_is_bwrap_and_stays_so(run: Run) -> None:
    nowhere = {**AUTO, "worker": {"docker_image": "registry.invalid/none:1"}}
    run.start(SCRIPT, FIX, test=TEST, runner=nowhere)
    assert "bwrap" in boxes(run)[0] and "registry.invalid/none:1" in boxes(run)[0]
    run.answer("This.")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "bwrap" in boxes(run)[1]
