"""A whole run with the real Codex CLI and a planner over HTTP, both against a scripted server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.engine.dry_run import preview
from tests.kit.bwrap import require_bwrap
from tests.kit.codex import require_codex
from tests.kit.codex_project import FIX, FIX_AGAIN, JUDGEMENT, KEYS, PLAN, RIGHT, WRONG, Codex
from tests.kit.docker import require_docker
from tests.kit.metas import DONE, GIVE_UP
from tests.kit.model_server import ModelServer
from tests.kit.process import living
from tests.kit.project import Project
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.stories import story
from tests.kit.warm import warm_run

TWO_ROUNDS = (
    Turn("I multiply.", [Shell(WRONG)]),
    Turn("It multiplies."),
    Turn("I add.", [Shell(RIGHT)]),
    Turn("It adds."),
)
SCRIPT = (PLAN, FIX, FIX_AGAIN, DONE, JUDGEMENT)
STORY = [
    "run_started",
    "state_changed PLANNING",
    "baseline test 1",
    "meta_call plan_task",
    "warning",  # the scripted server says of every prompt that it read 1,200 tokens
    "plan",
    "state_changed RUNNING",
    "meta_call next_action",
    "decision run_worker",
    "worker_started 1-001",
    "worker_event text I multiply.",
    f"worker_event command_started {WRONG}",
    f"worker_event command_finished {WRONG} 0",
    "worker_event text It multiplies.",
    "worker_event usage 2400 68",
    "worker_finished 1-001 completed 0",
    "state_changed VALIDATING",
    "check test 1 failed",
    "meta_call next_action",
    "decision run_worker",
    "state_changed FIXING",
    "worker_started 1-002",
    "worker_event text I add.",
    f"worker_event command_started {RIGHT}",
    f"worker_event command_finished {RIGHT} 0",
    "worker_event text It adds.",
    "worker_event usage 4800 136",
    "worker_finished 1-002 completed 0",
    "state_changed VALIDATING",
    "check test 0 passed",
    "meta_call next_action",
    "decision mark_complete",
    "meta_call completion_assessment",
    "assessment",
    "note_written",
    "state_changed COMPLETE",
    "result",
]
"""Every event of the run, in the words of `story`."""
"""What `story` tells of an event."""


@pytest.fixture(params=["bwrap", "docker"])
def codex(tmp_path: Path, request: pytest.FixtureRequest) -> Codex:
    box: str = request.param
    require_bwrap() if box == "bwrap" else require_docker()
    return Codex(Project.make(tmp_path), require_codex(), box)


async def test_plan_run_validate_fix_complete(codex: Codex) -> None:
    with ModelServer(Scenario(TWO_ROUNDS), chat_script=SCRIPT) as server:
        result = await codex.run(server)
        requests = server.requests
    assert story(codex.project.events) == STORY
    counted = [event["tokens"] for event in codex.project.told("worker_usage")]
    # After a call or both, each round; none where a round is over before it is looked at.
    assert set(counted) <= {1234, 2468}
    assert (result["state"], result["exit_code"], result["reason"]) == ("COMPLETE", 0, "complete")
    assert result["proof"] == ["tests/test_calc.py::test_add failed before and passes now"]
    assert (result["worker_runs"], result["loops"], result["meta_calls"]) == (2, 1, 5)
    assert result["changed_files"] == ["calc.py"]
    assert codex.project.read("calc.py") == "def add(a, b):\n    return a + b\n"

    keys = {(request.path, request.bearer) for request in requests if request.method == "POST"}
    assert keys == {
        ("/v1/chat/completions", KEYS["OPENAI_API_KEY"]),
        ("/v1/responses", KEYS["CODEX_API_KEY"]),
    }
    runs = [record.data for record in codex.history(result).worker_runs]
    assert [run["outcome"] for run in runs] == ["completed", "completed"]
    assert runs[0]["session_id"] and runs[1]["session_id"] == runs[0]["session_id"]
    asked_again = [r.body for r in requests if r.path == "/v1/responses"][2]
    assert "Fix add in calc.py." in str(asked_again)
    assert "add(2, 3) is 6, not 5." in str(asked_again)
    assert [run["tokens"] for run in runs] == [{"input": 2400, "output": 68}] * 2
    assert result["usage"] == {
        "meta": {"input_tokens": 5 * 1200, "output_tokens": 5 * 34},
        "worker": {"input_tokens": 4 * 1200, "output_tokens": 4 * 34},
        "usd": pytest.approx(0.02808),  # the worker's: the planner is on this machine
    }

    touched = codex.project.git("status", "--porcelain").splitlines()
    assert touched == [" M calc.py", "?? .agent-runner/"]
    assert codex.leaks() == []
    assert living(codex.place) == {}


def test_the_box_shows_the_installation_of_codex(codex: Codex) -> None:
    with ModelServer() as server:
        options = replace(codex.project.options(), environ=KEYS)
        plan = asyncio.run(preview(codex.spec(server), options))
    native = Path(plan["worker_command"][0])
    shown = [mount for mount in plan["mounts"] if native.is_relative_to(mount["target"])]
    assert shown and all(mount["read_only"] for mount in shown)


@pytest.mark.series(2)
def test_the_command_line_does_the_same(codex: Codex) -> None:
    with ModelServer(Scenario(TWO_ROUNDS), chat_script=SCRIPT) as server:
        codex.spec(server)
        ran = warm_run(
            [sys.executable, "-m", "agentrunner", "run", str(codex.place / "task.yaml"), "--json"],
            cwd=codex.project.repo,
            env={**os.environ, **KEYS, "AGENTRUNNER_STATE_DIR": str(codex.project.state_dir)},
        )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, ran.stderr
    assert story(lines) == STORY
    assert lines[-1]["state"] == "COMPLETE"
    assert not any(key in ran.stdout + ran.stderr for key in KEYS.values())
    assert codex.leaks() == []
    assert living(codex.place) == {}


@pytest.mark.series(2)
async def test_a_refused_key_is_told_and_not_repeated(codex: Codex) -> None:
    refusal = f"Incorrect API key provided: {KEYS['CODEX_API_KEY']}"
    model = Scenario([Turn(refusal, status=401)])
    with ModelServer(model, chat_script=(PLAN, FIX)) as server:
        result = await codex.run(server)
        tried = sum(request.path == "/v1/responses" for request in server.requests)
    (run,) = codex.history(result).worker_runs
    assert run.data["outcome"] == "auth"
    assert "auth" in run.data["error"]
    assert tried < 10
    assert (result["state"], result["exit_code"]) == ("RUNNING", 4)
    assert result["waiting"]["kind"] == "worker_failed"
    assert "Set CODEX_API_KEY to a key that is good" in result["waiting"]["text"]
    assert codex.leaks() == []  # though the server repeats the key
    assert living(codex.place) == {}


@pytest.mark.series(2)
async def test_a_model_that_hangs_is_ended_by_the_idle_limit(codex: Codex) -> None:
    with ModelServer(
        Scenario([Turn("Thinking.", hang=True)]), chat_script=(PLAN, FIX, GIVE_UP)
    ) as server:
        result = await codex.run(server, idle_timeout_sec=3)
    (run,) = codex.history(result).worker_runs
    assert run.data["outcome"] == "idle_timeout"
    assert run.data["error"] == "ended by idle_timeout"
    assert (result["state"], result["exit_code"], result["reason"]) == ("FAILED", 1, "aborted")
    assert living(codex.place) == {}
