"""Conversations about a plan with the shipped `script` planner, in a folder of the test's own."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentrunner.config.load import TaskSource, load_task
from agentrunner.execution.deps import Clock
from agentrunner.plans.conversation import Conversation
from agentrunner.plans.plan import ROOT, Plan
from agentrunner.plans.planner import open_conversation, planning_spec
from agentrunner.plans.store import PlanStore
from agentrunner.storage.plan_folder import PlanFolder, plan_folder
from agentrunner.storage.run_folder import make_private
from tests.kit.metas import item

Item = dict[str, Any]
SALT = "a salt that is the same in each run"


class SteadyClock(Clock):
    """Each look at it is a second later; nobody waits."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


@dataclass
class Talks:
    """A repository with a plan, and what its planner answers."""

    place: Path
    settings: list[str] = field(default_factory=list)
    """`key.path=VALUE`, for all that follows."""

    @property
    def repo(self) -> Path:
        return self.place / "shop"

    @property
    def state_dir(self) -> Path:
        return self.place / "state"

    @property
    def folder(self) -> PlanFolder:
        return plan_folder(self.state_dir, self.repo)

    @property
    def store(self) -> PlanStore:
        return PlanStore(self.folder.plan)

    def script(self, items: Sequence[Item]) -> None:
        """From its first call on, the planner answers with these."""
        self.repo.mkdir(parents=True, exist_ok=True)
        (self.repo / "replies.yaml").write_text(json.dumps(list(items)))

    @asynccontextmanager
    async def open(self, *items: Item, **environ: str) -> AsyncIterator[Conversation]:
        """A conversation, as a process of its own would begin it."""
        if items:
            self.script(items)
        salt = self.folder.conversation / "salt"
        make_private(salt.parent)
        salt.write_text(SALT)
        known = {"HOME": str(self.place), "PATH": os.environ["PATH"], **environ}
        spec = load_task(
            TaskSource("goal", "-"),
            overrides=["runner.meta.script=replies.yaml", *self.settings],
            options={"repo": str(self.repo), "meta": "script", "worker": "mock"},
            environ=known,
            cwd=self.repo,
        )
        spec = planning_spec(spec, known, self.state_dir)
        async with open_conversation(
            spec, self.folder, self.state_dir, known, author="hana", clock=SteadyClock()
        ) as (talk, _):
            yield talk

    def prompts(self) -> dict[str, str]:
        """What the planner was sent, by the name of the file."""
        files = sorted((self.folder.conversation / "meta").glob("*.request.json"))
        return {file.name: file.read_text("utf-8") for file in files}

    def page(self, number: int) -> str:
        """One call's messages, to be read."""
        messages = json.loads(list(self.prompts().values())[number])
        return "".join(f"<!-- {m['role']} -->\n\n{m['content']}\n\n" for m in messages)


def outline(plan: Plan) -> list[str]:
    """The tree in short: a line for each node, indented."""
    lines = []
    depth = {ROOT: 0}
    for node_id in plan.walk():
        node = plan.nodes[node_id]
        if node.parent_id is None:
            continue
        depth[node_id] = depth[node.parent_id] + 1
        design = plan.designs[node_id]
        after = f" after {','.join(design.dependencies)}" if design.dependencies else ""
        name = f"{node.task_id} " if node.task_id else ""
        lines.append(f"{'  ' * (depth[node_id] - 1)}{name}{design.title}{after}")
    return lines


# -- what a planner answers -----------------------------------------------------------------------


def task(temp_id: str, title: str, *after: str, **more: Any) -> dict[str, Any]:
    """A task of a decomposition."""
    return {
        "id": temp_id,
        "title": title,
        "description": f"{title}.",
        "acceptance_criteria": [f"{title}: OK"],
        "dependencies": list(after),
        "wbs_level": 3,
        "estimated_effort": "small",
        **more,
    }


def phase(name: str, *tasks: Mapping[str, Any]) -> dict[str, Any]:
    """A phase with its tasks."""
    return {"name": name, "milestone": f"M-{name}", "tasks": list(tasks)}


def decompose(*phases: Mapping[str, Any], understanding: str = "Understood.", **more: Any) -> Item:
    """A wish, split."""
    return item("decompose", {"understanding": understanding, "phases": list(phases), **more})


def patch(*operations: Mapping[str, Any], understanding: str = "Understood.", **more: Any) -> Item:
    """Edits of a plan."""
    return item(
        "plan_patch", {"understanding": understanding, "operations": list(operations), **more}
    )


def create(temp_id: str, title: str, **more: Any) -> dict[str, Any]:
    """A new task."""
    return {"op": "create", "temp_id": temp_id, "title": title, **more}


def change(op: str, task_id: str, **more: Any) -> dict[str, Any]:
    """An update, a move or a delete."""
    return {"op": op, "task_id": task_id, **more}
