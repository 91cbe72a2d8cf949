"""Whole tasks with the real Codex CLI and the real Claude Code as planners."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.graph.runner import resume, start
from agentrunner.runs.folder import RunFolder
from agentrunner.runs.log import RunLog
from agentrunner.task.spec import TaskSpec
from tests.kit.docker import IN_DOCKER
from tests.kit.metas import assess, finish, plan, work
from tests.kit.planner_desk import KEY_OF, REAL_KEY, require
from tests.kit.planner_server import PlannerServer
from tests.kit.process import living, until
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST
from tests.kit.scenario import Turn

KINDS = [("codex-cli", "bwrap"), ("claude-code", "docker")]
PLAN, WORK, DONE, JUDGEMENT = (item["reply"] for item in (plan(), work(), finish(), assess()))


@pytest.fixture(params=KINDS, ids="-".join)
def planner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    kind, box = request.param
    binary = require(kind, box)
    name = "AGENTRUNNER_CODEX" if kind == "codex-cli" else "AGENTRUNNER_CLAUDE"
    monkeypatch.setenv(name, str(binary))
    for key in (*KEY_OF.values(), "OPENAI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv(KEY_OF[kind], REAL_KEY)
    return kind, box


def spec_of(project: Project, planner: tuple[str, str], server: PlannerServer) -> TaskSpec:
    kind, box = planner
    url = server.base_url if kind == "codex-cli" else server.address
    runner: dict[str, Any] = {"meta": {"kind": kind, "base_url": url, "model": "planner-1"}}
    if box == "docker":
        runner |= IN_DOCKER
    return project.spec(FIX, test=TEST, runner=runner)


def calls_of(project: Project, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    folder = RunFolder.open(project.state_dir, result["run_id"])
    return [dict(record.data) for record in RunLog(folder.log_file).records("meta_call")]


async def test_a_whole_task(planner: tuple[str, str], tmp_path: Path) -> None:
    project = Project.make(tmp_path, SMALL)
    strange = {**WORK, "payload": {"decision": {"action": "celebrate", "reason": "Hurray."}}}
    with PlannerServer([PLAN, "Let me think.", strange, WORK, DONE, JUDGEMENT]) as server:
        options = replace(project.options(), environ=dict(os.environ))
        result = await start(spec_of(project, planner, server), options)
        told = server.told
        shown = {call.bearer for call in server.requests if call.method == "POST"}
    assert (result["state"], result["reason"]) == ("COMPLETE", "complete"), result
    calls = calls_of(project, result)
    assert [call["type"] for call in calls] == [
        "plan_task", "next_action", "next_action", "next_action", "next_action",
        "completion_assessment",
    ]  # fmt: skip
    assert [bool(call["error"]) for call in calls] == [False, True, True, False, False, False]
    counted = result["usage"]["meta"]
    assert (counted["input_tokens"], counted["output_tokens"]) == (
        told.input_tokens,
        told.output_tokens,
    )
    assert shown == {REAL_KEY}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if REAL_KEY.encode() in path.read_bytes()] == []
    assert living(tmp_path) == {}


def test_a_run_killed_while_it_plans_leaves_nothing_and_goes_on(
    planner: tuple[str, str], tmp_path: Path
) -> None:
    project = Project.make(tmp_path, SMALL)
    script = [Turn("Thinking.", hang=True), PLAN, WORK, DONE, JUDGEMENT]
    with PlannerServer(script) as server:
        spec_of(project, planner, server)
        run = subprocess.Popen(
            [sys.executable, "-m", "agentrunner", "run", str(tmp_path / "task.yaml"), "--json"],
            cwd=project.repo,
            env={**os.environ, "AGENTRUNNER_STATE_DIR": str(project.state_dir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            until(lambda: server.sessions == 1 or run.poll() is not None, "the planner to think")
            assert run.poll() is None, run.communicate()
            assert any("codex" in line or "claude" in line for line in living(tmp_path).values())
        finally:
            run.send_signal(signal.SIGKILL)
            run.communicate()
        until(lambda: not living(tmp_path), "everything of the planner to end")
        (run_id,) = [path.name for path in (project.state_dir / "runs").iterdir()]
        options = replace(project.options(), environ=dict(os.environ))
        result = asyncio.run(resume(run_id, options))
    assert result["state"] == "COMPLETE", json.dumps(result)
    assert living(tmp_path) == {}
