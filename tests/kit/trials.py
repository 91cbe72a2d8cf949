"""Whole runs of real worker CLIs: in bubblewrap, under the supervisor, through the gateway.

bench = Bench(place, "codex-cli")
seen = await bench.run(Trial([Turn("No.", refusal="401")]))
assert seen.came.outcome == "auth"
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.gateway.gateway_process import companion
from agentrunner.gateway.order import (
    GATEWAY_PORT,
    GATEWAY_SOCKET,
    PROXY_PORT,
    PROXY_SOCKET,
    GatewayOrder,
    Upstream,
)
from agentrunner.git.snapshots import Snapshots
from agentrunner.money.counters import Usage, read_usage
from agentrunner.sandboxes.base import Door, Request, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.requests import proxy_environment
from agentrunner.storage.locks import me, repository_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import Ledger
from agentrunner.supervisor.client import SupervisedResult, SupervisorOrder, start, wait
from agentrunner.workers.base import Ended, Worker, WorkerCommand, WorkerReading, WorkerRequest
from agentrunner.workers.cli import CliWorker
from agentrunner.workers.member import make_worker
from agentrunner.workers.outcome import WorkerOutcome, outcome_of
from tests.kit.bwrap import require_bwrap
from tests.kit.files import write
from tests.kit.gateway import PLACEHOLDER, REAL_KEY
from tests.kit.missing import missing
from tests.kit.model_server import ModelServer
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.wire import Usage as Tokens

TOOLS = Path(__file__).parents[2] / ".tools"
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
QUICK = ("codex-cli", "claude-code")
SLOW_SEC = 25
"""Others than these need so long to say their first word."""
NOBODY = "http://127.0.0.1:9"
MODELS = {
    "codex-cli": "gpt-5.5",
    "claude-code": "claude-sonnet-4-5",
    "gemini-cli": "gemini-2.5-pro",
}
"""Models that these CLIs know; to the others every name is as good."""
PLACES = (
    "node_modules/.bin",
    "*/node_modules/.bin",
    "workers/*/node_modules/.bin",
    "workers/*/bin",
)
"""Where our scripts install programs, below `.tools`."""


def installed(kind: str) -> Path | None:
    """The program of a CLI: as its own variable names it, in `.tools`, or on PATH."""
    worker = make_worker(WorkerSpec(kind=kind))
    assert isinstance(worker, CliWorker)
    found = sorted(path for place in PLACES for path in TOOLS.glob(f"{place}/{worker.binary}"))
    if not found or os.environ.get(worker.binary_env):
        return worker.probe().path
    return make_worker(WorkerSpec(kind=kind, command=[str(found[0])])).probe().path


@dataclass(frozen=True)
class Trial:
    """What the model of a worker run does, and the run's limits in seconds."""

    turns: Sequence[Turn]
    prompt: str = "Make hello.txt."
    idle_sec: float = 60
    wall_sec: float = 120
    flags: tuple[str, ...] = ()
    sandboxed: bool = True
    """False: the CLI is told that there is no box around it."""
    grace_sec: float | None = None
    """In which it must exit after its last event; None leaves it to the adapter."""
    stop_at: str = ""
    """A file of the repository: when it is there the worker is interrupted."""
    files: Mapping[str, str] = field(default_factory=dict)
    """In the repository before it starts."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Laid over the adapter's; `{home}` is the run's folder for the CLI."""
    down: bool = False
    """Nobody listens where its model should be."""


@dataclass(frozen=True)
class Seen:
    """What a worker run came to, and everything that led to that."""

    came: WorkerOutcome
    reading: WorkerReading
    supervised: SupervisedResult
    used: Usage
    """As the gateway counted."""
    told: Tokens
    """As the model server has told."""
    changed: tuple[str, ...]
    """Paths, by snapshot."""
    home: Path

    @property
    def said(self) -> str:
        """The end of all that the worker printed, for a failing test."""
        files = (self.supervised.stdout, self.supervised.stderr)
        return "\n".join(file.read_text("utf-8", "replace")[-2000:] for file in files)


