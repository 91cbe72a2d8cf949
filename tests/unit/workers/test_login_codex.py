"""The login of Codex: refreshed on this machine only, each refresh token once, nothing lost."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import resource
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import AgentRunnerError, InfraError, LockHeld
from agentrunner.workers import codex_login
from agentrunner.workers.login import Access, Login, login_for
from tests.kit.token_issuer import ACCOUNT, EMAIL, TokenIssuer

LONG = 7200.0
"""Longer than the issuer's tokens live."""


@pytest.fixture
def issuer() -> Iterator[TokenIssuer]:
    with TokenIssuer() as started:
        yield started


class Host:
    """A home with a login of Codex."""

    def __init__(self, home: Path, issuer: TokenIssuer) -> None:
        self.home = home
        self.file = home / ".codex" / "auth.json"
        self.environ = {"CODEX_REFRESH_TOKEN_URL_OVERRIDE": issuer.url}

    @property
    def login(self) -> Login:
        login = login_for("codex-cli", self.environ, self.home)
        assert login is not None
        return login

    def access(self, seconds: float = 60, refused: str = "") -> Access:
        return asyncio.run(self.login.access(seconds, refused=refused))

    def refused(self, seconds: float = LONG, refused: str = "") -> AgentRunnerError:
        with pytest.raises(AgentRunnerError) as error:
            self.access(seconds, refused)
        said = f"{error.value} {error.value.remedy} {error.value.details}"
        assert "refresh-" not in said and "eyJ" not in said
        return error.value

    @property
    def tokens(self) -> dict[str, str]:
        return dict(self.document["tokens"])

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads(self.file.read_bytes()))


@pytest.fixture
def host(tmp_path: Path, issuer: TokenIssuer) -> Host:
    made = Host(tmp_path, issuer)
    issuer.write_login(made.file)
    return made


def test_a_token_that_is_good_long_enough_is_taken_as_it_is(
    host: Host, issuer: TokenIssuer
) -> None:
    before = host.file.read_bytes()
    access = host.access()
    assert issuer.accepts(access.token)
    assert access.base_url == "https://chatgpt.com/backend-api/codex"
    assert access.env == {"AR_ACCOUNT_ID": ACCOUNT}
    assert access.expires_at == pytest.approx(time.time() + 3600, abs=10)
    assert host.file.read_bytes() == before
    assert issuer.asked == []


def test_one_that_ends_too_soon_is_refreshed_as_codex_does_it(
    host: Host, issuer: TokenIssuer
) -> None:
    issuer.write_login(host.file, something_new={"kept": True})
    host.file.chmod(0o640)
    before = host.document
    access = host.access(LONG)
    after = host.document
    assert access.token == after["tokens"]["access_token"] != before["tokens"]["access_token"]
    assert issuer.spent == [before["tokens"]["refresh_token"]]
    assert issuer.asked[0]["client_id"] == "app_EMoamEEZ73f0CkXaXp7hrann"
    assert after["last_refresh"] > before["last_refresh"]
    assert after["something_new"] == {"kept": True}
    assert after["tokens"]["account_id"] == ACCOUNT
    assert list(after) == list(before)
    assert host.file.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in host.file.parent.iterdir()) == ["auth.json", "auth.lock"]


def test_a_refused_token_is_refreshed_though_its_time_is_not_up(
    host: Host, issuer: TokenIssuer
) -> None:
    first = host.access()
    second = host.access(refused=first.fingerprint)
    assert second.token != first.token
    assert host.access(refused=first.fingerprint).token == second.token
    assert len(issuer.spent) == 1


def test_a_link_stays_one(host: Host, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.json"
    host.file.rename(real)
    host.file.symlink_to(real)
    token = host.access(LONG).token
    assert host.file.is_symlink()
    assert json.loads(real.read_bytes())["tokens"]["access_token"] == token


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_keeps_its_owner(host: Host) -> None:
    os.chown(host.file, 12345, 12346)
    host.access(LONG)
    facts = host.file.stat()
    assert (facts.st_uid, facts.st_gid) == (12345, 12346)


def test_nothing_shows_a_token(host: Host) -> None:
    access = host.access()
    told = f"{access!r} {host.login.describe()!r}"
    assert not any(token in told for token in host.tokens.values() if token != ACCOUNT)
    assert access.fingerprint not in access.token
    assert f"logged in as {EMAIL} (plus)" in host.login.describe().text


def test_a_refusing_issuer_ends_the_login_only_when_the_token_ends(
    host: Host, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex_login, "_LOOK_AGAIN_SEC", 0.1)
    host.access(LONG)
    old = {**host.document, "tokens": {**host.tokens, "refresh_token": issuer.spent[0]}}
    host.file.write_text(json.dumps(old), encoding="utf-8")
    good = host.access(LONG)  # refused, but it is good for an hour
    assert issuer.accepts(good.token)
    error = host.refused(refused=good.fingerprint)
    assert (error.code, error.exit_code) == ("login-expired", 5)
    assert "refresh token reused" in error.message
    assert error.remedy.startswith("codex login")


def test_an_issuer_that_is_away_matters_only_when_the_token_ends(
    host: Host, issuer: TokenIssuer
) -> None:
    issuer.faults = [(503, {}, {}), (503, {}, {})]
    good = host.access(LONG)
    error = host.refused(refused=good.fingerprint)
    assert error.code == "login-unreachable"
    assert host.access(LONG).token != good.token  # it is back, and nothing was lost


def test_an_answer_without_an_access_token_keeps_what_it_holds(
    host: Host, issuer: TokenIssuer
) -> None:
    issuer.faults = [(200, {}, {"refresh_token": issuer.tokens()["refresh_token"]})]
    good = host.access(LONG)
    assert issuer.accepts(good.token)
    host.access(LONG)
    assert len(issuer.asked) == 2
    assert issuer.reused == []


def test_a_redirect_is_not_followed_with_the_refresh_token(host: Host, issuer: TokenIssuer) -> None:
    with TokenIssuer() as other:
        issuer.faults = [(307, {"Location": other.url}, {})]
        first = host.access()
        assert host.refused(refused=first.fingerprint).code == "login-unreachable"
        assert other.asked == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CODEX_REFRESH_TOKEN_URL_OVERRIDE", "http://issuer.test/token"),
        ("AGENTRUNNER_CODEX_LOGIN_URL", "http://model.test/v1"),
        ("AGENTRUNNER_CODEX_LOGIN_URL", "ftp://model.test"),
        ("AGENTRUNNER_CODEX_LOGIN_URL", "https://user:word@model.test"),
    ],
)
def test_no_token_crosses_the_network_in_the_clear(host: Host, name: str, value: str) -> None:
    host.environ[name] = value
    error = host.refused()
    assert (error.code, error.path) == ("base-url-refused", name)


