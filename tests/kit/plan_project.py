"""A repository with a plan, whose tasks are done by a worker that obeys the lines `DO: COMMAND`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentrunner.engine.attempt_run import Options
from agentrunner.plans.execution.answers import asked_by
from agentrunner.plans.execution.executor import execute_plan
from agentrunner.plans.execution.instructions import PlanInstructions
from agentrunner.plans.execution.plan_settings import PlanSettings
from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import Hint, Plan, PlannedTask, PlanTaskStatus
from agentrunner.plans.store import OpenQuestion, PlanStore, StoredTask
from agentrunner.storage.plan_folder import PlanFolder, plan_folder
from tests.kit.contract import check_event
from tests.kit.project import Project

SCRIPT = "sed -n 's/^ *> DO: //p' > .do.sh; sh -e .do.sh; rm .do.sh"
WORKER = f'runner.worker.command="{SCRIPT}"'
AT = "2026-01-01T00:00:00.000Z"


@dataclass
class Work:
    """A task of the plan: what it does, and the check that says it is done."""

    do: str = "touch {}.done"
    check: str = "[ -e {}.done ]"
    """Both with the task's number for `{}`. What is green before proves nothing."""
    needs: Sequence[int] = ()
    """Numbers of tasks, from 1 on."""
    files: Sequence[str] = ()
    criteria: Sequence[str] = ()


@dataclass
class PlanProject:
    """A committed repository, a state folder, and a plan in it."""

    project: Project
    events: list[dict[str, Any]] = field(default_factory=list)
    heard: Callable[[dict[str, Any]], None] = lambda event: None
    result: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def make(cls, place: Path, works: Sequence[Work], files: Mapping[str, str]) -> PlanProject:
        """With one task for each work, TASK-0001 and so on."""
        made = cls(Project.make(place, files))
        made.store.save(plan_of(works), at=AT, kind="decompose", author="hana", message="make it")
        return made

    @property
    def folder(self) -> PlanFolder:
        """Of its plan."""
        return plan_folder(self.project.state_dir, self.project.repo)

    @property
    def store(self) -> PlanStore:
        """Of its plan."""
        return PlanStore(self.folder.plan)

    def settings(self, sandbox: str = "none", **options: str) -> PlanSettings:
        """Shared by the tasks: checklist, and the worker that does what it is told."""
        known = {"meta": "checklist", "worker": "command", "sandbox": sandbox, **options}
        overrides = {"command": WORKER, "loops": "runner.meta.max_loops=1"}
        return PlanSettings(base_dir=str(self.project.repo), options=known, overrides=overrides)

    def order(self, **how: Any) -> PlanInstructions:
        """All of it, two at once."""
        settings = how.pop("settings", None) or self.settings()
        options = Options(state_dir=self.project.state_dir, on_event=self._hear)
        options = replace(options, **how.pop("options", {}))
        return PlanInstructions(self.project.repo, settings, options, **{"parallel": 2, **how})

    def carry(self, **how: Any) -> dict[str, Any]:
        """Carry it out in an event loop of its own."""

        async def work() -> dict[str, Any]:
            return (await execute_plan(self.order(**how), self._hear)).as_dict()

        self.result = asyncio.run(work())
        return self.result

    def _hear(self, event: dict[str, Any]) -> None:
        check_event(event)
        self.events.append(event)
        self.heard(event)

    def told(self, name: str) -> list[dict[str, Any]]:
        """All events of one kind."""
        return [event for event in self.events if event["event"] == name]

    def standings(self) -> dict[str, StoredTask]:
        """How each task stands."""
        return self.store.standings()

    def statuses(self) -> list[PlanTaskStatus]:
        """Of the tasks, in order, as people see them."""
        plan = self.store.load()
        return [plan.shown_status(task) for task in plan.task_order()]

    def published(self, name: str) -> str:
        """A file of the branch in the user's repository."""
        return self.project.git("show", f"{self.result['branch']}:{name}")


def plan_of(works: Sequence[Work]) -> Plan:
    """Their plan, in order."""
    edits = [
        PlanEdit(
            "create",
            f"t{number}",
            {
                "title": f"Task {number}",
                "description": f"It is number {number}.\nDO: {work.do.replace('{}', str(number))}",
                "acceptance_criteria": (
                    f"it is done (check: `{work.check.replace('{}', str(number))}`)",
                    *work.criteria,
                ),
                "dependencies": tuple(f"t{other}" for other in work.needs),
                "suggested_impl": Hint(file_paths=tuple(work.files)),
            },
        )
        for number, work in enumerate(works, start=1)
    ]
    made = apply(Plan(), edits)
    assert isinstance(made, Plan)
    return replace(made, goal="Make it")


def answer(store: PlanStore, name: str, text: str, at: str) -> OpenQuestion:
    """Answer the open question of a number or of a task, as a person does."""
    return store.answer(asked_by(store, name).id, text, at)


def with_task(plan: Plan, task_id: str, task: PlannedTask) -> Plan:
    """The plan with another standing of one task; no change of the plan, so no new version."""
    return replace(plan, tasks={**plan.tasks, task_id: task})
