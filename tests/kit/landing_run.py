"""A run whose work lands elsewhere than in the checkout."""

from __future__ import annotations

from typing import Any

from agentrunner.config.spec import Landing, TaskSpec
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, TEST, Run

SCRIPT = [plan(), work(), finish(), assess()]


class LandingRun(Run):
    """A run whose task says where its work goes."""

    def __init__(self, project: Project, **landing: Any) -> None:
        super().__init__(project)
        self.landing = landing

    def start(self, script: Any = SCRIPT, worker: str = FIX, **task: Any) -> dict[str, Any]:
        """Begin, with the shipped script unless told."""
        make = self.project.spec

        def spec(command: str = "true", **section: Any) -> TaskSpec:
            made = make(command, **section)
            return made.model_copy(update={"landing": Landing(repo=made.repo, **self.landing)})

        self.project.spec = spec  # type: ignore[assignment,method-assign]
        task.setdefault("test", TEST)
        return super().start(script, worker, **task)


def outside(project: Project, **landing: Any) -> LandingRun:
    """One that works outside of it."""
    return LandingRun(project, outside=True, **landing)
