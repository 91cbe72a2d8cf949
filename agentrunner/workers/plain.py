"""Workers that print plain text and report by their exit code whether they are done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.errors.task_files import BadValue
from agentrunner.workers.base import Ended, EventReader, Reports, WireName, WorkerReading
from agentrunner.workers.streams import (
    TextEvents,
    clip,
    ended_by,
    last_lines,
    split_summary,
    tail_of,
)


class PlainWorker:
    """A worker about which nothing is known: no key, model or flags. A subclass says what runs."""

    kind = ""
    verified = ""
    needs_model = False
    key_names: tuple[str, ...] = ()
    wire: WireName = ""
    provider_url = ""
    reports = Reports()
    confines_itself = True
    memory = ""
    hosts: tuple[str, ...] = ()
    flag_rules: Mapping[str, str] = {}
    tool_rules: Mapping[str, str] = {}

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        if spec.flags:
            raise BadValue(f"The worker kind `{self.kind}` takes no flags.")

    def events(self) -> EventReader:
        return TextEvents()

    def read(self, ended: Ended) -> WorkerReading:
        """Return a reading: completed if the exit code is 0."""
        return read_plain(ended)


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
    lines = last_lines(tail_of(ended.stderr), 3)
    return f"exit code {ended.exit_code}" + (f": {lines}" if lines else "; it wrote no error")
