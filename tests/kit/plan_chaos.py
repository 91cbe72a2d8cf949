"""A plan of nine tasks, three at once, that is struck again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from subprocess import CalledProcessError
from typing import Any, Self

from agentrunner.plans.execution.plan_settings import save_settings
from agentrunner.plans.store import PlanStore
from agentrunner.sandboxes.process_tree import ProcessIds
from agentrunner.storage.index import RunIndex
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.storage.worker_ledger import Ledger
from tests.kit.chaos import Blow, Struck, below, boxed, happened, named
from tests.kit.engine_watch import EngineWatch
from tests.kit.plan_project import AT, PlanProject, Work, plan_of
from tests.kit.process import Done, Drill

EVENTS = ("started", "plan_started", "plan_opened", "worker_started", "worker_finished",
          "plan_landed")  # fmt: skip
IN_RUNS = EVENTS[2:]
VICTIMS = {
    "driver": EVENTS,
    "everything": EVENTS,
    "git": EVENTS,
    "supervisor": IN_RUNS,
    "helper": IN_RUNS,
    "keeper": IN_RUNS,
    "engine": IN_RUNS,
}
MOST_NTH = 3

DO = "echo start >> {}.starts; sleep 0.3; echo done > {}.done"
BOTH = DO + "; grep -qx {} both.txt || echo {} >> both.txt"
CHECK = "grep -q done {}.done"
WORKS = (
    Work(DO, CHECK),
    Work(DO, CHECK),
    Work(DO, CHECK),
    Work(DO, CHECK, needs=[1]),
    Work(BOTH, CHECK, needs=[1], files=["both.txt"]),
    Work(BOTH, CHECK, needs=[2], files=["both.txt"]),
    Work(DO, CHECK, needs=[2, 3]),
    Work(DO, CHECK, needs=[4, 5]),
    Work(DO, CHECK, needs=[4, 5, 6, 7, 8]),
)
"""All but the fifth and the sixth, which write one file, may be at work together."""


class PlanChaos(Struck):
    """One plan, from its first command to its end."""

    victims = VICTIMS
    most_resumes = 10
    one_a_command = False

    def __init__(self, drill: Drill, engine: EngineWatch | None) -> None:
        super().__init__(drill, engine)
        self.plan = PlanProject(drill)
        self._before = self._checkout()

    @classmethod
    @contextmanager
    def open(cls, place: Path, port: int, engine: EngineWatch | None) -> Iterator[Self]:
        """A repository with the plan; its workers ask no host."""
        box, worker = boxed(engine)
        with Drill.open(place, sandbox=box["kind"]) as drill:
            drill.write({"both.txt": ""})
            drill.git("add", "both.txt")
            drill.git("commit", "-q", "-m", "what two of them write")
            plan = PlanProject(drill)
            PlanStore(plan.folder.plan).save(
                plan_of(WORKS), at=AT, kind="decompose", author="hana", message="make it"
            )
            settings = plan.settings(box.pop("kind"))
            overrides = {name: f"runner.worker.{name}={value}" for name, value in worker.items()}
            overrides |= {name: f"runner.sandbox.{name}={value}" for name, value in box.items()}
            overrides |= settings.overrides
            save_settings(plan.folder, settings.model_copy(update={"overrides": overrides}))
            yield cls(drill, engine)

    @classmethod
    def draw(cls, random: Random, kind: str, *, engine: bool) -> Blow:
        """As of any; after the first, second or third event of that name."""
        nth = random.randint(1, MOST_NTH)
        return replace(super().draw(random, kind, engine=engine), nth=nth)

    def _words(self) -> list[str]:
        return ["plan", "run", "--parallel", "3"]

    def _events(self) -> Counter[str]:
        runs = self.drill.state_dir.glob("runs/*/events.jsonl")
        return happened([self.plan.folder.log, *runs])

    def _pids(self, victim: str, driver: int, table: dict[int, ProcessIds]) -> list[int]:
        """One of each part, but `everything`, which is all that the plan has started."""
        supervisors = self._supervisors()
        under, ours = below(supervisors, table), below([driver], table)
        if victim == "everything":
            return list(dict.fromkeys([driver, *ours, *supervisors, *under]))
        pids = {
            "supervisor": lambda: supervisors,
            "helper": lambda: self._helpers(under),
            "keeper": lambda: self._keepers([*under, *ours], table),
            "git": lambda: named(ours, "git\0"),
        }[victim]()
        return pids[:1]

    def _state(self, ended: Done) -> str:
        done = ended.result.get("event") == "plan_result" and ended.code == 0
        return "COMPLETE" if done else f"exit {ended.code}"

    # -- judging ----------------------------------------------------------------------------------

    def wrong(self, result: dict[str, Any]) -> Iterator[str]:
        numbers = range(1, len(WORKS) + 1)
        if set(result["tasks"].values()) != {"COMPLETE"} or len(result["tasks"]) != len(WORKS):
            yield f"not all is complete: {result}"
        if self._checkout() != self._before:
            yield f"the checkout is another one: {self._checkout()} was {self._before}"
        commits = self.drill.git("log", "--format=%(trailers:key=Task,valueonly)", result["branch"])
        if sorted(commits.split()) != [f"TASK-{number:04}" for number in numbers]:
            yield f"the branch has commits of {commits.split()}"
        files = {number: self._published(result, f"{number}.done") for number in numbers}
        if set(files.values()) != {"done\n"}:
            yield f"the branch lacks work: {files}"
        if sorted(self._published(result, "both.txt").split()) != ["5", "6"]:
            yield f"both.txt has {self._published(result, 'both.txt')!r}"
        yield from self._workers(result)

    def _workers(self, result: dict[str, Any]) -> Iterator[str]:
        """No worker began that nobody knows of, and none has two records."""
        known: Counter[str] = Counter()
        for row in RunIndex(self.drill.state_dir).runs():
            folder = RunFolder.open(self.drill.state_dir, row.run_id)
            runs = RunLog(folder.log_file).records("worker_run")
            ids = [run.key for run in runs]
            self.fate.outcomes += [str(run.data["outcome"]) for run in runs]
            known[row.task_id] += sum(bool(Ledger(folder).started(name)) for name in set(ids))
            if len(ids) != len(set(ids)):
                yield f"recorded twice in {row.run_id}: {ids}"
            if unknown := {place.name for place in folder.workers_dir.iterdir()} - set(ids):
                yield f"not recorded in {row.run_id}: {sorted(unknown)}"
        for number in range(1, len(WORKS) + 1):
            starts = self._published(result, f"{number}.starts").count("start")
            if not 0 < starts <= known[f"TASK-{number:04}"]:
                yield f"task {number} began {starts} times: {dict(known)}"

    def _published(self, result: dict[str, Any], name: str) -> str:
        try:
            return self.drill.git("show", f"{result['branch']}:{name}")
        except CalledProcessError:
            return ""

    def _checkout(self) -> dict[str, str]:
        """All that is the user's: no command may move it."""
        git = self.drill.git
        refs = git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        return {
            "head": (self.drill.repo / ".git" / "HEAD").read_text(),
            "index": git("ls-files", "--stage", "--debug"),
            "status": git("status", "--porcelain", "-uall", "--", ":!.agent-runner"),
            "refs": " ".join(ref for ref in refs if not ref.startswith("refs/heads/agentrunner/")),
            "config": (self.drill.repo / ".git" / "config").read_text(),
        }

    def there(self) -> list[str]:
        """Beside what any work may leave: locks of git that nobody holds."""
        places = (self.drill.repo / ".git", self.drill.state_dir / "plans")
        locks = [path for place in places for path in place.rglob("*.lock") if _is_gits(path)]
        return [*super().there(), *(f"{path}" for path in locks)]


def _is_gits(lock: Path) -> bool:
    """Whether git made it, whose locks stand beside what they guard."""
    return lock.with_suffix("").exists()
