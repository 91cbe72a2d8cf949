"""What carrying a plan out costs: scheduling, a large patch, and many runs in one process.

    python -m benchmarks.plan

Tasks of the schedule take no time; runs are whole ones of the shipped engine, without a box, whose
worker waits until all of them are at work.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Collection
from functools import partial
from pathlib import Path

from agentrunner.execution.deps import Clock
from agentrunner.plans.execution.scheduler import Scheduler, TaskOutcome
from agentrunner.plans.patch import PlanEdit, apply
from agentrunner.plans.plan import ROOT as ROOT_NODE
from agentrunner.plans.plan import Hint, NodeDesign, Plan, PlannedTask, PlanNode, PlanTaskStatus
from benchmarks.measure import Figure, by_turns, ms, printed, program, python

MEGABYTE = 1 << 20
DONE = TaskOutcome(PlanTaskStatus.COMPLETE)


class _Quiet:
    """Nobody changes anything meanwhile."""

    def plan_after(self, version: int) -> Plan | None:
        return None

    def answered(self, questions: Collection[int]) -> set[int]:
        return set()


def tasks(number: int) -> Plan:
    """So many tasks: each needs an earlier one, and shares a file with some others."""
    ids = [f"TASK-{n:04d}" for n in range(1, number + 1)]
    names = [f"node-{n:04d}" for n in range(1, number + 1)]
    designs = {
        name: NodeDesign(
            title=name,
            dependencies=(ids[n - 7],) if n > 7 else (),
            suggested_impl=Hint(file_paths=(f"src/{n % (number // 2 + 1)}.py",)),
        )
        for n, name in enumerate(names)
    }
    nodes = {
        ROOT_NODE: PlanNode(None, tuple(names)),
        **{name: PlanNode(ROOT_NODE, (), task) for name, task in zip(names, ids, strict=True)},
    }
    living = {task: PlannedTask(name) for task, name in zip(ids, names, strict=True)}
    return Plan(1, "goal", nodes, designs, living, (), number, number)


def scheduling_sec(plan: Plan) -> float:
    """CPU seconds for each task of a plan, from the first to the last."""

    async def carry_out(task_id: str, failures: int, stop: asyncio.Event) -> TaskOutcome:
        return DONE

    async def all_of_it() -> int:
        stop = asyncio.Event()
        conduct = Scheduler(plan, carry_out, parallel=8, inbox=_Quiet(), stop=stop, clock=Clock())
        return len((await conduct.run()).outcomes)

    began = time.process_time()
    done = asyncio.run(all_of_it())
    if done != len(plan.tasks):
        raise RuntimeError(f"{done} of {len(plan.tasks)} tasks were carried out")
    return (time.process_time() - began) / done


def patch_sec(plan: Plan, operations: int) -> float:
    """CPU seconds to apply a patch of so many operations, half of them changes."""
    names = list(plan.tasks)
    step = max(len(names) // operations, 1)
    edits = [PlanEdit("create", f"n{n}", {"title": f"n{n}"}) for n in range(operations // 2)]
    edits += [
        PlanEdit("update", name, {"title": "changed", "dependencies": ()})
        for name in names[::step][: operations - len(edits)]
    ]
    began = time.process_time()
    apply(plan, edits)
    return time.process_time() - began


def resident_bytes(place: Path, runs: int) -> int:
    """The most that a process holds while it has so many runs at work at once."""
    place.mkdir()
    command = python("-m", "benchmarks.plan_load", str(place), str(runs))
    return int(printed(command)["rss_bytes"])


def figures(place: Path, *, rounds: int, sizes: tuple[int, int, int], runs: int) -> list[Figure]:
    """All of them; `sizes` of plans from small to large, of which the middle one is patched."""
    small, middle, large = (tasks(size) for size in sizes)
    base, mid, top = by_turns(
        rounds,
        lambda: scheduling_sec(small),
        lambda: scheduling_sec(middle),
        lambda: scheduling_sec(large),
        pick=min,
    )
    (patch,) = by_turns(rounds, lambda: patch_sec(middle, 200), pick=min)
    one, many = resident_bytes(place / "one", 1), resident_bytes(place / "many", runs)
    each = (many - one) / max(runs - 1, 1)

    def per_task(size: int, seconds: float) -> Figure:
        name = f"CPU per task of {size:,}"
        told = f"{seconds * 1e6:.0f} us"
        return Figure(name, told, f"{base * 1e6:.0f} us of {sizes[0]:,}", seconds / base, 1.5)

    return [
        per_task(sizes[1], mid),
        per_task(sizes[2], top),
        Figure(f"patch of 200 on {sizes[1]:,} tasks", ms(patch), "50 ms", patch / 0.05, 1),
        Figure(
            f"memory of each of {runs} runs at once",
            f"{each / MEGABYTE:.1f} MB",
            "8 MB",
            each / (8 * MEGABYTE),
            1,
        ),
    ]


if __name__ == "__main__":
    sys.exit(program(partial(figures, rounds=5, sizes=(200, 2_000, 20_000), runs=50)))
