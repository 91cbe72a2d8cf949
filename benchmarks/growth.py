"""What a run leaves and holds as it grows: in loops, and in what its workers print.

    python -m benchmarks.growth [--loops 400] [--short 40] [--printed 1073741824]

The state file's size at each decision: its exponent from a quarter of the loops to all of them (1
is linear; a state that keeps its history has 2), and whether it depends on the size of the worker's
output. And the highest resident set of `agentrunner run` while a worker prints a gigabyte.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import Figure, environment, megabytes, program, python
from benchmarks.overhead import TOUCH, engine
from tests.kit.project import Project

SMALL, LARGE = 10_000, 100_000
"""Bytes that a worker prints; both more than the tail and the summary that the state may hold."""
TASK = """\
version: 1
task: {id: printer, repo: repo, prd: {text: Print.}}
runner:
  meta: {kind: mock, max_loops: 0}
  worker: {kind: command, command: [sh, -c, "head -c %d /dev/zero | tr '\\\\0' x"]}
"""


def figures(place: Path, loops: int, short: int, printed: int) -> list[Figure]:
    """Measure everything in `place`."""
    return [
        over_loops(place / "loops", loops),
        *over_output(place / "output", short),
        peak_memory(place / "printer", printed),
    ]


def over_loops(place: Path, loops: int) -> Figure:
    """The exponent of the state file's growth."""
    sizes = engine(place, loops, "loop", TOUCH)["state_bytes"]
    quarter, whole = sizes[loops // 4], sizes[loops]
    exponent = math.log(whole / quarter) / math.log(4)
    return Figure(
        f"state at loop {loops}, exponent", megabytes(whole),
        f"loop {loops // 4}, {megabytes(quarter)}", exponent, 1.05,
    )  # fmt: skip


def over_output(place: Path, loops: int) -> list[Figure]:
    """The state file after some loops, by what the worker prints in each."""
    small, large = (
        engine(place / str(size), loops, "loop", f"{_printing(size)}; {TOUCH}")["state_bytes"][-1]
        for size in (SMALL, LARGE)
    )
    name = f"state, {loops} loops of {LARGE // 1000} KB output"
    return [
        Figure(f"{name}, bytes", megabytes(large), f"{SMALL // 1000} KB, {megabytes(small)}",
               large / small, 1.1),
        Figure(f"{name}, MB", megabytes(large), "-", large / 1e6, 2),
    ]  # fmt: skip


def _printing(size: int) -> str:
    return f"head -c {size} /dev/zero | tr '\\0' x"


def peak_memory(place: Path, size: int) -> Figure:
    """The command's own highest resident set (its supervisor's and worker's do not count)."""
    Project.make(place)
    (place / "task.yaml").write_text(TASK % size, encoding="utf-8")
    process = subprocess.Popen(
        python("-m", "agentrunner", "run", str(place / "task.yaml"), "--json"),
        env=environment({"AGENTRUNNER_STATE_DIR": str(place / "state")}),
        cwd=place,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):  # NEEDS_REVIEW: there is nothing to prove
        raise subprocess.CalledProcessError(process.returncode, process.args)
    peak = usage.ru_maxrss * 1024
    name = f"peak memory, worker prints {size / 2**30:.3g} GiB"
    return Figure(name, megabytes(peak), "-", peak / 1e6, 160)


if __name__ == "__main__":
    sys.exit(program(figures, loops=400, short=40, printed=2**30))
