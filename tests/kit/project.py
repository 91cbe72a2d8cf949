"""A repository of the test's own and whole runs in it, with the shipped engine and a real box."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.runs import start
from agentrunner.state.people import Answer, Question
from tests.kit.bwrap import require_bwrap
from tests.kit.contract import check_event
from tests.kit.files import write
from tests.kit.repository import committed, git

__all__ = ["BROKEN", "FIX", "PYTEST", "Project", "require_bwrap"]

PYTEST = (
    f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest"
    " -q -p no:cacheprovider -p no:unraisableexception"
)
"""Without the plug-ins of this environment, which take two seconds to load, and without the five
collections of garbage at pytest's end, an eighth of what it takes."""
BROKEN = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": (
        "from calc import add\n\n\n"
        "def test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_zero():\n    assert add(0, 0) == 0\n"
    ),
    "conftest.py": "",
}
"""A bug, a test that shows it, a test that does not."""
FIX = "sed -i 's/a - b/a + b/' calc.py"


@dataclass
class Project:
    """A repository and a state folder."""

    repo: Path
    state_dir: Path
    events: list[dict[str, Any]] = field(default_factory=list)
    sandbox: ClassVar[str] = "bwrap"
    """What a task gets that names none."""

    @classmethod
    def make(cls, place: Path, files: Mapping[str, str] = BROKEN) -> Project:
        """A committed git repository with these files."""
        return cls(committed(place / "repo", files), place / "state")

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, making folders."""
        write(self.repo, files)

    def git(self, *arguments: str) -> str:
        """The user's own git in this repository."""
        return git(self.repo, *arguments)

    def read(self, name: str) -> str:
        """A file of the repository."""
        return (self.repo / name).read_text(encoding="utf-8")

    def spec(self, worker: str = "true", **task: Any) -> TaskSpec:
        """A task of this repository; `runner` and task keys as in the task file."""
        runner: dict[str, Any] = {
            "meta": {"kind": "liar", "max_loops": 2},
            "worker": {"kind": "command", "command": ["sh", "-c", worker]},
            "sandbox": {"kind": self.sandbox},
        }
        for name, value in task.pop("runner", {}).items():
            if isinstance(value, dict):
                runner[name] = {**runner.get(name, {}), **value}
            else:
                runner[name] = value
        if runner.get("workers"):
            del runner["worker"]
        section = {"id": "probe", "repo": str(self.repo), "prd": {"text": "Make it work."}, **task}
        text = yaml.safe_dump({"version": 1, "task": section, "runner": runner})
        path = self.state_dir.parent / "task.yaml"
        path.write_text(text, encoding="utf-8")
        return load_task(TaskSource("file", str(path)), environ=os.environ, cwd=self.repo)

    def rewrite(self, **runner: dict[str, Any]) -> None:
        """Change settings of `runner` in the task file, as a person would."""
        path = self.state_dir.parent / "task.yaml"
        values = yaml.safe_load(path.read_text("utf-8"))
        for name, section in runner.items():
            values["runner"][name] = {**values["runner"].get(name, {}), **section}
        path.write_text(yaml.safe_dump(values), encoding="utf-8")

    def _hear(self, event: dict[str, Any]) -> None:
        check_event(event)
        self.events.append(event)

    def options(self, answers: list[Answer] | None = None) -> Options:
        """Collects events; with `answers`, gives them inline in their order."""
        waiting = iter(answers or [])

        def ask(question: Question) -> Answer | None:
            answer = next(waiting, None)
            if answer is None:
                return None
            return answer.model_copy(update={"id": question.id, "kind": question.kind})

        return Options(
            state_dir=self.state_dir,
            on_event=self._hear,
            ask=ask if answers is not None else None,
        )

    async def run(self, worker: str = "true", **task: Any) -> dict[str, Any]:
        """Run a task to its end or a pause."""
        require_bwrap()
        return (await start(self.spec(worker, **task), self.options())).as_dict()

    def told(self, event: str) -> list[dict[str, Any]]:
        """All events of one kind."""
        return [item for item in self.events if item["event"] == event]
