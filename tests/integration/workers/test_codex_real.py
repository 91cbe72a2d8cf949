"""The real Codex CLI against a scripted model, in an environment built from nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.task.crew import WorkerSpec
from agentrunner.workers.base import CommandRun, Ended, WorkerCall, WorkerEvent, WorkerReading
from agentrunner.workers.codex import TESTED, CodexWorker
from tests.kit.codex import require_codex
from tests.kit.missing import missing
from tests.kit.model_server import ModelServer
from tests.kit.scenario import Patch, Scenario, Shell, Turn, Write

KEY = "sk-test-0123456789abcdef"
ONE_STEP = [Turn("Creating it.", [Write("hello.py", "print('hello')\n")]), Turn("Created.")]


@pytest.fixture(scope="module")
def binary() -> Path:
    return require_codex()


@dataclass
class Codex:
    """Runs the adapter's command line as a plain process."""

    binary: Path
    root: Path
    sandboxed: bool = True

    def worker(self, server: ModelServer) -> CodexWorker:
        return CodexWorker(WorkerSpec(command=[str(self.binary)], base_url=server.base_url))

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    def start(
        self, server: ModelServer, prompt: str, session: str | None
    ) -> subprocess.Popen[bytes]:
        home = self.root / "home"
        self.repo.mkdir(exist_ok=True)
        call = WorkerCall(
            worker_run_id="w1",
            prompt=prompt,
            workdir=self.repo,
            home=home,
            prompt_file=home / "prompt.md",
            mode="resume" if session else "exec",
            session_id=session,
            model="gpt-5.5",
            sandboxed=self.sandboxed,
        )
        command = self.worker(server).command(call)
        for folder in command.folders:
            folder.mkdir(parents=True, exist_ok=True)
        env = {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"}
        with (self.root / "stdout").open("wb") as out, (self.root / "stderr").open("wb") as err:
            process = subprocess.Popen(
                command.argv,
                env={**env, **command.env, command.key_env: KEY},
                cwd=call.workdir,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
            )
        assert process.stdin is not None
        process.stdin.write(command.stdin)
        process.stdin.close()
        return process

    def run(
        self,
        server: ModelServer,
        prompt: str = "Create hello.py",
        *,
        session: str | None = None,
        booked: tuple[int, int] = (0, 0),
    ) -> WorkerReading:
        process = self.start(server, prompt, session)
        return self.read(server, process.wait(timeout=60), booked)

    def read(
        self, server: ModelServer, exit_code: int, booked: tuple[int, int] = (0, 0)
    ) -> WorkerReading:
        ended = Ended(exit_code, "exited", self.root / "stdout", self.root / "stderr", session_tokens=booked)
        return self.worker(server).read(ended)

    def events(self, server: ModelServer) -> list[WorkerEvent]:
        return self.worker(server).events().feed((self.root / "stdout").read_bytes())


@pytest.fixture
def codex(binary: Path, tmp_path: Path) -> Codex:
    return Codex(binary, tmp_path)


def test_the_installed_version_is_the_tested_one(binary: Path) -> None:
    probe = CodexWorker(WorkerSpec(command=[str(binary)])).probe()
    assert (probe.version, probe.problem) == (TESTED, "")


def test_an_edit_is_made_and_read(codex: Codex) -> None:
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


def test_a_session_is_resumed_and_its_tokens_are_not_booked_twice(codex: Codex) -> None:
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


def test_commands_of_the_model_do_not_see_the_key(codex: Codex) -> None:
    turns = [Turn("Looking.", [Shell("env > seen.txt")]), Turn("Seen.")]
    with ModelServer(Scenario(turns)) as server:
        assert codex.run(server).completed
    seen = (codex.repo / "seen.txt").read_text()
    assert "PATH=" in seen
    assert KEY not in seen


def test_a_patch_is_told_as_changed_files(codex: Codex) -> None:
    patch = "*** Begin Patch\n*** Add File: hello.py\n+print('hello')\n*** End Patch"
    with ModelServer(Scenario([Turn("Patching.", [Patch(patch)]), Turn("Patched.")])) as server:
        assert codex.run(server).completed
        events = codex.events(server)
    changed = [event.fields for event in events if event.kind == "file_changed"]
    assert changed == [{"path": str(codex.repo / "hello.py"), "change": "add"}]


def test_without_our_sandbox_codex_uses_its_own(codex: Codex) -> None:
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
        (Turn("Incorrect API key provided", status=401), "auth: "),
        (Turn("slow down", status=429), "rate_limit: "),
        (Turn("The model `gpt-5.5` does not exist", status=404), "model: "),
        (Turn("half an answer, and then the line is dead", cut=True), "network: "),
    ],
    ids=["401", "429", "404", "cut"],
)
def test_a_failing_model_is_no_completion(codex: Codex, turn: Turn, kind: str) -> None:
    with ModelServer(Scenario([turn])) as server:
        reading = codex.run(server)
    assert not reading.completed
    assert reading.error.startswith(kind), reading.error


def test_a_passing_fault_is_retried(codex: Codex) -> None:
    turns = [Turn("Creating it.", ONE_STEP[0].actions, cut=True, times=1), ONE_STEP[1]]
    with ModelServer(Scenario(turns)) as server:
        reading = codex.run(server)
    assert reading.completed and reading.error == ""
    assert (codex.repo / "hello.py").exists()


def test_an_unknown_session_says_so_on_stderr_only(codex: Codex) -> None:
    with ModelServer(Scenario(ONE_STEP)) as server:
        reading = codex.run(server, session="00000000-0000-7000-8000-000000000000")
    assert not reading.completed
    assert "without the end of the turn" in reading.error


def test_an_interrupt_during_a_command_leaves_no_completion(codex: Codex) -> None:
    turns = [Turn("Sleeping.", [Shell("touch started; sleep 60; touch late")]), Turn("Slept.")]
    with ModelServer(Scenario(turns)) as server:
        process = codex.start(server, "sleep", None)
        wait_until((codex.repo / "started").exists)
        wait_until(lambda: b"command_execution" in (codex.root / "stdout").read_bytes())
        process.send_signal(signal.SIGINT)
        reading = codex.read(server, process.wait(timeout=20))
    assert not reading.completed
    assert reading.commands[0].exit_code is None
    assert not (codex.repo / "late").exists()


def wait_until(happened: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
