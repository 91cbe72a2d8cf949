"""A worker that needs nothing and changes nothing: it says so."""

from __future__ import annotations

from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import Probe, WorkerCommand, WorkerRequest
from agentrunner.workers.plain import PlainWorker

SAYS = "The mock worker changes nothing."


class MockWorker(PlainWorker):
    """Accepts every worker_type; needs no binary of its own, no key and no network."""

    kind = "mock"
    verified = "built in"

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        """Keep nothing: the mock has no settings."""

    def probe(self) -> Probe:
        """Return that it is always ready."""
        return Probe(path=Path("/bin/sh"), version="built in")

    def program(self) -> str:
        """Return `sh`, which every sandbox has."""
        return "sh"

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return a command that takes the prompt and prints one line."""
        script = f"cat > /dev/null; echo '{SAYS}'"
        return WorkerCommand(argv=("sh", "-c", script), stdin=call.prompt.encode())
