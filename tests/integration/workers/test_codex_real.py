"""The real Codex CLI against a scripted model, in an environment built from nothing."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import CommandRun, FailureKind
from agentrunner.workers.codex import TESTED, CodexWorker
from tests.kit.codex import require_codex
from tests.kit.missing import missing
from tests.kit.model_server import ModelServer
from tests.kit.plain_run import KEY, PlainRun, wait_until
from tests.kit.scenario import Patch, Scenario, Shell, Turn, Write

ONE_STEP = [Turn("Creating it.", [Write("hello.py", "print('hello')\n")]), Turn("Created.")]


@pytest.fixture(scope="module")
def binary() -> Path:
    return require_codex()


@pytest.fixture
def codex(binary: Path, tmp_path: Path) -> PlainRun:
    return PlainRun("codex-cli", binary, tmp_path, "gpt-5.5")


def test_the_installed_version_is_the_tested_one(binary: Path) -> None:
    probe = CodexWorker(WorkerSpec(command=[str(binary)])).probe()
    assert (probe.version, probe.problem) == (TESTED, "")


def test_an_edit_is_made_and_read(codex: PlainRun) -> None:
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = codex.run(server, "--help is not an option; $(touch evil) neither")
        events = codex.events(server)
    assert (codex.repo / "hello.py").read_text() == "print('hello')\n"
    assert [path.name for path in codex.repo.iterdir()] == ["hello.py"]
    assert reading.completed, (codex.root / "stderr").read_text()
    assert reading.summary == "Created."
    assert [run.exit_code for run in reading.commands] == [0]
    assert (reading.input_tokens, reading.output_tokens) == (2400, 68)
    assert [event.kind for event in events] == [
        *("text", "command_started", "command_finished", "text", "usage"),
    ]
    assert {request.bearer for request in server.requests} == {KEY}
    assert "--help is not an option; $(touch evil) neither" in str(server.requests[0].body)


def test_a_session_is_resumed_and_its_tokens_are_not_booked_twice(codex: PlainRun) -> None:
    turns = [*ONE_STEP, Turn("Going on.", [Shell("exit 3")]), Turn("Looked at it.")]
    with ModelServer(Scenario(turns)) as server:
        first = codex.run(server)
        second = codex.run(
            server,
            "Go on",
            session=first.session_id,
            booked=(first.input_tokens, first.output_tokens),
        )
    assert first.session_id and second.session_id == first.session_id
    assert second.completed and second.summary == "Looked at it."
    assert second.commands == (CommandRun("exit 3", 3, "failed"),)
    assert (second.input_tokens, second.output_tokens) == (2400, 68)


def test_commands_of_the_model_do_not_see_the_key(codex: PlainRun) -> None:
    turns = [Turn("Looking.", [Shell("env > seen.txt")]), Turn("Seen.")]
    with ModelServer(Scenario(turns)) as server:
        assert codex.run(server).completed
    seen = (codex.repo / "seen.txt").read_text()
    assert "PATH=" in seen
    assert KEY not in seen


def test_a_patch_is_told_as_changed_files(codex: PlainRun) -> None:
    patch = "*** Begin Patch\n*** Add File: hello.py\n+print('hello')\n*** End Patch"
    with ModelServer(Scenario([Turn("Patching.", [Patch(patch)]), Turn("Patched.")])) as server:
        assert codex.run(server).completed
        events = codex.events(server)
    changed = [event.fields for event in events if event.kind == "file_changed"]
    assert changed == [{"path": str(codex.repo / "hello.py"), "change": "add"}]


def test_without_our_sandbox_codex_uses_its_own(codex: PlainRun) -> None:
    codex.sandboxed = False
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = codex.run(server)
    if not reading.commands:
        missing("Codex's own sandbox does not start on this machine")
    assert (codex.repo / "hello.py").exists()
    assert reading.completed


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (Turn("Incorrect API key provided", status=401), "auth"),
        (Turn("slow down", status=429), "rate_limit"),
        (Turn("The model `gpt-5.5` does not exist", status=404), "model"),
        (Turn("half an answer, and then the line is dead", cut=True), "network"),
    ],
    ids=["401", "429", "404", "cut"],
)
def test_a_failing_model_is_no_completion(codex: PlainRun, turn: Turn, kind: FailureKind) -> None:
    with ModelServer(Scenario([turn])) as server:
        reading = codex.run(server)
    assert not reading.completed
    assert reading.failure is not None and reading.failure.kind == kind, reading


def test_a_passing_fault_is_retried(codex: PlainRun) -> None:
    turns = [Turn("Creating it.", ONE_STEP[0].actions, cut=True, times=1), ONE_STEP[1]]
    with ModelServer(Scenario(turns)) as server:
        reading = codex.run(server)
    assert reading.completed and reading.error == ""
    assert (codex.repo / "hello.py").exists()


def test_an_unknown_session_says_so_on_stderr_only(codex: PlainRun) -> None:
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = codex.run(server, session="00000000-0000-7000-8000-000000000000")
    assert not reading.completed
    assert reading.session_lost and reading.session_id is None
    assert "without the end of the turn" in reading.error


def test_a_flag_that_is_gone_is_a_sentence(codex: PlainRun) -> None:
    codex.flags = ("--frobnicate",)
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = codex.run(server)
    assert reading.failure is not None and reading.failure.kind == "protocol"
    assert "--frobnicate" in reading.error and TESTED in reading.error


def test_tools_that_could_not_be_used_are_no_work(codex: PlainRun) -> None:
    with ModelServer(Scenario([Turn("All is done.")])) as server:
        reading = codex.run(server)
    assert (reading.completed, reading.actions) == (True, 0)


def test_an_interrupt_during_a_command_leaves_no_completion(codex: PlainRun) -> None:
    turns = [Turn("Sleeping.", [Shell("touch started; sleep 60; touch late")]), Turn("Slept.")]
    with ModelServer(Scenario(turns)) as server:
        process = codex.start(server, "sleep")
        wait_until((codex.repo / "started").exists)
        wait_until(lambda: b"command_execution" in codex.stdout.read_bytes())
        process.send_signal(signal.SIGINT)
        reading = codex.read(server, process.wait(timeout=20))
    assert not reading.completed
    assert reading.commands[0].exit_code is None
    assert not (codex.repo / "late").exists()
