"""One case, played: first without anybody looking, then as a whole run, then against the truth."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from agentrunner import registry
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.runs import start
from agentrunner.errors import AgentRunnerError
from tests.battery.case import Case
from tests.battery.ground import Ground
from tests.battery.plain import complaints, truth_met
from tests.battery.planner import KIND, ROUND

WORST = ("none", "judged", "kept", "shown", "accepted", "proven")
"""Grades, the weakest first."""


@dataclass
class Outcome:
    """What became of a case."""

    name: str
    kind: str
    rule: str
    about: str
    ecosystem: str
    out_of_reach: bool = False
    expected: str = ""
    got: str = ""
    """COMPLETE, another state, `waiting: kind`, or the name of an error."""
    grade: str = ""
    truth: bool | None = None
    seconds: float = 0
    said: str = ""
    """The end in one line: what is missing or asked."""
    complaints: list[str] = field(default_factory=list)
    """What is wrong with the case itself."""
    skipped: str = ""
    wrong_grade: bool = False

    @property
    def believed(self) -> bool:
        """A cheat that ended COMPLETE, or an honest run whose delivered tree lacks the work."""
        return self.got == "COMPLETE" and (self.kind == "cheat" or self.truth is False)

    @property
    def refused(self) -> bool:
        """An honest run that did not end COMPLETE."""
        return not self.skipped and self.kind == "honest" and self.got != "COMPLETE"

    @property
    def failed(self) -> bool:
        """Whether verifier or case is wrong."""
        wrong = self.believed and not self.out_of_reach
        return wrong or self.refused or bool(self.complaints) or self.wrong_grade

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        return {**asdict(self), "believed": self.believed, "refused": self.refused}


def play(
    case: Case, place: Path, sandbox: str = "bwrap", *, plain: bool = True, whole: bool = True
) -> Outcome:
    """Play a case in a folder. With `plain` it is first made sure that the case is not empty.

    Without `whole` that is all.
    """
    registry.PLANNERS.setdefault(KIND, "tests.battery.planner:Planner")
    awaited = "COMPLETE" if case.kind == "honest" else "not COMPLETE"
    outcome = Outcome(case.name, case.kind, case.rule, case.about, case.ecosystem)
    outcome.out_of_reach, outcome.expected = bool(case.out_of_reach), awaited
    ground = Ground(case, place)
    ground.lay()
    if plain:
        outcome.complaints = complaints(case, ground)
    if not whole:
        outcome.skipped = "only the case itself was tried"
        return outcome
    began = time.monotonic()
    try:
        result = asyncio.run(_whole_run(case, ground, sandbox))
    except AgentRunnerError as error:
        outcome.got, outcome.said = type(error).__name__, str(error)
        if case.kind == "cheat":
            outcome.complaints.append(f"the cheat was not judged at all: {error}")
    else:
        _read(outcome, result)
    outcome.seconds = round(time.monotonic() - began, 1)
    if case.kind == "honest" and outcome.got == "COMPLETE":
        outcome.truth = truth_met(case, ground)
        known = outcome.grade not in ("", "?")
        outcome.wrong_grade = bool(case.grades) and known and outcome.grade not in case.grades
    return outcome


def task_of(case: Case, repo: Path, sandbox: str) -> dict[str, Any]:
    """The task file of a case."""
    task: dict[str, Any] = {"id": case.name, "repo": str(repo), "prd": {"text": case.prd}}
    if case.criteria:
        task["acceptance_criteria"] = case.criteria
    more = dict(case.task)
    test = more.pop("test", {})
    if case.test:
        task["test"] = {"command": case.test, "timeout_sec": 60, **test}
    runner: dict[str, Any] = {
        "completion": "evidence",
        "meta": {"kind": KIND, "max_loops": len(case.worker)},
        "worker": {"kind": "command", "command": _worker(case)},
        "sandbox": {"kind": sandbox},
        "budget": {"wall_sec": 240},
    }
    for key, value in case.runner.items():
        same = isinstance(value, dict) and isinstance(runner.get(key), dict)
        runner[key] = {**runner[key], **value} if same else value
    return {"version": 1, "task": {**task, **more}, "runner": runner}


def _worker(case: Case) -> list[str]:
    if len(case.worker) == 1:
        return ["sh", "-c", case.worker[0]]
    rounds = (
        f'*"{ROUND.format(number=number)}"*)\n{script}\n;;'
        for number, script in enumerate(case.worker, 1)
    )
    return ["sh", "-c", 'case "$1" in\n' + "\n".join(rounds) + "\nesac", "worker", "{prompt}"]


async def _whole_run(case: Case, ground: Ground, sandbox: str) -> dict[str, Any]:
    path = ground.place / "task.yaml"
    path.write_text(yaml.safe_dump(task_of(case, ground.repo, sandbox)), encoding="utf-8")
    spec: TaskSpec = load_task(TaskSource("file", str(path)), environ=os.environ, cwd=ground.repo)
    options = Options(ground.place / "state", on_event=_unheard)
    return (await start(spec, options)).as_dict()


def _unheard(event: object) -> None:
    """Nobody watches; the run log has it all."""


def _read(outcome: Outcome, result: dict[str, Any]) -> None:
    waiting = result.get("waiting")
    outcome.got = f"waiting: {waiting['kind']}" if waiting else result["state"]
    outcome.grade = _grade(result)
    if result.get("reason") == "internal":
        outcome.complaints.append("the run broke, so nothing was judged")
    elif not result["worker_runs"]:
        outcome.complaints.append("no worker ran, so nothing was judged")
    parts = [result.get("reason") or "", *(result.get("missing") or [result.get("text") or ""])]
    if waiting:
        parts.append(str(waiting.get("text") or waiting.get("question") or waiting))
    if result.get("error"):
        parts.append(str(result["error"].get("message")))
    parts += [finding["message"] for finding in result.get("findings", [])]
    outcome.said = " · ".join(part for part in parts if part)


def _grade(result: dict[str, Any]) -> str:
    """The weakest grade of the critical criteria; "?" where the result tells none."""
    critical = [item for item in result["acceptance_criteria"] if item["critical"]]
    grades = [str(item.get("grade", "?")) for item in critical]
    if not grades or "?" in grades:
        return "?"
    return min(grades, key=lambda grade: WORST.index(grade) if grade in WORST else -1)
