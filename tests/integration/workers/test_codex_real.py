"""The real Codex CLI against a scripted model, in an environment built from nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.workers.base import CommandRun
from tests.kit.codex import require_codex
from tests.kit.missing import missing
from tests.kit.model_server import ModelServer
from tests.kit.plain_run import KEY, PlainRun
from tests.kit.scenario import ONE_STEP, Patch, Scenario, Shell, Turn


@pytest.fixture
def codex(tmp_path: Path) -> PlainRun:
    return PlainRun("codex-cli", require_codex(), tmp_path, "gpt-5.5")


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


def test_a_passing_fault_is_retried(codex: PlainRun) -> None:
    turns = [Turn("Creating it.", ONE_STEP[0].actions, cut=True, times=1), ONE_STEP[1]]
    with ModelServer(Scenario(turns)) as server:
        reading = codex.run(server)
    assert reading.completed and reading.error == ""
    assert (codex.repo / "hello.py").exists()


def test_tools_that_could_not_be_used_are_no_work(codex: PlainRun) -> None:
    with ModelServer(Scenario([Turn("All is done.")])) as server:
        reading = codex.run(server)
    assert (reading.completed, reading.actions) == (True, 0)
