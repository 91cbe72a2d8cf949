"""The real Claude Code against a scripted model, in an environment built from nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentrunner.workers.base import CommandRun
from agentrunner.workers.claude_login import TOKEN_ENV
from tests.kit.claude import require_claude
from tests.kit.model_server import ModelServer
from tests.kit.plain_run import KEY, PlainRun
from tests.kit.scenario import ONE_STEP, Scenario, Shell, Turn

CHOSEN = "5a2f9a30-5a5c-4c7e-9a39-0a5a1a9d7b11"


@pytest.fixture
def claude(tmp_path: Path) -> PlainRun:
    return PlainRun("claude-code", require_claude(), tmp_path, "claude-sonnet-4-5")


def settings_of_the_repository(claude: PlainRun, settings: object) -> None:
    folder = claude.repo / ".claude"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(settings))


def test_without_our_sandbox_it_edits_and_tells_its_model_and_cost(claude: PlainRun) -> None:
    claude.sandboxed = False
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = claude.run(server)
    assert reading.completed and (claude.repo / "hello.py").exists()
    assert reading.model == "claude-sonnet-4-5"
    assert reading.usd == pytest.approx(2 * (1000 * 3 + 200 * 0.3 + 34 * 15) / 1e6)


def test_a_session_has_the_id_that_was_chosen_and_is_resumed(claude: PlainRun) -> None:
    turns = [*ONE_STEP, Turn("Going on.", [Shell("echo no >&2; exit 3")]), Turn("Looked at it.")]
    with ModelServer(Scenario(turns)) as server:
        first = claude.run(server, new_session=CHOSEN)
        second = claude.run(server, "Go on", session=CHOSEN, booked=(2400, 68))
    assert first.session_id == second.session_id == CHOSEN
    assert second.completed and second.summary == "Looked at it."
    assert second.commands == (CommandRun("echo no >&2; exit 3", 3, "failed"),)
    # Unlike Codex it tells what this run used, not the session.
    assert (second.input_tokens, second.output_tokens) == (2400, 68)


def test_a_login_is_taken_by_its_token_alone(claude: PlainRun) -> None:
    claude.token_env = TOKEN_ENV
    with ModelServer(Scenario(ONE_STEP)) as server:
        assert claude.run(server).completed
    assert {request.headers.get("authorization") for request in server.requests} == {
        f"Bearer {KEY}"
    }
    assert not any("x-api-key" in request.headers for request in server.requests)


def test_the_repository_is_obeyed_but_does_not_say_where_the_model_is(claude: PlainRun) -> None:
    elsewhere = {"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}
    settings_of_the_repository(claude, elsewhere)
    (claude.repo / "CLAUDE.md").write_text("Speak of the heron.\n")
    with ModelServer(Scenario(ONE_STEP)) as server:
        assert claude.run(server).completed
    assert "Speak of the heron." in str(server.requests[0].body)


def test_what_was_denied_is_told_though_it_calls_that_a_success(claude: PlainRun) -> None:
    settings_of_the_repository(claude, {"permissions": {"deny": ["Bash(touch:*)"]}})
    turns = [Turn("Trying.", [Shell("touch seen.txt")]), Turn("All is done.")]
    with ModelServer(Scenario(turns)) as server:
        reading = claude.run(server)
    assert reading.denied == ("Bash",)
    assert not (claude.repo / "seen.txt").exists()
