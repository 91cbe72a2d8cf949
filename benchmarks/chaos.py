"""What `kill -9` does to runs and plans: many short ones, struck at moments that a seed draws.

    python -m benchmarks.chaos [--of runs|plans] [--sandbox docker|bwrap] [--times 100] [--seed N]

Docker's boxes are on an engine of our own, which is killed, too (root only). Each run is resumed,
and each plan carried on with, until it ends; one line per kind of the first kill says how they
ended, how often they had to be resumed, and what was left of them; idle shims are those that a
killed containerd forgot. What did not end right is told of in full.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.kit.chaos import Blow, Fate
from tests.kit.engine_watch import EngineWatch
from tests.kit.greeter import greeter
from tests.kit.plan_chaos import PlanChaos
from tests.kit.run_chaos import RunChaos

Work = type[RunChaos] | type[PlanChaos]
AGAIN: dict[Work, float] = {RunChaos: 0.3, PlanChaos: 0.8}
"""How many of those that are resumed are struck once more."""
MOST_BLOWS: dict[Work, int] = {RunChaos: 2, PlanChaos: 8}
HEADINGS = ("killed", "number", "hit", "COMPLETE", "other end", "wrong", "losses",
            "resumes (most)", "leftovers", "idle shims")  # fmt: skip


def drawn(work: Work, random: Random, number: int, *, engine: bool) -> list[Blow]:
    """The blows of one: the kinds take turns at the first, all else is chance."""
    kinds = [kind for kind in (*work.victims, "several") if engine or kind != "engine"]
    blows = [work.draw(random, kinds[number % len(kinds)], engine=engine)]
    while len(blows) < MOST_BLOWS[work] and random.random() < AGAIN[work]:
        blows.append(work.draw(random, random.choice(kinds), engine=engine))
    return blows


def strike(work: Work, times: int, seed: int, sandbox: str) -> list[tuple[Blow, Fate]]:
    """The first blow of each, and what became of it."""
    random, fates = Random(seed), []
    with ExitStack() as stack:
        port = stack.enter_context(greeter())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ar-chaos-")))
        engine = None
        if sandbox == "docker":
            engine = stack.enter_context(EngineWatch.running(place))
        for number in range(times):
            blows = drawn(work, random, number, engine=engine is not None)
            with work.open(place / str(number), port, engine) as struck:
                fate = struck.strike(blows)
            fates.append((blows[0], fate))
            _tell(number, fate)
    return fates


def _tell(number: int, fate: Fate) -> None:
    """One line, as they take minutes; and whatever is not right."""
    blows = ", then ".join(fate.blows)
    print(
        f"{number}: {blows}: {fate.codes} {fate.outcomes} {fate.state}", file=sys.stderr, flush=True
    )
    for line in (*fate.wrong, *fate.left):
        print(f"    {line}", file=sys.stderr, flush=True)


def table(fates: Sequence[tuple[Blow, Fate]]) -> str:
    """One row per kind of kill."""
    rows: list[tuple[str, ...]] = [HEADINGS]
    for kind in dict.fromkeys([*(blow.kind for blow, _ in fates), "all"]):
        of_kind = [fate for blow, fate in fates if kind in ("all", blow.kind)]
        ends = Counter(fate.state for fate in of_kind)
        resumes = [fate.resumes for fate in of_kind]
        facts = (
            len(of_kind),
            sum(bool(fate.killed) for fate in of_kind),
            ends["COMPLETE"],
            len(of_kind) - ends["COMPLETE"],
            sum(bool(fate.wrong) for fate in of_kind),
            sum(fate.losses for fate in of_kind),
            f"{sum(resumes)} ({max(resumes)})",
            sum(len(fate.left) for fate in of_kind),
            sum(fate.forgotten for fate in of_kind),
        )
        rows.append((kind, *map(str, facts)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where one did not end right or left something."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos")
    parser.add_argument("--of", choices=("runs", "plans"), default="runs")
    parser.add_argument("--sandbox", choices=("docker", "bwrap"), default="docker")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    work: Work = RunChaos if chosen.of == "runs" else PlanChaos
    fates = strike(work, chosen.times, chosen.seed, chosen.sandbox)
    print(table(fates))
    return 0 if all(fate.ok for _, fate in fates) else 1


if __name__ == "__main__":
    sys.exit(main())
