"""A worker that needs nothing and changes nothing: it prints its prompt (R-272)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentrunner.task.crew import WorkerSpec
from agentrunner.workers.base import (
    Ended,
    EventReader,
    Probe,
    Reports,
    WireName,
    WorkerCall,
    WorkerCommand,
    WorkerReading,
)
from agentrunner.workers.plain import read_plain
from agentrunner.workers.streams import TextEvents


class MockWorker:
    """Answers to every worker_type; needs no binary of its own, no key and no network."""

    kind = "mock"
    needs_model = False
    key_names: tuple[str, ...] = ()
    wire: WireName = ""
    provider_url = ""
    reports = Reports()
    verified = "built in"
    confines_itself = True
    memory = ""
    hosts: tuple[str, ...] = ()
    flag_rules: Mapping[str, str] = {}
    tool_rules: Mapping[str, str] = {}

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        """Nothing to keep: the mock has no settings."""

    def probe(self) -> Probe:
        """Always ready."""
        return Probe(path=Path("/bin/cat"), version="built in")

    def program(self) -> str:
        """`cat`, which every box has."""
        return "cat"

    def command(self, call: WorkerCall) -> WorkerCommand:
        """Print the prompt."""
        return WorkerCommand(argv=("cat",), stdin=call.prompt.encode())

    def events(self) -> EventReader:
        """Each line as text."""
        return TextEvents()

    def read(self, ended: Ended) -> WorkerReading:
        """Completed with exit code 0."""
        return read_plain(ended)
