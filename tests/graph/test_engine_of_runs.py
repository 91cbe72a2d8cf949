"""Whole runs on an engine that dies, hangs or lacks the image: exit code 5, and they go on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.attempt_run import Options
from agentrunner.errors import SandboxUnavailable, UsageError
from agentrunner.sandboxes.base import SandboxError
from agentrunner.sandboxes.docker import engine as engine_room
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.fake_engine import BODIES, fake_engine
from tests.kit.metas import assess, finish, plan, work
from tests.kit.own_engine import OwnEngine, own_engine
from tests.kit.process import Drill, done
from tests.kit.runs import FIX, TEST, Run

SCRIPT = [plan(), work(), finish(), assess()]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnEngine]:
    with own_engine(tmp_path_factory.mktemp("own")) as engine:
        yield engine


def on(run: Run, address: str) -> None:
    """Which engine the run has."""
    run.environ = {**os.environ, "DOCKER_HOST": address}


# -- an engine that goes away ----------------------------------------------------------------------


def test_an_engine_that_dies_stops_the_run_and_the_next_one_goes_on(
    own: OwnEngine, tmp_path: Path
) -> None:
    with Drill.open(tmp_path, sandbox="docker", runner=IN_DOCKER) as drill:
        drill.hold("worker")
        process = drill.begin(DOCKER_HOST=own.address)
        drill.until_held("worker")
        own.signal(signal.SIGKILL)
        ended = done(process)
        assert ended.code == 5, ended
        assert ended.result["state"] not in ("COMPLETE", "FAILED"), ended
        assert own.address in ended.stderr
        drill.nothing_runs()
        own.script("up")
        drill.let_go()
        ended = done(drill.command("resume", drill.run_id, DOCKER_HOST=own.address))
        assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended
        *lost, last = [record.data["outcome"] for record in drill.logged("worker_run")]
        assert set(lost) == {"infra"} and last == "completed"
        drill.nothing_runs()


def test_an_engine_that_hangs_stops_the_run_and_it_goes_on_later(
    own: OwnEngine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the worker is done: while its work is checked."""
    monkeypatch.setattr(engine_room, "PATIENCE_SEC", 1.0)  # for how long: test_docker_faults.py
    on(run, own.address)
    hangs = at("worker_finished", lambda: own.signal(signal.SIGSTOP))
    try:
        run.adjust = hangs
        with pytest.raises(SandboxError, match="hangs") as caught:
            run.start(SCRIPT, FIX, test=TEST, runner=IN_DOCKER)
        assert caught.value.exit_code == 5
    finally:
        own.signal(signal.SIGCONT)
    run.adjust = lambda options: options
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    assert len(run.log("worker_run")) == 1


def at(event: str, do: Callable[[], None]) -> Callable[[Options], Options]:
    """Options that let something happen as soon as this is told."""

    def adjusted(options: Options) -> Options:
        def told(line: dict[str, Any]) -> None:
            options.on_event(line)
            if line["event"] == event:
                do()

        return replace(options, on_event=told)

    return adjusted


def test_an_engine_that_never_answers_is_told_before_anything_is_spent(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_room, "PATIENCE_SEC", 0.3)
    with fake_engine(run.project.state_dir.parent / "e.sock", all="silence") as engine:
        on(run, engine.address)
        with pytest.raises(SandboxUnavailable) as caught:
            run.start(SCRIPT, FIX, test=TEST, runner=IN_DOCKER)
    assert caught.value.exit_code == 5
    assert engine.address in caught.value.message and "did not answer" in caught.value.message
    assert nothing_was_done(run)


def nothing_was_done(run: Run) -> bool:
    """No run is there that could be resumed, no note, no lock, and the repository is as it was."""
    runs = run.project.state_dir / "runs"
    return not (runs.is_dir() and list(runs.iterdir())) and run.project.git("status", "-s") == ""


# -- images ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pull", [None, "never"])
def test_an_image_that_is_not_there_is_told_with_the_command(run: Run, pull: str | None) -> None:
    require_docker()
    box = {**IN_DOCKER["sandbox"], **({"pull": pull} if pull else {})}
    worker = {"docker_image": "registry.invalid/none:1"}
    with pytest.raises(SandboxUnavailable) as caught:
        run.start(SCRIPT, FIX, test=TEST, runner={"sandbox": box, "worker": worker})
    error = caught.value
    assert (error.exit_code, error.code) == (5, "image-missing")
    assert error.remedy == "docker pull registry.invalid/none:1"
    assert nothing_was_done(run)


@pytest.mark.parametrize(
    ("facts", "code"),
    [({"Architecture": "s390x"}, "image-architecture"), ({"Id": "sha256:2"}, "image-digest")],
    ids=["architecture", "digest"],
)
def test_an_image_that_cannot_serve_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, facts: dict[str, str], code: str
) -> None:
    monkeypatch.setitem(BODIES, "image", {**BODIES["image"], **facts})
    worker = {"docker_image": "some/image@sha256:" + "1" * 64}
    with fake_engine(run.project.state_dir.parent / "e.sock") as engine:
        on(run, engine.address)
        with pytest.raises(SandboxUnavailable) as caught:
            run.start(SCRIPT, FIX, test=TEST, runner={**IN_DOCKER, "worker": worker})
    assert (caught.value.exit_code, caught.value.code) == (5, code)
    assert "create" not in engine.calls
    assert nothing_was_done(run)


@pytest.mark.parametrize("path", ["/var/run/docker.sock", "/", "~/.ssh", "link"])
def test_a_forbidden_mount_is_refused_before_the_engine_is_asked(run: Run, path: str) -> None:
    """Also behind a link."""
    place = run.project.state_dir.parent
    (place / "link").symlink_to("/etc")
    box = {"kind": "docker", "read_paths": [path.replace("~", str(Path.home()))]}
    with fake_engine(place / "e.sock") as engine:
        on(run, engine.address)
        with pytest.raises(UsageError) as caught:
            run.start(SCRIPT, FIX, test=TEST, runner={**IN_DOCKER, "sandbox": box})
    assert (caught.value.exit_code, caught.value.code) == (2, "read-path")
    assert "create" not in engine.calls
    assert nothing_was_done(run)
