"""The token of `claude setup-token`, and which kinds have a login at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.errors import InfraError
from agentrunner.workers.login import Login, login_for

TOKEN = "sk-ant-oat01-" + "7b" * 20


def login(home: Path, **environ: str) -> Login:
    found = login_for("claude-code", environ, home)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["command", "mock", "gemini-cli"])
def test_other_kinds_have_none(kind: str, tmp_path: Path) -> None:
    assert login_for(kind, {}, tmp_path) is None


async def test_the_token_is_taken_as_it_is(tmp_path: Path) -> None:
    found = login(tmp_path, CLAUDE_CODE_OAUTH_TOKEN=f" {TOKEN}\n")
    access = await found.access(3600)
    assert (access.token, access.token_env) == (TOKEN, "CLAUDE_CODE_OAUTH_TOKEN")
    assert (access.base_url, access.expires_at) == ("https://api.anthropic.com", None)
    assert found.describe().usable
    assert TOKEN not in f"{access!r} {found.describe()!r}"


async def test_a_refused_token_is_over_and_cannot_be_refreshed(tmp_path: Path) -> None:
    found = login(tmp_path, CLAUDE_CODE_OAUTH_TOKEN=TOKEN)
    access = await found.access(3600)
    with pytest.raises(InfraError) as error:
        await found.access(3600, refused=access.fingerprint)
    assert error.value.code == "login-expired"
    assert TOKEN not in str(error.value)


async def test_without_a_token_it_is_said_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InfraError) as error:
        await login(tmp_path).access(3600)
    assert error.value.code == "login-missing"
    assert "claude setup-token" in error.value.remedy


def test_an_interactive_login_is_seen_and_left_alone(tmp_path: Path) -> None:
    own = tmp_path / ".claude" / ".credentials.json"
    own.parent.mkdir()
    own.write_text('{"claudeAiOauth": {"refreshToken": "r"}}', encoding="utf-8")
    state = login(tmp_path).describe()
    assert not state.usable
    assert "cannot be shared" in state.text
    elsewhere = login(tmp_path, CLAUDE_CONFIG_DIR=str(tmp_path / "other")).describe()
    assert elsewhere.text == "CLAUDE_CODE_OAUTH_TOKEN is not set"
