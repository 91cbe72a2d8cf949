"""Reading a worker that prints plain text and tells by its exit code whether it is done."""

from __future__ import annotations

from agentrunner.workers.base import Ended, WorkerReading
from agentrunner.workers.streams import clip, ended_by, last_lines, split_summary, tail_of


def read_plain(ended: Ended) -> WorkerReading:
    """Completed with exit code 0; the summary is the JSON summary or the last lines of stdout."""
    output = tail_of(ended.stdout)
    prose, commands = split_summary(output)
    completed = ended.outcome == "exited" and ended.exit_code == 0
    return WorkerReading(
        completed=completed,
        summary=clip(last_lines(prose)),
        commands=commands,
        error="" if completed else clip(_why(ended)),
    )


def _why(ended: Ended) -> str:
    if ended.outcome != "exited":
        return ended_by(ended.outcome)
    said = last_lines(tail_of(ended.stderr), 3)
    return f"exit code {ended.exit_code}" + (f": {said}" if said else "")
