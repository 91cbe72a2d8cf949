"""What a worker shows as its credential: by key, by login, with a gateway and without."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.config.spec import RunnerSection, TaskSpec
from agentrunner.errors import UsageError
from agentrunner.launching.access import CliCredential, check_login, worker_access
from agentrunner.workers.base import WireName, Worker
from agentrunner.workers.codex import CodexWorker
from agentrunner.workers.mock import MockWorker
from tests.kit.task_specs import task_spec_of
from tests.kit.token_issuer import ACCOUNT, TokenIssuer

TOKEN = "sk-ant-oat01-" + "7b" * 20
REAL = "sk-real-" + "1d" * 20


class Claude(MockWorker):
    """An adapter as the one of Claude Code will be, as far as credentials go."""

    kind = "claude-code"
    needs_model = True
    wire: WireName = "anthropic"
    key_names: tuple[str, ...] = ("ANTHROPIC_API_KEY",)
    provider_url = "https://api.anthropic.com"


def task(**worker: Any) -> TaskSpec:
    return task_spec_of(runner=RunnerSection(worker=WorkerSpec(**worker)))


async def credential_for(
    spec: TaskSpec,
    worker: Worker,
    environ: Mapping[str, str],
    *,
    gateway: bool,
    replays: bool = False,
) -> CliCredential:
    access = worker_access(spec, worker, environ, replays=replays)
    return await access.credential(60, gateway=gateway)


async def test_a_key_stays_with_the_gateway() -> None:
    spec = task()
    worker = CodexWorker(spec.runner.worker)
    shown = await credential_for(spec, worker, {"CODEX_API_KEY": REAL}, gateway=True)
    assert shown.upstream is not None
    assert (shown.upstream.credential, shown.upstream.scheme) == (REAL, "key")
    assert shown.key == shown.upstream.placeholder != REAL
    assert REAL not in repr(shown)
    bare = await credential_for(spec, worker, {"CODEX_API_KEY": REAL}, gateway=False)
    assert (bare.upstream, bare.key) == (None, REAL)


async def test_a_login_of_codex_stays_with_the_gateway(tmp_path: Path) -> None:
    spec = task(auth="login")
    worker = CodexWorker(spec.runner.worker)
    environ = {"HOME": str(tmp_path), "CODEX_API_KEY": REAL}
    with TokenIssuer() as issuer:
        issuer.write_login(tmp_path / ".codex" / "auth.json")
    shown = await credential_for(spec, worker, environ, gateway=True)
    assert shown.upstream is not None
    upstream = shown.upstream
    assert (upstream.credential, upstream.scheme) == (issuer.made[0], "bearer")
    assert upstream.base_url == "https://chatgpt.com/backend-api/codex"
    assert (shown.key, shown.env) == (upstream.placeholder, {"AR_ACCOUNT_ID": ACCOUNT})
    assert (shown.bare_login, shown.base_url) == (False, "")
    assert list(shown.secrets.values()) == [issuer.made[0]]
    assert issuer.made[0] not in repr(shown)
    bare = await credential_for(spec, worker, environ, gateway=False)
    assert (bare.upstream, bare.key) == (None, issuer.made[0])
    assert bare.base_url == upstream.base_url
    assert bare.bare_login


async def test_a_login_of_claude_goes_by_its_own_variable() -> None:
    spec = task(kind="claude-code", auth="login")
    environ = {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN, "ANTHROPIC_API_KEY": REAL}
    shown = await credential_for(spec, Claude(spec.runner.worker), environ, gateway=True)
    assert shown.upstream is not None
    assert (shown.upstream.wire, shown.upstream.scheme) == ("anthropic", "bearer")
    assert shown.upstream.credential == TOKEN
    # An ANTHROPIC_API_KEY would win over the token, so it goes by its own variable alone.
    assert (shown.token_env, shown.env) == ("CLAUDE_CODE_OAUTH_TOKEN", {})
    assert shown.key == shown.upstream.placeholder


async def test_a_token_that_the_task_names_is_taken_and_its_other_variables_are_not(
    tmp_path: Path,
) -> None:
    env = {"CLAUDE_CODE_OAUTH_TOKEN": "env:TEAM_TOKEN"}
    spec = task(kind="claude-code", auth="login", env=env)
    worker = Claude(spec.runner.worker)
    shown = await credential_for(spec, worker, {"TEAM_TOKEN": TOKEN}, gateway=True)
    assert shown.upstream is not None
    assert shown.upstream.credential == TOKEN
    evil = {"CODEX_REFRESH_TOKEN_URL_OVERRIDE": "https://evil.test", "CODEX_HOME": "/evil"}
    codex = task(auth="login", env=evil)
    with TokenIssuer(lifetime_sec=3600) as issuer:
        issuer.write_login(tmp_path / ".codex" / "auth.json")
    environ = {"HOME": str(tmp_path)}
    taken = await credential_for(codex, CodexWorker(codex.runner.worker), environ, gateway=True)
    assert taken.upstream is not None
    assert taken.upstream.credential == issuer.made[0]


async def test_a_replay_needs_no_login(tmp_path: Path) -> None:
    spec = task(auth="login")
    worker = CodexWorker(spec.runner.worker)
    shown = await credential_for(spec, worker, {"HOME": str(tmp_path)}, gateway=True, replays=True)
    assert shown.upstream is not None
    assert shown.upstream.credential == ""


def test_a_login_goes_to_no_address_that_a_task_names() -> None:
    spec = task(auth="login", base_url="https://elsewhere.test")
    with pytest.raises(UsageError) as error:
        check_login(spec, CodexWorker(spec.runner.worker), {})
    assert error.value.code == "login-base-url"


def test_what_uses_a_key_needs_no_login(tmp_path: Path) -> None:
    spec = task()
    check_login(spec, CodexWorker(spec.runner.worker), {"HOME": str(tmp_path)})
