"""The real Codex CLI and Claude Code against a scripted model, in an environment of our own."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import FailureKind
from agentrunner.workers.member import make_worker
from tests.kit.claude import require_claude
from tests.kit.codex import require_codex
from tests.kit.model_server import ModelServer
from tests.kit.plain_run import KEY, PlainRun, wait_until
from tests.kit.scenario import ONE_STEP, Scenario, Shell, Turn

CLIS = {
    "codex-cli": (require_codex, "gpt-5.5"),
    "claude-code": (require_claude, "claude-sonnet-4-5"),
}
ODD = "--help is not an option; $(touch evil) neither"


def cli_of(kind: str, place: Path) -> PlainRun:
    require, model = CLIS[kind]
    return PlainRun(kind, require(), place, model)


@pytest.fixture(params=CLIS)
def cli(request: pytest.FixtureRequest, tmp_path: Path) -> PlainRun:
    return cli_of(request.param, tmp_path)


def test_the_installed_version_is_the_tested_one(cli: PlainRun) -> None:
    probe = make_worker(WorkerSpec(kind=cli.kind, command=[str(cli.binary)])).probe()
    assert (probe.version, probe.problem) == (probe.tested, "")


def test_an_edit_is_made_and_read(cli: PlainRun) -> None:
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = cli.run(server, ODD)
        events = cli.events(server)
    assert (cli.repo / "hello.py").read_text() == "print('hello')\n"
    assert [path.name for path in cli.repo.iterdir()] == ["hello.py"]
    assert reading.completed, (cli.root / "stderr").read_text()
    assert reading.summary == "Created."
    assert (reading.actions, reading.denied) == (1, ())
    assert [run.exit_code for run in reading.commands] == [0 if cli.kind == "codex-cli" else None]
    assert (reading.input_tokens, reading.output_tokens) == (2400, 68)
    assert [event.kind for event in events] == [
        *("text", "command_started", "command_finished", "text", "usage"),
    ]
    assert {request.bearer for request in server.requests} == {KEY}
    assert ODD in str(server.requests[0].body)


@pytest.mark.series(3)
@pytest.mark.parametrize(
    ("kind", "turn", "failure"),
    [
        ("codex-cli", Turn("Incorrect API key provided", status=401), "auth"),
        ("codex-cli", Turn("slow down", status=429), "rate_limit"),
        ("codex-cli", Turn("The model `gpt-5.5` does not exist", status=404), "model"),
        ("codex-cli", Turn("half an answer, and then the line is dead", cut=True), "network"),
        ("claude-code", Turn("invalid x-api-key", status=401), "auth"),
        ("claude-code", Turn("slow down", status=429, headers={"Retry-After": "3600"}),
         "rate_limit"),
        ("claude-code", Turn("model: claude-sonnet-4-5", status=404), "model"),
        ("claude-code", Turn("prompt is too long: 200001 tokens", status=400), "context"),
        ("claude-code", Turn("oops", status=500), "server"),
        ("claude-code", Turn("Overloaded", status=529), "rate_limit"),
    ],
    ids=lambda one: one if isinstance(one, str) else str(one.status),
)  # fmt: skip
def test_a_failing_model_is_no_completion(
    tmp_path: Path, kind: str, turn: Turn, failure: FailureKind
) -> None:
    with ModelServer(Scenario([turn])) as server:
        reading = cli_of(kind, tmp_path).run(server)
    assert not reading.completed
    assert reading.failure is not None and reading.failure.kind == failure, reading
    if kind == "claude-code":
        assert len(server.requests) <= 3  # its own ten tries would take minutes


def test_an_unknown_session_is_lost(cli: PlainRun) -> None:
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = cli.run(server, session="00000000-0000-7000-8000-000000000000")
    assert not reading.completed
    assert reading.session_lost and reading.session_id is None and reading.failure is None
    assert server.requests == []


def test_a_flag_that_is_gone_is_a_sentence(cli: PlainRun) -> None:
    cli.flags = ("--frobnicate",)
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = cli.run(server)
        tested = cli.worker(server).probe().tested
    assert reading.failure is not None and reading.failure.kind == "protocol"
    assert "--frobnicate" in reading.error and tested in reading.error


def test_an_interrupt_during_a_command_leaves_no_completion(cli: PlainRun) -> None:
    turns = [Turn("Sleeping.", [Shell("touch started; sleep 60; touch late")]), Turn("Slept.")]
    with ModelServer(Scenario(turns)) as server:
        process = cli.start(server, "sleep")
        wait_until((cli.repo / "started").exists)
        wait_until(lambda: b"touch started" in cli.stdout.read_bytes())
        process.send_signal(signal.SIGINT)
        reading = cli.read(server, process.wait(timeout=20))
    assert not reading.completed
    assert reading.commands[0].exit_code is None
    assert not (cli.repo / "late").exists()
