"""The subject: a plan of which all tasks are at work at once, and what that costs this process.

    python -m benchmarks.plan_load PLACE RUNS

Each task's worker waits until the last one has begun. Prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from tests.kit.plan_project import PlanProject, Work


def main() -> None:
    """The program."""
    place, runs = Path(sys.argv[1]), int(sys.argv[2])
    all_here = f"[ $(ls ../../*/here | wc -l) -ge {runs} ]"
    wait = f"touch ../here; until {all_here}; do sleep 0.2; done; touch {{}}.done"
    works = [Work(wait) for _ in range(runs)]
    plan = PlanProject.make(place, works, {"a.txt": "one\n"})
    result = plan.carry(parallel=runs)
    if result["exit_code"] != 0:
        raise RuntimeError(f"the plan ended with {result['exit_code']}")
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"rss_bytes": rss}))


if __name__ == "__main__":
    main()
