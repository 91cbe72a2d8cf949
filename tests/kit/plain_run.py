"""An adapter's command line as a plain process: the real CLI, no box and no supervisor."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import Ended, Worker, WorkerEvent, WorkerReading, WorkerRequest
from agentrunner.workers.member import make_worker
from tests.kit.model_server import ModelServer

KEY = "sk-test-0123456789abcdef"


@dataclass
class PlainRun:
    """Runs a CLI in a folder of its own, in an environment built from nothing."""

    kind: str
    binary: Path
    root: Path
    model: str
    sandboxed: bool = True
    flags: tuple[str, ...] = ()
    token_env: str = ""
    """Where the token of a login goes, in place of a key."""

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def stdout(self) -> Path:
        return self.root / "stdout"

    def worker(self, server: ModelServer) -> Worker:
        url = server.base_url if make_worker(WorkerSpec(kind=self.kind)).wire == "openai" else ""
        spec = WorkerSpec(
            kind=self.kind, command=[str(self.binary)], base_url=url or server.address
        )
        return make_worker(spec)

    def start(
        self, server: ModelServer, prompt: str, *, session: str | None = None, new_session: str = ""
    ) -> subprocess.Popen[bytes]:
        """Start it; its prompt is given already."""
        home = self.root / "home"
        self.repo.mkdir(parents=True, exist_ok=True)
        call = WorkerRequest(
            worker_run_id="w1",
            prompt=prompt,
            workdir=self.repo,
            home=home,
            prompt_file=home / "prompt.md",
            mode="resume" if session else "exec",
            session_id=session,
            new_session_id=new_session,
            model=self.model,
            flags=self.flags,
            login=bool(self.token_env),
            sandboxed=self.sandboxed,
        )
        command = self.worker(server).command(call)
        for folder in command.folders:
            folder.mkdir(parents=True, exist_ok=True)
        env = {"PATH": os.defpath, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb"}
        with self.stdout.open("wb") as out, (self.root / "stderr").open("wb") as err:
            process = subprocess.Popen(
                command.argv,
                env={**env, **command.env, (self.token_env or command.key_env): KEY},
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
        new_session: str = "",
        booked: tuple[int, int] = (0, 0),
    ) -> WorkerReading:
        """Run it to its end."""
        process = self.start(server, prompt, session=session, new_session=new_session)
        return self.read(server, process.wait(timeout=60), booked)

    def read(
        self, server: ModelServer, exit_code: int, booked: tuple[int, int] = (0, 0)
    ) -> WorkerReading:
        ended = Ended(exit_code, "exited", self.stdout, self.root / "stderr", session_tokens=booked)
        return self.worker(server).read(ended)

    def events(self, server: ModelServer) -> list[WorkerEvent]:
        return self.worker(server).events().feed(self.stdout.read_bytes())


def wait_until(happened: Callable[[], bool], seconds: float = 30) -> None:
    """Look until it is so."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
