"""Policies in whole runs: nothing starts beyond one, and none is forgotten when a run goes on."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentrunner.engine.dry_run import preview
from agentrunner.errors import UsageError
from agentrunner.storage.run_folder import load_spec
from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.runs import FIX, TEST, Run

ASK = """\
import os, socket, time
proxy = int(os.environ["HTTPS_PROXY"].rpartition(":")[2])
for _ in range(20):
    with socket.create_connection(("127.0.0.1", proxy)) as line:
        line.sendall(b"CONNECT blocked.example:443 HTTP/1.1\\r\\nHost: blocked.example\\r\\n\\r\\n")
        line.makefile("rb").read()
time.sleep(1000)
"""
"""A worker that asks for one host again and again, until it is stopped."""

ASKING = [plan(), consult("Which?"), work(), finish(), assess()]
NO_BWRAP = {"sandbox": {"kinds": ["docker"]}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def allow(file: Path, caps: dict[str, Any]) -> Path:
    file.write_text(yaml.safe_dump({"version": 1, **caps}, sort_keys=False), encoding="utf-8")
    file.chmod(0o600)
    return file


def under(run: Run, file: Path | None) -> None:
    """As with `--policy`, or without it."""
    run.adjust = lambda options: replace(options, policy=file)


def refused(step: Callable[[], object], code: str = "policy-breach") -> UsageError:
    with pytest.raises(UsageError) as refusal:
        step()
    assert refusal.value.code == code
    return refusal.value


def test_a_breach_is_told_before_anything_starts(run: Run, file: Path) -> None:
    under(run, allow(file, NO_BWRAP))
    error = refused(lambda: run.start(ASKING, test=TEST))
    assert error.details[0] == ("policy", f"{file}:3     kinds:")
    assert not run.project.state_dir.exists()
    assert run.project.told("run_started") == []


def test_a_run_says_which_policies_it_is_under(run: Run, file: Path) -> None:
    under(run, allow(file, {"meta": {"max_loops": 9}, "budget": {"usd": 5}}))
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.result["state"] == "COMPLETE"
    source = {"path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    (started,) = run.project.told("run_started")
    assert started["header"]["policies"] == [source]
    spec = load_spec(run.folder)
    assert [one.model_dump() for one in spec.policies] == [source]
    assert spec.runner.budget.usd == 5


@pytest.mark.series(2)
@pytest.mark.parametrize("step", ["answer", "resume", "accept"])
def test_what_goes_on_is_held_against_the_policy_of_today(run: Run, file: Path, step: str) -> None:
    script = [plan(), give_up()] if step == "accept" else ASKING
    run.start(script, FIX, test=TEST)
    run.environ = {**os.environ, "AGENTRUNNER_POLICY": str(allow(file, NO_BWRAP))}
    steps = {
        "answer": lambda: run.answer("This."),
        "resume": lambda: run.resume(),
        "accept": lambda: run.accept(),
    }
    assert refused(steps[step]).remedy.startswith("start a new run")
    allow(file, {"sandbox": {"kinds": ["bwrap"]}})
    steps[step]()


def test_a_run_does_not_go_on_in_a_box_that_is_forbidden_today(run: Run, file: Path) -> None:
    run.environ = {**os.environ, "DOCKER_HOST": "unix:///nonexistent.sock"}
    run.start(ASKING, FIX, test=TEST, runner={"sandbox": {"kind": "auto"}})  # so, bwrap
    under(run, allow(file, NO_BWRAP))
    assert "bwrap is not allowed" in refused(lambda: run.answer("This.")).message


def test_the_policy_of_the_start_stays_in_force_without_the_option(run: Run, file: Path) -> None:
    under(run, allow(file, {}))
    run.start(ASKING, FIX, test=TEST)
    under(run, None)
    allow(file, NO_BWRAP)
    refused(lambda: run.answer("This."))
    file.unlink()
    refused(lambda: run.answer("This."), "policy-missing")
    allow(file, {})
    run.answer("This.")
    assert run.result["state"] == "COMPLETE"


def test_a_new_attempt_gets_no_more_rounds_than_allowed(run: Run, file: Path) -> None:
    under(run, allow(file, {"meta": {"max_loops": 2}}))
    run.start([plan(), give_up(), give_up()], test=TEST)
    assert refused(lambda: run.resume(max_loops=3)).path == "--max-loops"
    run.resume(max_loops=2)
    assert run.result["max_loops"] == 2


def test_a_dry_run_is_held_against_it_too(run: Run, file: Path) -> None:
    spec = run.project.spec(runner={"meta": {"kind": "liar", "max_loops": 2}})
    options = replace(run.project.options(), policy=allow(file, NO_BWRAP))
    refused(lambda: asyncio.run(preview(spec, options)))


def test_a_policy_in_the_repository_stops_the_run(run: Run) -> None:
    under(run, allow(run.project.repo / "policy.yaml", {}))
    refused(lambda: run.start(ASKING, test=TEST), "policy-unsafe")


def test_a_person_is_not_asked_for_a_host_that_a_policy_forbids(run: Run, file: Path) -> None:
    under(run, allow(file, {"sandbox": {"hosts": ["example.org:443"]}}))
    run.project.write({"ask.py": ASK})
    network = {"sandbox": {"network": "allowlist"}}
    run.start([plan(), work(), give_up()], "/usr/bin/python3 ask.py", test=TEST, runner=network)
    assert run.log("worker_run")[-1].data["outcome"] == "egress"
    assert run.ending == ("FAILED", "aborted", 1)
    assert run.project.told("question") == []
