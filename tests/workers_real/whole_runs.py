"""Whole runs with each real CLI: `agentrunner run` in bubblewrap, through the gateway.

`make test-workers` installs the CLIs, 2 GB of them, and names this file; no other test run
collects it. The planner plays a script, the model a scenario: a first try that leaves the test
red, then, in the same session, one that repairs it. Where a CLI keeps no sessions it repairs at
once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.workers.base import Worker
from agentrunner.workers.member import make_worker
from tests.kit.bwrap import require_bwrap
from tests.kit.metas import Item, assess, finish, plan, run_worker, work
from tests.kit.missing import missing
from tests.kit.model_server import ModelServer
from tests.kit.process import living
from tests.kit.project import PYTEST, Project
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.trials import installed

KINDS = ("gemini-cli", "qwen-code", "copilot-cli", "opencode", "aider", "mini-swe-agent")
MODELS = {"gemini-cli": "gemini-2.5-pro"}
KEY = "sk-worker-" + "9d27" * 12
WRONG = Turn("I multiply.", [Shell("sed -i 's/a - b/a * b/' calc.py")])
RIGHT = Turn("I add.", [Shell("sed -i 's/a [-*] b/a + b/' calc.py")])
FAILS = Turn("I try something else.", [Shell("echo oops >&2; exit 3")])
SUBMIT = Turn("I hand it in.", [Shell("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")])
TWO_ROUNDS = (WRONG, Turn("It multiplies."), FAILS, RIGHT, Turn("It adds."))
EDIT = (
    "I add.\n\ncalc.py\n```\ndef add(a, b):\n    return a + b\n```\n\nNEW.md\n```\nIt adds.\n```\n"
)
SCENARIOS = {
    "aider": lambda: Scenario([], side_reply=EDIT),
    "mini-swe-agent": lambda: Scenario([FAILS, RIGHT, SUBMIT]),
}


def script(kind: str, *, resumes: bool) -> list[Item]:
    """What the planner says."""
    orders = [run_worker(kind, "Fix add in calc.py.")]
    if resumes:
        orders.append(run_worker(kind, "add(2, 3) is 6, not 5.", mode="resume"))
    usual = work()
    ordered = [{**usual, "reply": {**usual["reply"], "payload": order}} for order in orders]
    return [plan(), *ordered, finish(), assess()]


@dataclass
class Ran:
    """A run that is over."""

    worker: Worker
    project: Project
    exit_code: int
    result: dict[str, Any]
    runs: list[Mapping[str, Any]]
    server: ModelServer
    printed: str


@pytest.fixture(scope="module", params=KINDS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    kind: str = request.param
    require_bwrap()
    program = installed(kind)
    if program is None:
        missing(f"{kind} is not installed. Run scripts/install-workers.sh.")
    place = tmp_path_factory.mktemp(kind)
    project = Project.make(place)
    worker = make_worker(WorkerSpec(kind=kind))
    replies = place / "replies.yaml"
    replies.write_text(json.dumps(script(kind, resumes=worker.reports.resume)), "utf-8")
    scenario = SCENARIOS.get(kind, lambda: Scenario(TWO_ROUNDS, side_reply="A title"))()
    with ModelServer(scenario) as server:
        runner = {
            "meta": {"kind": "script", "script": str(replies)},
            "worker": {
                "kind": kind,
                "command": [str(program)],
                "model": MODELS.get(kind, "some-model"),
                "base_url": server.address if worker.wire == "gemini" else server.base_url,
            },
        }
        project.spec(test=PYTEST, runner=runner)
        began = time.monotonic()
        process = subprocess.run(
            [sys.executable, "-m", "agentrunner", "run", str(place / "task.yaml"), "--json"],
            cwd=project.repo,
            env={
                **os.environ,
                worker.key_names[0]: KEY,
                "AGENTRUNNER_STATE_DIR": str(project.state_dir),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        seconds = time.monotonic() - began
        lines = [json.loads(line) for line in process.stdout.splitlines()]
        assert lines and lines[-1]["run_id"], process.stdout + process.stderr
        folder = RunFolder.open(project.state_dir, lines[-1]["run_id"])
        runs = [record.data for record in RunLog(folder.log_file).records("worker_run")]
        spent = [round(run["duration_sec"], 1) for run in runs]
        print(f"\n{kind}: {seconds:.1f} s, worker runs {spent} s", end=" ")  # noqa: T201
        printed = process.stderr + "\n".join(process.stdout.splitlines()[-30:])
        yield Ran(worker, project, process.returncode, lines[-1], runs, server, printed)


def test_it_ends_complete_with_the_edit(ran: Ran) -> None:
    assert ran.exit_code == 0, ran.printed
    assert (ran.result["state"], ran.result["reason"]) == ("COMPLETE", "complete")
    new = ["NEW.md"] if ran.worker.kind == "aider" else []
    assert ran.result["changed_files"] == [*new, "calc.py"]
    assert ran.project.read("calc.py") == "def add(a, b):\n    return a + b\n"
    assert [run["outcome"] for run in ran.runs] == ["completed"] * len(ran.runs)
    assert living(ran.project.state_dir.parent) == {}


def test_the_session_goes_on(ran: Ran) -> None:
    if not ran.worker.reports.resume:
        assert len(ran.runs) == 1
        return
    first, second = ran.runs
    assert first["session_id"] and second["session_id"] == first["session_id"]
    assert any(
        "Fix add in" in str(r.body) and "is 6, not" in str(r.body) for r in ran.server.requests
    )


def test_what_it_tells_of_commands_and_tokens(ran: Ran) -> None:
    last = ran.runs[-1]
    codes = [command["exit_code"] for command in last["commands"]]
    if ran.worker.reports.exit_codes:
        assert 3 in codes and 0 in codes
    else:
        assert set(codes) <= {None}
    reported = [run["tokens"]["input"] for run in ran.runs]
    assert all(reported) if ran.worker.reports.tokens else not any(reported)


def test_the_gateway_counts_and_keeps_the_key(ran: Ran) -> None:
    asked = [request for request in ran.server.requests if request.method == "POST"]
    assert {request.bearer for request in asked} == {KEY}
    usage = ran.result["usage"]["worker"]
    assert usage == {"input_tokens": 1200 * len(asked), "output_tokens": 34 * len(asked)}
    place = ran.project.state_dir.parent
    leaks = [p for p in place.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]
    assert leaks == []
