"""Whole tasks with the real Codex CLI and the real Claude Code as planners."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.runs import resume, start
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from tests.kit.docker import IN_DOCKER
from tests.kit.metas import assess, finish, plan, work
from tests.kit.planner_host import KEY_OF, REAL_KEY, require
from tests.kit.planner_server import PlannerServer
from tests.kit.process import living, until, until_none_lives
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST
from tests.kit.scenario import Turn
from tests.kit.token_issuer import TokenIssuer
from tests.kit.warm import WarmPopen

KINDS = [("codex-cli", "bwrap"), ("claude-code", "docker")]
PLAN, WORK, DONE, JUDGEMENT = (item["reply"] for item in (plan(), work(), finish(), assess()))
STRANGE = {**WORK, "payload": {"decision": {"action": "celebrate", "reason": "Hurray."}}}


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


def spec_of(
    project: Project, planner: tuple[str, str], server: PlannerServer, **meta: Any
) -> TaskSpec:
    kind, box = planner
    url = server.base_url if kind == "codex-cli" else server.address
    own = {"kind": kind, "base_url": url, "model": "planner-1", **meta}
    runner: dict[str, Any] = {"meta": own}
    if box == "docker":
        runner |= IN_DOCKER
    return project.spec(FIX, test=TEST, runner=runner)


def calls_of(project: Project, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    folder = RunFolder.open(project.state_dir, result["run_id"])
    return [dict(record.data) for record in RunLog(folder.log_file).records("meta_call")]


def check_whole_task(project: Project, result: Mapping[str, Any], server: PlannerServer) -> None:
    """It is complete, with a plan, two answers that were asked for again, and the exact cost."""
    assert (result["state"], result["reason"]) == ("COMPLETE", "complete"), json.dumps(result)
    calls = calls_of(project, result)
    assert [call["type"] for call in calls] == [
        "plan_task", "next_action", "next_action", "next_action", "next_action",
        "completion_assessment",
    ]  # fmt: skip
    assert [bool(call["error"]) for call in calls] == [False, True, True, False, False, False]
    counted, told = result["usage"]["meta"], server.told
    assert (counted["input_tokens"], counted["output_tokens"]) == (
        told.input_tokens,
        told.output_tokens,
    )
    assert living(project.state_dir.parent) == {}


def holding(place: Path, secrets: Iterable[str]) -> list[str]:
    """Files that hold a secret."""
    files = [path for path in place.rglob("*") if path.is_file()]
    assert any(path.name == "checkpoints.sqlite" for path in files)
    words = [secret.encode() for secret in secrets]
    return [str(path) for path in files if any(word in path.read_bytes() for word in words)]


STORY = (PLAN, "Let me think.", STRANGE, WORK, DONE, JUDGEMENT)


def test_a_run_killed_while_it_plans_leaves_nothing_and_goes_on_to_its_end(
    planner: tuple[str, str], tmp_path: Path
) -> None:
    project = Project.make(tmp_path, SMALL)
    with PlannerServer([Turn("Thinking.", hang=True), *STORY]) as server:
        spec_of(project, planner, server)
        run = WarmPopen(
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
        until_none_lives(tmp_path)
        (run_id,) = [path.name for path in (project.state_dir / "runs").iterdir()]
        options = replace(project.options(), environ=dict(os.environ))
        result = asyncio.run(resume(run_id, options)).as_dict()
        assert {one.bearer for one in server.requests if one.method == "POST"} == {REAL_KEY}
    check_whole_task(project, result, server)
    assert holding(tmp_path, [REAL_KEY]) == []


@pytest.mark.parametrize("planner", [("codex-cli", "bwrap")], indirect=True, ids="-".join)
async def test_a_subscription_and_no_key_are_enough(
    planner: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project.make(tmp_path, SMALL)
    monkeypatch.delenv(KEY_OF["codex-cli"])
    with TokenIssuer(lifetime_sec=1200) as issuer, PlannerServer(STORY) as server:
        issuer.write_login(tmp_path / "login" / "auth.json")
        server.accepts = issuer.accepts
        login = {
            "CODEX_HOME": str(tmp_path / "login"),
            "CODEX_REFRESH_TOKEN_URL_OVERRIDE": issuer.url,
            "AGENTRUNNER_CODEX_LOGIN_URL": server.base_url,
        }
        options = replace(project.options(), environ={**os.environ, **login})
        result = (await start(spec_of(project, planner, server, base_url=None), options)).as_dict()
        shown = [one.bearer for one in server.requests if one.method == "POST"]
    check_whole_task(project, result, server)
    assert set(shown) <= set(issuer.made)
    assert {call["subscription"] for call in calls_of(project, result)} == {True}
    assert result["usage"]["usd"] is None
    assert holding(project.state_dir, issuer.made) == []