class Bench:
    """A repository, its box and one kind of worker; runs on it can resume each other's sessions."""

    def __init__(self, place: Path, kind: str, program: Path | None) -> None:
        self.repo = place / "repo"
        self.repo.mkdir(parents=True)
        (self.repo / "README.md").write_text("# Shop\n")
        self._state = place / "state"
        self._folder = RunFolder.create(self._state, "t-00000000", self.repo)
        self._ledger = Ledger(self._folder)
        self._snapshots = Snapshots(self._folder.snapshots_dir, self.repo)
        self._kind = kind
        self._program = program
        self._runs = 0
        self._booked = (0, 0)

    async def run(self, trial: Trial, *, session: str | None = None) -> Seen:
        """One worker run, from an order to its outcome."""
        self._runs += 1
        write(self.repo, trial.files)
        scenario = Scenario(self._turns(trial), toolless=self._kind == "aider")
        with ModelServer(scenario) as server:
            worker = self._worker(NOBODY if trial.down else server.address)
            call = self._call(trial, session)
            command = worker.command(call)
            before = await asyncio.to_thread(self._snapshots.take)
            order = await self._order(worker, call, command, trial)
            supervised = await self._supervise(call.worker_run_id, order, trial)
        after = supervised.tree_after
        changed = self._snapshots.changes(before.tree, after) if after else []
        ended = Ended(
            supervised.exit_code,
            supervised.outcome,
            supervised.stdout,
            supervised.stderr,
            home=call.home,
            session_tokens=self._booked if session else (0, 0),
        )
        reading = worker.read(ended)
        self._booked = (reading.input_tokens, reading.output_tokens)
        used = read_usage(self._usage_log(call.worker_run_id))
        came = outcome_of(
            ended,
            reading,
            gateway_error=used.last_error,
            changed=len(changed),
            reports=worker.reports,
        )
        paths = tuple(change.path for change in changed)
        return Seen(came, reading, supervised, used, server.told, paths, call.home)

    def _turns(self, trial: Trial) -> Sequence[Turn]:
        last = trial.turns[-1]
        if self._kind != "mini-swe-agent" or last != Turn(last.text):
            return trial.turns
        # It asks again until this is what its model runs.
        return [*trial.turns[:-1], Turn(last.text, [Shell(f"echo {SUBMIT}")])]

    def _worker(self, address: str) -> Worker:
        wire = make_worker(WorkerSpec(kind=self._kind)).wire
        url = f"{address}/v1" if wire == "openai" else address
        command = [str(self._program)] if self._program else None
        return make_worker(WorkerSpec(kind=self._kind, command=command, base_url=url))

    def _call(self, trial: Trial, session: str | None) -> WorkerRequest:
        name, home = f"w{self._runs}", self._folder.sandbox_dir
        prompt_file = home / "prompts" / f"{name}.md"
        prompt_file.parent.mkdir(exist_ok=True)
        prompt_file.write_text(trial.prompt, "utf-8")
        return WorkerRequest(
            worker_run_id=name,
            prompt=trial.prompt,
            workdir=self.repo,
            home=home,
            prompt_file=prompt_file,
            mode="resume" if session else "exec",
            session_id=session,
            new_session_id=str(uuid.uuid4()),
            model=MODELS.get(self._kind, "fake-model"),
            flags=trial.flags,
            base_url=f"http://127.0.0.1:{GATEWAY_PORT}",
            sandboxed=trial.sandboxed,
        )

    async def _order(
        self, worker: Worker, call: WorkerRequest, command: WorkerCommand, trial: Trial
    ) -> SupervisorOrder:
        for folder in command.folders:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path, text in command.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        gateway = self._gateway(worker, call)
        ports = {GATEWAY_PORT: GATEWAY_SOCKET, PROXY_PORT: PROXY_SOCKET}
        request = Request(
            command.argv,
            self.repo,
            env={
                **proxy_environment(PROXY_PORT),
                **command.env,
                **_key(command),
                **{name: text.format(home=call.home) for name, text in trial.env.items()},
            },
            stdin=command.stdin,
            timeout_sec=trial.wall_sec,
            door=Door(self._folder.sock_dir, ports),
        )
        box = BwrapSandbox(
            SandboxOrder(
                repo=self.repo,
                home=self._folder.sandbox_dir,
                programs=(worker.program(), "sh"),
                sockets=self._folder.sock_dir,
            ),
            environ=os.environ,
            host_home=Path.home(),
        )
        await box.open()
        return SupervisorOrder(
            launch=box.launch(request),
            stdin=command.stdin,
            wall_sec=trial.wall_sec,
            idle_sec=max(trial.idle_sec, 0 if self._kind in QUICK else SLOW_SEC),
            stop_signal=command.stop_signal,
            watch=command.watch
            if trial.grace_sec is None
            else command.watch._replace(final_grace_sec=trial.grace_sec),
            after=self._snapshots.take_command(),
            companion=companion(gateway, os.environ),
        )

    def _gateway(self, worker: Worker, call: WorkerRequest) -> GatewayOrder:
        assert worker.wire
        return GatewayOrder(
            sockets=self._folder.sock_dir,
            egress_log=self._folder.root / "egress.jsonl",
            usage_log=self._usage_log(call.worker_run_id),
            label=call.worker_run_id,
            allow=(),
            upstream=Upstream(worker.wire, worker.provider_url, REAL_KEY, PLACEHOLDER),
        )

    def _usage_log(self, worker_run_id: str) -> Path:
        return self._folder.root / f"usage-{worker_run_id}.jsonl"

    async def _supervise(
        self, worker_run_id: str, order: SupervisorOrder, trial: Trial
    ) -> SupervisedResult:
        lock = repository_lock(self._state, self.repo)
        lock.acquire(me("t-00000000", "2026-01-01T00:00:00Z"))
        try:
            claim = self._ledger.claim(worker_run_id)
            process = await asyncio.to_thread(start, order, claim, lock)
        finally:
            lock.close()
        stop = asyncio.Event()
        watching = asyncio.create_task(self._stop_at(trial.stop_at, stop))
        try:
            return await wait(self._ledger, worker_run_id, stop=stop, process=process)
        finally:
            watching.cancel()

    async def _stop_at(self, name: str, stop: asyncio.Event) -> None:
        while name and not (self.repo / name).exists():  # noqa: ASYNC110 - made in the box
            await asyncio.sleep(0.05)
        if name:
            stop.set()


def _key(command: WorkerCommand) -> Mapping[str, str]:
    return {command.key_env: PLACEHOLDER} if command.key_env else {}


def program_of(kind: str) -> Path:
    """The CLI; skips or fails the test where it, or bubblewrap, is missing."""
    require_bwrap()
    program = installed(kind)
    if program is None:
        missing(f"{kind} is not installed")
    return program
