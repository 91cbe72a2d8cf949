"""The subject: whole runs of the shipped engine, with a record of what they cost this process.

    python -m benchmarks.engine PLACE LOOPS RUNS META WORKER

RUNS runs go on at the same time, each in a repository of its own in PLACE, each of LOOPS rounds
of the shell command WORKER without a box. META is `openai-chat`, which asks the server that the
environment names, or `loop`, which decides the same without a client. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrunner import registry
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.runs import start
from agentrunner.protocol import message_schema
from tests.kit.project import Project


@dataclass
class Cost:
    """What runs have cost; printed as JSON."""

    cpu_sec: list[float] = field(default_factory=list)
    """CPU time of this process so far, at each decision of the first run."""
    state_bytes: list[int] = field(default_factory=list)
    """Size of its state file, at each decision."""
    rss_bytes: int = 0
    """Highest resident set of this process."""
    call: dict[str, Any] = field(default_factory=dict)
    """Its last call to the planner, as `benchmarks.bare` reads it."""


async def run(place: Path, loops: int, runs: int, meta: str, worker: str) -> Cost:
    """Drive the runs to their end."""
    registry.PLANNERS["loop"] = "benchmarks.planner:LoopPlanner"
    cost = Cost()
    projects = [Project.make(place / str(number)) for number in range(runs)]
    runner = {
        "meta": {"kind": meta, "max_loops": loops},
        "sandbox": {"kind": "none"},
        "stuck_after": 0,  # every loop orders the same
    }
    specs = [project.spec(worker, runner=runner) for project in projects]
    state_dirs = [project.state_dir for project in projects]

    looking = 0.0

    def on_event(event: dict[str, Any]) -> None:
        nonlocal looking
        if event["event"] == "decision":
            began = time.process_time()
            cost.cpu_sec.append(began - looking)
            cost.state_bytes.append(_size(next(state_dirs[0].glob("runs/*/checkpoints.sqlite"))))
            looking += time.process_time() - began

    listeners = [on_event, *[_ignore] * (runs - 1)]
    results = await asyncio.gather(
        *(
            start(spec, Options(state_dir=state_dir, on_event=listener))
            for spec, state_dir, listener in zip(specs, state_dirs, listeners, strict=True)
        )
    )
    if len(cost.cpu_sec) <= loops:
        raise RuntimeError(f"the run ended early: {results[0].text}")
    cost.rss_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    asked = max(state_dirs[0].glob("runs/*/meta/*.request.json"))
    cost.call = {
        "messages": json.loads(asked.read_bytes()),
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "next_action",
                "schema": message_schema("next_action"),
                "strict": True,
            },
        },
    }
    return cost


def _ignore(event: dict[str, Any]) -> None:
    pass


def _size(path: Path) -> int:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        pages, size = database.execute(
            "select page_count, page_size from pragma_page_count, pragma_page_size"
        ).fetchone()
    return int(pages * size)


def main() -> None:
    """The program."""
    place, loops, runs, meta, worker = sys.argv[1:]
    cost = asyncio.run(run(Path(place), int(loops), int(runs), meta, worker))
    print(json.dumps(vars(cost)))


if __name__ == "__main__":
    main()
