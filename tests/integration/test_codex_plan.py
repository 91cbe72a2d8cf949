"""A plan of six tasks with the real Codex CLI, killed in the middle and gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentrunner.plans.execution.plan_settings import PlanSettings, save_settings
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.storage.run_log import read_lines
from tests.kit.bwrap import require_bwrap
from tests.kit.codex import require_codex
from tests.kit.model_server import ModelServer
from tests.kit.plan_project import PlanProject, Work
from tests.kit.process import living, until
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.warm import WarmPopen

KEY = "sk-worker-" + "9d27" * 12
DO = """\
case $1 in
  TASK-0001) echo core > core.txt ;;
  TASK-0002|TASK-0003)
    if grep -q '<<<<' both.txt; then printf 'TASK-0002\\nTASK-0003\\n' > both.txt
    else echo $1 > both.txt; fi ;;
  TASK-0004|TASK-0005) echo $1 >> a.txt ;;
  TASK-0006) cat core.txt both.txt a.txt > all.txt ;;
esac
"""
FILES = {
    "do.sh": DO,
    "both.txt": "nobody\n",
    "a.txt": "a\n",
    "tests.sh": "! grep -q '<<<<' *.txt\n",
}
"""The model says the same to every task; which one it is, its work tree's path tells."""
MODEL = Scenario([Turn("I do it.", [Shell("sh do.sh $(basename $(dirname $PWD))")]), Turn("Done.")])


def works() -> list[Work]:
    """One; four that need it, two of which change the same lines; one that needs all."""

    def adds(number: int, file: str, **more: Any) -> Work:
        return Work("", f"grep -q TASK-000{number} {file}", needs=[1], **more)

    return [
        Work("", "grep -q core core.txt"),
        adds(2, "both.txt"),
        adds(3, "both.txt"),
        *(adds(number, "a.txt", files=["a.txt"]) for number in (4, 5)),
        Work("", "grep -q TASK-0005 all.txt", needs=[2, 3, 4, 5]),
    ]


def shared(server: ModelServer, codex: Path, repo: Path) -> PlanSettings:
    """Codex in a box against the server, steered without a model."""
    overrides = {
        "command": f"runner.worker.command={json.dumps([str(codex)])}",
        "model": "runner.worker.model=gpt-5.5",
        "url": f"runner.worker.base_url={server.base_url}",
        "loops": "runner.meta.max_loops=1",
    }
    options = {"meta": "checklist", "worker": "codex-cli", "sandbox": "bwrap"}
    options |= {"test": "sh tests.sh"}
    return PlanSettings(base_dir=str(repo), options=options, overrides=overrides)


def begun(plan: PlanProject) -> WarmPopen:
    """`agentrunner plan run --parallel 3` as a process of its own."""
    state = str(plan.project.state_dir)
    return WarmPopen(
        [sys.executable, "-m", "agentrunner", "plan", "run", "--parallel", "3", "--json"],
        cwd=plan.project.repo,
        env={**os.environ, "CODEX_API_KEY": KEY, "AGENTRUNNER_STATE_DIR": state},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def spans(events: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """When each task was first opened and when it landed."""
    for task in (f"TASK-000{number}" for number in range(1, 7)):
        mine = [event for event in events if event.get("task_id") == task]
        opened = next(event["ts"] for event in mine if event["event"] == "plan_opened")
        landed = next(event["ts"] for event in mine if event["event"] == "plan_landed")
        yield task, opened, landed


def test_six_tasks_three_at_once_killed_and_gone_on_with(tmp_path: Path) -> None:
    require_bwrap()
    codex = require_codex()
    plan = PlanProject.make(tmp_path, works(), FILES)
    head = plan.project.git("rev-parse", "HEAD")

    def in_the_middle() -> bool:
        statuses = {name: one.status for name, one in plan.standings().items()}
        working = list(statuses.values()).count(PlanTaskStatus.RUNNING)
        return statuses.get("TASK-0001") == PlanTaskStatus.COMPLETE and working >= 2

    with ModelServer(MODEL) as server:
        save_settings(plan.folder, shared(server, codex, plan.project.repo))
        with begun(plan) as process:
            until(lambda: in_the_middle() or process.poll() is not None, "the middle")
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
        assert process.returncode == -9
        with begun(plan) as process:
            out, err = process.communicate(timeout=150)
    assert process.returncode == 0, out[-3000:] + err

    events: list[dict[str, Any]] = list(read_lines(plan.folder.log))
    times = {task: (opened, landed) for task, opened, landed in spans(events)}
    assert times["TASK-0004"][1] <= times["TASK-0005"][0], "they were at work together"
    assert all(times[f"TASK-000{n}"][0] >= times["TASK-0001"][1] for n in range(2, 6))
    assert all(times[f"TASK-000{n}"][1] <= times["TASK-0006"][0] for n in range(2, 6))
    assert len([event for event in events if event["event"] == "plan_fixing"]) == 1

    plan.result = events[-1]
    both = "TASK-0002\nTASK-0003\n"
    assert plan.published("all.txt") == "core\n" + both + "a\nTASK-0004\nTASK-0005\n"
    assert plan.project.git("rev-parse", "HEAD") == head
    assert plan.project.git("status", "--porcelain").split() == ["??", ".agent-runner/"]
    assert living(tmp_path) == {}
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]
