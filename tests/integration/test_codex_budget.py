"""A budget that runs out while the real Codex works: no further call of a model begins."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.engine.runs import respond, resume, start
from agentrunner.errors import UsageError
from agentrunner.state.people import Answer
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from tests.kit.bwrap import require_bwrap
from tests.kit.codex import require_codex
from tests.kit.codex_project import FIX, JUDGEMENT, KEYS, PLAN, RIGHT
from tests.kit.metas import DONE
from tests.kit.model_server import ModelServer
from tests.kit.process import until
from tests.kit.project import Project
from tests.kit.runs import SMALL, TEST
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.token_issuer import TokenIssuer
from tests.kit.wire import Usage

ONE_ROUND = Scenario([Turn("I add.", [Shell(RIGHT.replace("[*]", "-"))]), Turn("It adds.")])
TWO_STEPS = Scenario([Turn("I look.", [Shell("cat calc.py")]), *ONE_ROUND.turns])
CALL = 1200 + 34
"""Tokens of each call of the scripted server, by planner or worker."""


async def spend(
    project: Project, server: ModelServer, budget: dict[str, Any], environ: dict[str, str],
    **worker: Any,
) -> dict[str, Any]:  # fmt: skip
    runner = {
        "meta": {"kind": "openai-chat", "model": "planner", "base_url": server.base_url},
        "worker": {
            "kind": "codex-cli",
            "command": [str(require_codex())],
            "model": "gpt-5.5",
            **worker,
        },
        "budget": budget,
    }
    options = replace(project.options(), environ={**os.environ, **KEYS, **environ})
    return (await start(project.spec(test=TEST, runner=runner), options)).as_dict()


def asked(server: ModelServer) -> int:
    return sum(request.path == "/v1/responses" for request in server.requests)


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("budget", "ending"),
    [
        ({"tokens": 2 * CALL + 1, "on_spent": "fail"}, ("FAILED", "budget: tokens")),
        ({"usd": 0.001, "on_spent": "fail"}, ("COMPLETE", "complete")),
    ],
    ids=["tokens", "usd"],
)
async def test_the_gateway_lets_no_call_begin_beyond_it(
    tmp_path: Path, budget: dict[str, Any], ending: tuple[str, str]
) -> None:
    """After the planner's two calls there is room for the beginning of one.

    The planner is on this machine: its calls cost nothing, so that no limit of money stops them.
    """
    require_bwrap()
    project = Project.make(tmp_path, SMALL)
    with ModelServer(ONE_ROUND, chat_script=(PLAN, FIX, DONE, JUDGEMENT)) as server:
        result = await spend(project, server, budget, {}, base_url=server.base_url)
    assert asked(server) == 1
    assert (result["state"], result["reason"]) == ending
    assert "a + b" in project.read("calc.py")  # what was done is kept


def spent(result: dict[str, Any]) -> Usage:
    """What the run says it used, counters and bill alike."""
    parts = [result["usage"][who] for who in ("meta", "worker")]
    counted, billed = (
        Usage(*(sum(part[f"{way}_tokens"] for part in rows) for way in ("input", "output")))
        for rows in (parts, result["bill"])
    )
    assert counted == billed
    return counted


async def test_the_next_call_is_refused_and_the_run_asks_and_goes_on_in_the_same_session(
    tmp_path: Path,
) -> None:
    """Done-point 4: the gateway refuses call N+1; raised, it completes; totals are the server's."""
    require_bwrap()
    project = Project.make(tmp_path, SMALL)
    budget = {"tokens": 3 * CALL}
    with ModelServer(TWO_STEPS, chat_script=(PLAN, FIX, DONE, JUDGEMENT)) as server:
        result = await spend(project, server, budget, {}, base_url=server.base_url)
        assert (result["exit_code"], result["waiting"]["kind"]) == (4, "budget")
        assert (asked(server), len(server.served)) == (1, 3)
        assert spent(result) == server.told
        assert "tokens is spent: 3,702 of 3,702 tokens" in result["waiting"]["text"]

        options = replace(project.options(), environ={**os.environ, **KEYS})
        run_id = result["run_id"]
        with pytest.raises(UsageError):
            await respond(run_id, Answer(id="", kind="budget", text="more"), options)
        assert len(server.served) == 3
        result = (
            await respond(run_id, Answer(id="", kind="budget", text="+20000"), options)
        ).as_dict()
        assert (result["state"], result["exit_code"]) == ("COMPLETE", 0), result["text"]
        assert (asked(server), len(server.served)) == (3, 7)
        assert spent(result) == server.told == Usage(7 * 1200, 7 * 34)
    first, second = RunLog(RunFolder.open(project.state_dir, run_id).log_file).records("worker_run")
    assert (first.data["outcome"], second.data["outcome"]) == ("budget", "completed")
    assert first.key != second.key
    assert first.data["session_id"] == second.data["session_id"] is not None
    assert [(row["role"], row["run"], row["calls"], row["known"]) for row in result["bill"]] == [
        ("planner", "", 3, "counted"),
        ("assess", "", 1, "counted"),
        ("worker", first.key, 1, "counted"),
        ("worker", second.key, 2, "counted"),
    ]
    # The planner is on this machine and costs nothing; the worker's model has a price.
    assert result["usage"]["usd"] > 0


