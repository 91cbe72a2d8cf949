"""A project that the real Codex CLI works in, its model and the planner scripted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.runs import start
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import History, RunLog
from tests.kit.docker import IMAGE as HOST_IMAGE
from tests.kit.metas import reply, run_worker
from tests.kit.model_server import ModelServer
from tests.kit.project import PYTEST, Project

CRITERION = {"id": "AC-1", "description": "add adds two numbers."}
PLAN = reply("plan_task", {"acceptance_criteria": [CRITERION]}).text
FIX = reply("next_action", run_worker("codex-cli", "Fix add in calc.py.")).text
FIX_AGAIN = reply(
    "next_action", run_worker("codex-cli", "add(2, 3) is 6, not 5.", mode="resume")
).text
JUDGEMENT = reply(
    "completion_assessment",
    {
        "summary": "add adds.",
        "all_criteria_satisfied": True,
        "by_criterion": [{"id": "AC-1", "status": "passed", "comment": "2 + 3 is 5."}],
    },
).text
WRONG = "sed -i 's/a - b/a * b/' calc.py"
RIGHT = "sed -i 's/a [*] b/a + b/' calc.py"
"""Replies of a planner for `calc.py`, and what a worker runs there."""
KEYS = {
    "OPENAI_API_KEY": "sk-planner-" + "4f1c" * 12,
    "CODEX_API_KEY": "sk-worker-" + "9d27" * 12,
}


@dataclass
class Codex:
    """A project that the real Codex works in."""

    project: Project
    binary: Path
    box: str = "bwrap"
    test: str = PYTEST
    task: Mapping[str, Any] = field(default_factory=dict)
    """More of the task."""
    shown: tuple[str, ...] = ()
    """More folders of the host that a container is shown."""

    @property
    def place(self) -> Path:
        return self.project.state_dir.parent

    def spec(self, server: ModelServer, **worker: Any) -> TaskSpec:
        runner = {
            "meta": {"kind": "openai-chat", "model": "planner", "base_url": server.base_url},
            "worker": {
                "kind": "codex-cli",
                "command": [str(self.binary)],
                "model": "gpt-5.5",
                "base_url": server.base_url,
                **worker,
            },
            "sandbox": {"kind": "bwrap"},
        }
        if self.box == "docker":
            runner["worker"]["docker_image"] = HOST_IMAGE
            shown = ["/usr", sys.prefix, sys.base_prefix, *self.shown]
            runner["sandbox"] = {"kind": "docker", "read_paths": shown}
        return self.project.spec(test=self.test, runner=runner, **self.task)

    async def run(self, server: ModelServer, **worker: Any) -> dict[str, Any]:
        options = replace(self.project.options(), environ={**os.environ, **KEYS})
        return (await start(self.spec(server, **worker), options)).as_dict()

    def history(self, result: Mapping[str, Any]) -> History:
        folder = RunFolder.open(self.project.state_dir, result["run_id"])
        return RunLog(folder.log_file).history()

    def leaks(self) -> list[str]:
        """Where a key stands: in a file of the run, the repository, the note, or an event."""
        files = [p for p in self.place.rglob("*") if p.is_file()]
        assert any(path.name == "checkpoints.sqlite" for path in files)
        told = [(str(path), path.read_bytes()) for path in files]
        told.append(("events", json.dumps(self.project.events).encode()))
        return [
            f"{name} in {where}"
            for where, content in told
            for name, key in KEYS.items()
            if key.encode() in content
        ]
