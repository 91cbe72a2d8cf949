"""Whole runs of the real Codex CLI with a login of this machine, against a strict issuer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.runs import resume, start
from agentrunner.errors import InfraError, UsageError
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from tests.kit.bwrap import require_bwrap
from tests.kit.codex import require_codex
from tests.kit.codex_project import FIX, JUDGEMENT, WRONG
from tests.kit.metas import DONE, GIVE_UP, reply, run_worker
from tests.kit.model_server import ModelServer
from tests.kit.process import living
from tests.kit.project import Project
from tests.kit.runs import SMALL, TEST
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.token_issuer import ACCOUNT, TokenIssuer

RIGHT = "sed -i 's/a [*-] b/a + b/' calc.py"
TURNS = (
    Turn("I multiply.", [Shell(WRONG)]),
    Turn("It multiplies."),
    Turn("I add.", [Shell(RIGHT)]),
    Turn("It adds."),
)
AGAIN = reply("next_action", run_worker("codex-cli", "It must add.", mode="resume")).text
CRITERION = {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}
PLAN = reply("plan_task", {"acceptance_criteria": [CRITERION]}).text
TWO_ROUNDS = (PLAN, FIX, AGAIN, DONE, JUDGEMENT)
ONE_ROUND = (PLAN, FIX, DONE, JUDGEMENT)


@dataclass
class Desk:
    """A machine where somebody is logged in with Codex, and a project."""

    project: Project
    issuer: TokenIssuer
    binary: Path

    @property
    def home(self) -> Path:
        return self.project.state_dir.parent / "login"

    def spec(self, server: ModelServer, sandbox: str = "bwrap", **worker: Any) -> TaskSpec:
        runner = {
            "meta": {"kind": "openai-chat", "model": "planner", "base_url": server.base_url},
            "worker": {
                "kind": "codex-cli",
                "command": [str(self.binary)],
                "model": "gpt-5.5",
                "auth": "login",
                **worker,
            },
            "sandbox": {"kind": sandbox},
        }
        return self.project.spec(test=TEST, runner=runner)

    def environ(self, server: ModelServer) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name != "CODEX_API_KEY"},
            "OPENAI_API_KEY": "sk-planner-" + "4f1c" * 12,
            "CODEX_HOME": str(self.home),
            "CODEX_REFRESH_TOKEN_URL_OVERRIDE": self.issuer.url,
            "AGENTRUNNER_CODEX_LOGIN_URL": server.base_url,
        }

    async def run(self, server: ModelServer, **how: Any) -> dict[str, Any]:
        options = replace(self.project.options(), environ=self.environ(server))
        return (await start(self.spec(server, **how), options)).as_dict()

    def runs(self, result: Mapping[str, Any]) -> list[dict[str, Any]]:
        folder = RunFolder.open(self.project.state_dir, result["run_id"])
        return [dict(record.data) for record in RunLog(folder.log_file).history().worker_runs]

    def seen(self, server: ModelServer) -> list[tuple[str, str]]:
        """Bearer and account of each model call of the worker."""
        return [
            (request.bearer, request.headers.get("chatgpt-account-id", ""))
            for request in server.requests
            if request.path == "/v1/responses"
        ]

    def tokens_in(self, *folders: Path) -> list[str]:
        """Files that hold a token of any kind."""
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        assert files
        words = [b"refresh-", *(token.encode() for token in self.issuer.made)]
        return [str(path) for path in files if any(word in path.read_bytes() for word in words)]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    require_bwrap()
    with TokenIssuer(lifetime_sec=900) as issuer:  # less than a worker may run
        made = Desk(Project.make(tmp_path, SMALL), issuer, require_codex())
        issuer.write_login(made.home / "auth.json")
        yield made


async def test_each_round_gets_a_fresh_access_token_and_the_box_none(desk: Desk) -> None:
    with ModelServer(
        Scenario(TURNS), chat_script=TWO_ROUNDS, accepts=desk.issuer.accepts
    ) as server:
        result = await desk.run(server)
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0)
    assert [run["outcome"] for run in desk.runs(result)] == ["completed", "completed"]
    assert len(desk.issuer.spent) == 2
    assert desk.issuer.reused == []
    bearers = [bearer for bearer, _ in desk.seen(server)]
    assert bearers == [desk.issuer.made[1]] * 2 + [desk.issuer.made[2]] * 2
    assert {account for _, account in desk.seen(server)} == {ACCOUNT}
    assert desk.tokens_in(desk.project.state_dir, desk.project.repo) == []
    assert living(desk.project.state_dir.parent) == {}


async def test_a_token_refused_in_mid_run_leads_to_the_same_session_with_a_fresh_one(
    desk: Desk,
) -> None:
    def accepts(bearer: str) -> bool:
        good = desk.issuer.accepts(bearer)
        desk.issuer.revoke(desk.issuer.made[1])  # good for one call only
        return good

    turns = (Turn("I add.", [Shell(RIGHT)]), Turn("It adds."))
    with ModelServer(Scenario(turns), chat_script=ONE_ROUND, accepts=accepts) as server:
        result = await desk.run(server)
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0)
    first, second = desk.runs(result)
    assert [first["outcome"], second["outcome"]] == ["auth", "completed"]
    assert [first["worker_run_id"], second["worker_run_id"]] == ["1-001", "1-001r"]
    assert first["session_id"] and second["session_id"] == first["session_id"]
    assert desk.issuer.reused == []
    assert desk.tokens_in(desk.project.state_dir, desk.project.repo) == []


async def test_a_login_that_is_over_stops_the_run_until_somebody_logs_in(desk: Desk) -> None:
    turns = (Turn("I add.", [Shell(RIGHT)]), Turn("It adds."))
    over: tuple[int, dict[str, str], dict[str, Any]] = (
        401,
        {},
        {"error": {"code": "refresh_token_expired"}},
    )
    desk.issuer.faults = [over] * 2
    desk.issuer.revoke(desk.issuer.made[0])
    with ModelServer(Scenario(turns), chat_script=ONE_ROUND, accepts=desk.issuer.accepts) as server:
        with pytest.raises(InfraError) as error:
            await desk.run(server)
        assert error.value.code == "login-expired"
        desk.issuer.write_login(desk.home / "auth.json")
        (run,) = (desk.project.state_dir / "runs").iterdir()
        options = replace(desk.project.options(), environ=desk.environ(server))
        result = (await resume(run.name, options)).as_dict()
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0)


async def test_without_a_sandbox_the_access_token_enters_with_a_warning(desk: Desk) -> None:
    turns = (Turn("I looked."),)
    with ModelServer(
        Scenario(turns), chat_script=(PLAN, FIX, GIVE_UP), accepts=desk.issuer.accepts
    ) as server:
        result = await desk.run(server, sandbox="none")
        seen = desk.seen(server)
    assert seen == [(desk.issuer.made[1], ACCOUNT)]
    (run,) = desk.runs(result)
    assert run["outcome"] == "no_op"
    (warning,) = [event for event in desk.project.told("warning") if "login" in event["code"]]
    assert warning["code"] == "login-in-box"
    assert desk.tokens_in(desk.project.state_dir, desk.project.repo) == []


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("worker", "code"),
    [
        ({"base_url": "https://elsewhere.test/v1"}, "login-base-url"),
        ({"kind": "command", "command": ["true"], "model": None}, "login-unsupported"),
    ],
)
async def test_what_cannot_have_a_login_is_refused_at_the_start(
    desk: Desk, worker: dict[str, Any], code: str
) -> None:
    with ModelServer() as server, pytest.raises(UsageError) as error:
        await desk.run(server, **worker)
    assert error.value.code == code
    assert "task.yaml:" in error.value.path
    assert not desk.project.state_dir.exists()


async def test_nobody_logged_in_is_told_before_anything_starts(desk: Desk) -> None:
    (desk.home / "auth.json").unlink()
    with ModelServer() as server, pytest.raises(InfraError) as error:
        await desk.run(server)
    assert (error.value.code, error.value.nothing_spent) == ("login-missing", True)
    assert not desk.project.state_dir.exists()
