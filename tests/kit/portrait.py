"""What a worker CLI shows of itself in real runs, beside what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.member import make_worker
from tests.kit.cells import DONE, WORK
from tests.kit.scenario import Shell, Turn
from tests.kit.trials import Bench, Seen, Trial

CHECK = Turn("Checking.", [Shell("exit 3")])
CHECKED = Turn("Checked.")


@dataclass(frozen=True)
class Portrait:
    """Seen in two runs: one that edits a file, and one that goes on with a failing command."""

    edited: bool
    """The file that its model wrote is there, and nothing else."""
    resumed: bool | None
    """The second run was one with the session of the first; None where it keeps no sessions."""
    usage: bool | None
    """It reports the tokens of each run as the server told them; None where it reports none."""
    counted: bool
    """The gateway counted them so."""
    exit_codes: Literal["all", "failures", "none"]
    """Of which commands it tells them."""
    said: str
    """The end of what it printed, for a failing test."""


async def portrait(place: Path, kind: str, program: Path) -> Portrait:
    """Run a CLI twice."""
    bench = Bench(place, kind, program)
    reports = make_worker(WorkerSpec(kind=kind)).reports
    first = await bench.run(Trial([WORK, DONE]))
    session = first.reading.session_id if reports.resume else None
    turns = [WORK, DONE, CHECK, CHECKED] if session else [CHECK, CHECKED]
    second = await bench.run(Trial(turns, prompt="Check it."), session=session)
    runs = (first, second)
    return Portrait(
        edited=first.changed == ("hello.txt",) and first.came.outcome == "completed",
        resumed=_went_on(first, second) if reports.resume else None,
        usage=all(map(_reported, runs)) if reports.tokens else None,
        counted=all(map(_counted, runs)),
        exit_codes=_exit_codes(first, second),
        said=f"{first.said}\n{second.said}",
    )


def _went_on(first: Seen, second: Seen) -> bool:
    same = first.reading.session_id == second.reading.session_id is not None
    return same and second.reading.summary == CHECKED.text


def _exit_codes(first: Seen, second: Seen) -> Literal["all", "failures", "none"]:
    if 3 not in [run.exit_code for run in second.reading.commands]:
        return "none"
    return "all" if 0 in [run.exit_code for run in first.reading.commands] else "failures"


def _reported(run: Seen) -> bool:
    told = (run.told.input_tokens, run.told.output_tokens)
    return (run.reading.input_tokens, run.reading.output_tokens) == told


def _counted(run: Seen) -> bool:
    return (run.used.total.input_tokens, run.used.total.output_tokens) == (
        run.told.input_tokens,
        run.told.output_tokens,
    )