def test_codex_may_have_been_faster(host: Host, issuer: TokenIssuer) -> None:
    """It asks the issuer before it takes its lock: then its tokens are taken, not an error told."""
    spent = host.access(LONG)
    theirs = host.document
    mine = {**theirs, "tokens": {**theirs["tokens"], "refresh_token": issuer.spent[0]}}
    host.file.write_text(json.dumps(mine), encoding="utf-8")
    issuer.go_on.clear()
    issuer.arrived.clear()

    def codex() -> None:
        issuer.arrived.wait()
        host.file.write_text(json.dumps(theirs), encoding="utf-8")
        issuer.go_on.set()

    thread = threading.Thread(target=codex)
    thread.start()
    access = host.access(refused=spent.fingerprint)
    thread.join()
    assert access.token == theirs["tokens"]["access_token"]


def test_a_refresh_is_finished_though_nobody_waits_for_it(host: Host, issuer: TokenIssuer) -> None:
    """Ctrl-C between the issuer's answer and the file must not lose the only refresh token."""
    issuer.go_on.clear()

    async def cancelled() -> None:
        task = asyncio.create_task(host.login.access(LONG))
        await asyncio.to_thread(issuer.arrived.wait)
        task.cancel()
        issuer.go_on.set()
        await asyncio.wait([task])

    asyncio.run(cancelled())
    assert issuer.spent != []
    assert host.tokens["refresh_token"] not in issuer.spent
    host.access(LONG)
    assert issuer.reused == []


def test_a_full_disk_is_noticed_before_the_token_is_spent(host: Host, issuer: TokenIssuer) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 * 1024, hard))
    try:
        error = host.refused()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.code == "login-unwritable"
    assert issuer.asked == []
    assert sorted(path.name for path in host.file.parent.iterdir()) == ["auth.json", "auth.lock"]


def test_a_lock_that_cannot_be_made_costs_no_token(host: Host, issuer: TokenIssuer) -> None:
    (host.file.parent / "auth.lock").mkdir()
    assert host.refused().code == "login-unwritable"
    assert issuer.asked == []


def test_a_login_that_is_held_for_ever_is_told(
    host: Host, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex_login, "PATIENCE_SEC", 0.05)
    with (host.file.parent / "auth.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert isinstance(host.refused(), LockHeld)
    assert issuer.asked == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "is not logged in"),
        ("{", "is damaged"),
        ("[]", "holds no ChatGPT login"),
        ('{"tokens": null}', "holds no ChatGPT login"),
        ('{"tokens": {"access_token": "a"}}', "holds no ChatGPT login"),
        ('{"OPENAI_API_KEY": "sk-1", "tokens": null}', "with an API key"),
    ],
)
def test_what_is_no_login_is_told_as_such(host: Host, content: str | None, told: str) -> None:
    host.file.unlink()
    if content is not None:
        host.file.write_text(content, encoding="utf-8")
    error = host.refused()
    assert isinstance(error, InfraError)
    assert (error.code, error.nothing_spent) == ("login-missing", True)
    assert told in error.message
    state = host.login.describe()
    assert not state.usable and told in state.text and state.cure


def test_a_token_that_does_not_tell_its_end_is_used_until_it_is_refused(
    host: Host, issuer: TokenIssuer
) -> None:
    document = host.document
    document["tokens"]["access_token"] = "opaque"
    host.file.write_text(json.dumps(document), encoding="utf-8")
    access = host.access(LONG)
    assert (access.token, access.expires_at) == ("opaque", None)
    assert issuer.accepts(host.access(LONG, refused=access.fingerprint).token)


def test_codex_home_is_where_the_process_says(host: Host, tmp_path: Path) -> None:
    host.environ["CODEX_HOME"] = str(tmp_path / "other")
    assert host.refused().code == "login-missing"
    host.file.parent.rename(tmp_path / "other")
    assert host.access().token