async def test_totals_are_those_of_the_server_after_a_kill_while_the_worker_asks(
    tmp_path: Path,
) -> None:
    """kill -9 of the runner; its worker goes on, and what it spent meanwhile is booked once."""
    require_bwrap()
    project = Project.make(tmp_path, SMALL)
    slow = Scenario([replace(turn, delay_sec=1) for turn in ONE_ROUND.turns])
    with ModelServer(slow, chat_script=(PLAN, FIX, DONE, JUDGEMENT)) as server:
        runner = {
            "meta": {"kind": "openai-chat", "model": "planner", "base_url": server.base_url},
            "worker": {
                "kind": "codex-cli",
                "command": [str(require_codex())],
                "model": "gpt-5.5",
                "base_url": server.base_url,
            },
            "budget": {"tokens": 100 * CALL},
        }
        project.spec(test=TEST, runner=runner)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agentrunner", "run", str(project.state_dir.parent / "task.yaml"),
            env={**os.environ, **KEYS, "AGENTRUNNER_STATE_DIR": str(project.state_dir)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        await asyncio.to_thread(until, lambda: asked(server) == 1, "the worker asks its model")
        process.kill()
        await process.wait()
        (run_id,) = [path.name for path in (project.state_dir / "runs").iterdir()]
        options = replace(project.options(), environ={**os.environ, **KEYS})
        result = (await resume(run_id, options)).as_dict()
        assert (result["state"], result["exit_code"]) == ("COMPLETE", 0), result["text"]
        assert spent(result) == server.told == Usage(6 * 1200, 6 * 34)
        assert (result["meta_calls"], result["worker_runs"]) == (4, 1)


async def test_a_login_pays_no_price_and_is_not_stopped_by_one(tmp_path: Path) -> None:
    """Its calls belong to a subscription: list prices say nothing about it."""
    require_bwrap()
    project = Project.make(tmp_path, SMALL)
    with (
        TokenIssuer(lifetime_sec=90_000) as issuer,
        ModelServer(
            ONE_ROUND, chat_script=(PLAN, FIX, DONE, JUDGEMENT), accepts=issuer.accepts
        ) as server,
    ):
        issuer.write_login(tmp_path / "login" / "auth.json")
        environ = {
            "CODEX_HOME": str(tmp_path / "login"),
            "CODEX_REFRESH_TOKEN_URL_OVERRIDE": issuer.url,
            "AGENTRUNNER_CODEX_LOGIN_URL": server.base_url,
        }
        result = await spend(project, server, {"usd": 0.001}, environ, auth="login")
    assert asked(server) == 2
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0)
    assert result["usage"]["usd"] == 0
