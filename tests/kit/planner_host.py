"""A planner that is a CLI, with a place in a run, and a server that plays its model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrunner.config.agents import PlannerSpec, WorkerSpec
from agentrunner.config.sandbox import SandboxSpec
from agentrunner.config.spec import RunnerSection, TaskSpec
from agentrunner.launching.route import Cassette
from agentrunner.planners.base import ChatMessage, PlannerRequest, Reply
from agentrunner.planners.cli_base import CliPlanner
from agentrunner.planners.factory import make_planner
from agentrunner.planners.workplace import Workplace
from agentrunner.protocol import message_schema
from agentrunner.sandboxes.base import Sandbox, SandboxOrder
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.storage.run_folder import RunFolder
from agentrunner.text.redaction import Redactor
from tests.kit.bwrap import require_bwrap
from tests.kit.claude import require_claude
from tests.kit.codex import require_codex
from tests.kit.docker import IN_DOCKER, on_host_usr, require_docker
from tests.kit.planner_server import PlannerServer
from tests.kit.task_specs import task_spec_of

REAL_KEY = "sk-planner-" + "4f1c" * 12
KEY_OF = {"codex-cli": "CODEX_API_KEY", "claude-code": "ANTHROPIC_API_KEY"}
SECRET = "what only the repository knows"
UNTAPED = Cassette()


@dataclass
class PlannerHost:
    """One machine, one repository, one kind of CLI in one kind of box."""

    kind: str
    box: str
    place: Path
    binary: Path
    environ: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    redactor: Redactor = field(default_factory=lambda: Redactor({}))

    @property
    def repo(self) -> Path:
        return self.place / "repo"

    @property
    def state_dir(self) -> Path:
        return self.place / "state"

    @property
    def folder(self) -> RunFolder:
        return RunFolder.open(self.state_dir, "probe-1a2b")

    def base_url(self, server: PlannerServer) -> str:
        return server.base_url if self.kind == "codex-cli" else server.address

    def spec(self, server: PlannerServer | None, **meta: Any) -> TaskSpec:
        """A task whose planner is this CLI."""
        url = {"base_url": self.base_url(server)} if server else {}
        sandbox: Mapping[str, Any] = {"kind": self.box}
        if self.box == "docker":
            sandbox = IN_DOCKER["sandbox"]
        runner = RunnerSection(
            meta=PlannerSpec(kind=self.kind, **{**url, **meta}),
            worker=WorkerSpec(kind=self.kind, command=[str(self.binary)]),
            sandbox=SandboxSpec(**sandbox),
        )
        return task_spec_of(runner=runner, prd="Make it work.", repo=self.repo)

    async def client(self, spec: TaskSpec, tape: Cassette = UNTAPED) -> tuple[CliPlanner, Sandbox]:
        """The planner with its place, and the run's box, which is to be closed."""
        box = SandboxOrder(
            repo=self.repo, home=self.folder.sandbox_dir, sockets=self.folder.sock_dir
        )
        sandbox = await open_sandbox(
            self.box,
            on_host_usr(box) if self.box == "docker" else box,
            self.environ,
            Path.home(),
            state_root=self.state_dir,
        )
        meta = make_planner(spec, self.environ, tape)
        assert isinstance(meta, CliPlanner)
        await meta.open(Workplace(self.folder, self.state_dir, sandbox, self.redactor))
        return meta, sandbox

    async def ask(
        self, server: PlannerServer | None, number: int = 0, tape: Cassette = UNTAPED, **meta: Any
    ) -> Reply:
        """One attempt."""
        client, sandbox = await self.client(self.spec(server, **meta), tape)
        try:
            return await client.complete(request(number))
        finally:
            await client.close()
            await sandbox.close()


def request(number: int = 0) -> PlannerRequest:
    """A question for the next action."""
    return PlannerRequest(
        type="next_action",
        messages=(ChatMessage("system", "You decide."), ChatMessage("user", "The state.")),
        schema=message_schema("next_action"),
        facts={},
        call_number=number,
    )


def require(kind: str, box: str) -> Path:
    """The CLI's program; skips or fails the test where it or the kind of box is missing."""
    require_docker() if box == "docker" else require_bwrap()
    return require_codex() if kind == "codex-cli" else require_claude()


def host_of(kind: str, box: str, place: Path) -> PlannerHost:
    """A host with the real CLI; skips or fails as `require`."""
    host = PlannerHost(kind, box, place, require(kind, box))
    host.environ[KEY_OF[kind]] = REAL_KEY
    host.repo.mkdir()
    (host.repo / "secret.txt").write_text(SECRET)
    RunFolder.create(host.state_dir, "probe-1a2b")
    return host
