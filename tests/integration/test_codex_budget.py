"""A budget that runs out while the real Codex works: no further call of a model begins."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.graph.runner import start
from tests.integration.test_codex_run import DONE, FIX, JUDGEMENT, KEYS, PLAN, RIGHT
from tests.kit.bwrap import require_bwrap
from tests.kit.codex import require_codex
from tests.kit.model_server import ModelServer
from tests.kit.project import Project
from tests.kit.runs import SMALL, TEST
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.token_issuer import TokenIssuer

ONE_ROUND = Scenario([Turn("I add.", [Shell(RIGHT.replace("[*]", "-"))]), Turn("It adds.")])
CALL = 1200 + 34
"""Tokens of each call of the scripted server, by planner or worker."""


async def spend(
    project: Project, server: ModelServer, budget: dict[str, float], environ: dict[str, str],
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
    return await start(project.spec(test=TEST, runner=runner), options)


def asked(server: ModelServer) -> int:
    return sum(request.path == "/v1/responses" for request in server.requests)


@pytest.mark.parametrize(
    ("budget", "name"),
    [({"tokens": 2 * CALL + 1}, "tokens"), ({"usd": 0.001}, "usd")],
    ids=["tokens", "usd"],
)
async def test_the_gateway_lets_no_call_begin_beyond_it(
    tmp_path: Path, budget: dict[str, float], name: str
) -> None:
    """After the planner's two calls there is room for the beginning of one."""
    require_bwrap()
    project = Project.make(tmp_path, SMALL)
    with ModelServer(ONE_ROUND, chat_script=(PLAN, FIX, DONE, JUDGEMENT)) as server:
        result = await spend(project, server, budget, {}, base_url=server.base_url)
    assert asked(server) == 1
    assert (result["state"], result["exit_code"]) == ("FAILED", 1)
    assert result["reason"] == f"budget: {name}"
    assert "a + b" in project.read("calc.py")  # what was done is kept


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
    assert result["usage"]["usd"] is None
