"""The real Claude Code against a scripted model, in an environment built from nothing."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import CommandRun, FailureKind
from agentrunner.workers.claude import TESTED, ClaudeWorker
from agentrunner.workers.claude_login import TOKEN_ENV
from tests.kit.claude import require_claude
from tests.kit.model_server import ModelServer
from tests.kit.plain_run import KEY, PlainRun, wait_until
from tests.kit.scenario import Scenario, Shell, Turn, Write

ONE_STEP = [Turn("Creating it.", [Write("hello.py", "print('hello')\n")]), Turn("Created.")]
CHOSEN = "5a2f9a30-5a5c-4c7e-9a39-0a5a1a9d7b11"
OTHER = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def binary() -> Path:
    return require_claude()


@pytest.fixture
def claude(binary: Path, tmp_path: Path) -> PlainRun:
    return PlainRun("claude-code", binary, tmp_path, "claude-sonnet-4-5")


def settings_of_the_repository(claude: PlainRun, settings: object) -> None:
    folder = claude.repo / ".claude"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(settings))


def test_the_installed_version_is_the_tested_one(binary: Path) -> None:
    probe = ClaudeWorker(WorkerSpec(command=[str(binary)])).probe()
    assert (probe.version, probe.problem) == (TESTED, "")


@pytest.mark.series(2)
@pytest.mark.parametrize("sandboxed", [True, False])
def test_an_edit_is_made_and_read(claude: PlainRun, sandboxed: bool) -> None:
    claude.sandboxed = sandboxed
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = claude.run(server, "--help is not an option; $(touch evil) neither")
        events = claude.events(server)
    assert (claude.repo / "hello.py").read_text() == "print('hello')\n"
    assert [path.name for path in claude.repo.iterdir()] == ["hello.py"]
    assert reading.completed, (claude.root / "stderr").read_text()
    assert reading.summary == "Created."
    assert (reading.actions, reading.denied) == (1, ())
    assert reading.model == "claude-sonnet-4-5"
    assert (reading.input_tokens, reading.output_tokens) == (2400, 68)
    assert reading.usd == pytest.approx(2 * (1000 * 3 + 200 * 0.3 + 34 * 15) / 1e6)
    assert [event.kind for event in events] == [
        *("text", "command_started", "command_finished", "text", "usage"),
    ]
    assert {request.bearer for request in server.requests} == {KEY}
    assert "--help is not an option; $(touch evil) neither" in str(server.requests[0].body)


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


def test_an_unknown_session_is_lost(claude: PlainRun) -> None:
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = claude.run(server, session=OTHER)
    assert not reading.completed
    assert reading.session_lost and reading.session_id is None and reading.failure is None
    assert server.requests == []


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


@pytest.mark.series(3)
@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (Turn("invalid x-api-key", status=401), "auth"),
        (Turn("slow down", status=429, headers={"Retry-After": "3600"}), "rate_limit"),
        (Turn("model: claude-sonnet-4-5", status=404), "model"),
        (Turn("prompt is too long: 200001 tokens", status=400), "context"),
        (Turn("oops", status=500), "server"),
        (Turn("Overloaded", status=529), "rate_limit"),
    ],
    ids=["401", "429", "404", "context", "500", "overloaded"],
)
def test_a_failing_model_is_no_completion(claude: PlainRun, turn: Turn, kind: FailureKind) -> None:
    with ModelServer(Scenario([turn])) as server:
        reading = claude.run(server)
    assert not reading.completed
    assert reading.failure is not None and reading.failure.kind == kind, reading
    assert len(server.requests) <= 3  # its own ten tries would take minutes


def test_a_flag_that_is_gone_is_a_sentence(claude: PlainRun) -> None:
    claude.flags = ("--frobnicate",)
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = claude.run(server)
    assert reading.failure is not None and reading.failure.kind == "protocol"
    assert "--frobnicate" in reading.error and TESTED in reading.error


def test_an_interrupt_during_a_command_leaves_no_completion(claude: PlainRun) -> None:
    turns = [Turn("Sleeping.", [Shell("touch started; sleep 60; touch late")]), Turn("Slept.")]
    with ModelServer(Scenario(turns)) as server:
        process = claude.start(server, "sleep", new_session=CHOSEN)
        wait_until((claude.repo / "started").exists)
        process.send_signal(signal.SIGINT)
        reading = claude.read(server, process.wait(timeout=20))
    assert not reading.completed
    assert reading.session_id == CHOSEN
    assert reading.commands[0].exit_code is None
    assert not (claude.repo / "late").exists()
