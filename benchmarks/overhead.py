"""What AgentRunner costs beside the model and the worker.

    python -m benchmarks.overhead [--rounds 7] [--loops 200]

Time from starting the command to the planner's first request; CPU of the driving process per loop,
against `benchmarks.bare`, which makes the same calls; the same late in a run against early in it;
memory of further runs in the same process; time until a supervisor has started its worker.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from agentrunner.sandboxes.base import Launch
from agentrunner.storage.locks import FileLock, me, repository_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import Ledger
from agentrunner.supervisor.client import SupervisorOrder, start, wait
from benchmarks.measure import (
    Figure,
    by_turns,
    environment,
    megabytes,
    ms,
    printed,
    program,
    python,
)
from benchmarks.server import Server
from tests.kit.project import Project

FIRST_CALL, PER_LOOP, PER_RUN_MB = 1.2, 1.4, 0.25
"""Goals: start to the planner's first request and CPU per loop as ratios, memory of a further run.
docs/reference/performance.md has them, too."""
WORKER = "true"
TOUCH = "echo x >> work.txt"
WINDOW = 10
TASK = """\
version: 1
task: {id: first, repo: repo, prd: {text: Make it work.}}
runner:
  meta: {kind: openai-chat, max_loops: 0}
  worker: {kind: command, command: [sh, -c, "true"]}
"""


def figures(place: Path, rounds: int, loops: int, runs: int) -> list[Figure]:
    """Measure everything in `place`."""
    call = place / "call.json"
    probe = engine(place / "probe", 2, "openai-chat", WORKER)
    call.write_text(json.dumps(probe["call"]), encoding="utf-8")
    return [
        first_call(place / "first", call, rounds),
        *cpu_per_loop(place / "loops", call, rounds, loops),
        memory(place / "memory", runs),
        supervisor(place / "supervisor", rounds),
    ]


# -- start to first call ------------------------------------------------------------------------


def first_call(place: Path, call: Path, rounds: int) -> Figure:
    """Wall time until the request has come in at the server."""
    project = Project.make(place)
    (place / "task.yaml").write_text(TASK, encoding="utf-8")
    ours = python("-m", "agentrunner", "run", str(place / "task.yaml"), "--json")

    names = (place / f"bare-{number}.sqlite" for number in count())

    def bare() -> float:
        return _until_asked(_bare(call, next(names), 0, project.repo), place)

    base, subject = by_turns(rounds, bare, lambda: _until_asked(ours, place), pick=min)
    return Figure(
        "start to first planner call", ms(subject), f"bare LangGraph, {ms(base)}",
        subject / base, FIRST_CALL,
    )  # fmt: skip


def _until_asked(command: Sequence[str], place: Path) -> float:
    with Server(loops=2) as server:
        env = environment({**server.environ, "AGENTRUNNER_STATE_DIR": str(place / "state")})
        started = time.monotonic()
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, env=env, cwd=place, stdout=quiet, stderr=quiet) as process:
            asked = server.first_request()
            process.wait()
    return asked - started


# -- CPU per loop -------------------------------------------------------------------------------


def cpu_per_loop(place: Path, call: Path, rounds: int, loops: int) -> list[Figure]:
    """CPU of the process that drives, its children not counted: the least of the rounds' medians.

    The clock counts what a shared machine takes from a process, which can only add to it.
    """
    project = Project.make(place / "bare")
    window = max(1, min(WINDOW, loops // 6))
    short = min(loops, max(2 * WINDOW, loops // 5))
    numbers = count()

    def bare() -> float:
        checkpoints = place / f"bare-{next(numbers)}.sqlite"
        with Server(short) as server:
            marks = printed(_bare(call, checkpoints, short, project.repo), server.environ)
        return median(_steps(marks)[window // 2 :])

    def ours() -> float:
        run = engine(place / f"loops-{next(numbers)}", short, "openai-chat", WORKER)
        return median(_steps(run["cpu_sec"])[window // 2 :])

    base, subject = by_turns(rounds, bare, ours, pick=min)
    long = [
        _steps(engine(place / f"long-{number}", loops, "loop", TOUCH)["cpu_sec"])
        for number in range(max(1, rounds // 2))
    ]
    early = min(median(steps[window : 3 * window]) for steps in long)
    late = min(median(steps[-2 * window :]) for steps in long)
    return [
        Figure("CPU per loop", ms(subject), f"bare LangGraph, {ms(base)}",
               subject / base, PER_LOOP),
        Figure(f"CPU per loop, loop {loops}", ms(late), f"loop {2 * window}, {ms(early)}",
               late / early, 1.2),
    ]  # fmt: skip


def _steps(marks: Sequence[float]) -> list[float]:
    return [after - before for before, after in pairwise(marks)]


def _bare(call: Path, checkpoints: Path, loops: int, repo: Path) -> list[str]:
    arguments = (str(call), str(checkpoints), str(loops), str(repo), "sh", "-c", WORKER)
    return python("-m", "benchmarks.bare", *arguments)


def engine(place: Path, loops: int, meta: str, worker: str, runs: int = 1) -> Any:
    """What `benchmarks.engine` prints."""
    arguments = (str(place), str(loops), str(runs), meta, worker)
    with Server(loops) as server:
        return printed(python("-m", "benchmarks.engine", *arguments), server.environ)


# -- memory and supervisor ----------------------------------------------------------------------


def memory(place: Path, runs: int) -> Figure:
    """Highest resident set of one process with many runs at a time, less that with one."""
    one = engine(place / "one", 2, "loop", TOUCH, 1)["rss_bytes"]
    many = engine(place / "many", 2, "loop", TOUCH, runs)["rss_bytes"]
    each = (many - one) / (runs - 1)
    return Figure(
        f"memory per further run, of {runs}", megabytes(each), f"one run, {megabytes(one)}",
        each / 1e6, PER_RUN_MB,
    )  # fmt: skip


def supervisor(place: Path, rounds: int) -> Figure:
    """From ordering a worker to its first output, against the same Python starting up."""
    project = Project.make(place)
    folder = RunFolder.create(project.state_dir, "bench-0000", project.repo)
    ledger = Ledger(folder)
    names = (f"1-{number:03}" for number in count())
    with closing(repository_lock(project.state_dir, project.repo)) as lock:
        lock.acquire(me(folder.run_id, ""))
        base, subject = by_turns(
            rounds,
            _python_start,
            lambda: asyncio.run(_first_output(ledger, next(names), lock, project.repo)),
            pick=min,
        )
    return Figure(
        "order to worker's first output", ms(subject), f"python -I -S, {ms(base)}",
        subject / base, 4,
    )  # fmt: skip


def _python_start() -> float:
    python = getattr(sys, "_base_executable", None) or sys.executable
    began = time.monotonic()
    subprocess.run([python, "-I", "-S", "-c", "pass"], check=True)
    return time.monotonic() - began


async def _first_output(ledger: Ledger, name: str, lock: FileLock, repo: Path) -> float:
    launch = Launch(argv=("/bin/date", "+%s.%N"), env={}, cwd=repo, contains_children=False)
    began = time.time()
    process = start(SupervisorOrder(launch=launch, wall_sec=60), ledger.claim(name), lock)
    result = await wait(ledger, name, process=process)
    return float(result.stdout.read_text("utf-8")) - began


if __name__ == "__main__":
    sys.exit(program(figures, rounds=7, loops=200, runs=30))
