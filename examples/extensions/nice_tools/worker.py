"""A worker in one file: it plays the sed script that the planner wrote as its prompt.

runner:
  worker: { kind: sed-script }
"""

from __future__ import annotations

import shutil
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.errors import UsageError
from agentrunner.workers.base import Probe, WorkerCall, WorkerCommand
from agentrunner.workers.plain import PlainWorker

HINT = "file: SCRIPT, as in `calc.py: s/a - b/a + b/`"


class SedWorker(PlainWorker):
    """Changes one file by `sed -i`. PlainWorker says the rest: no model, no key, no flags."""

    kind = "sed-script"
    verified = "GNU sed 4.9"

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        if spec.flags:
            raise UsageError("The worker kind `sed-script` takes no flags.", code="bad-value")

    def probe(self) -> Probe:
        """Where sed is on this machine."""
        path = shutil.which("sed")
        return Probe(Path(path)) if path else Probe(None, problem="sed is not installed")

    def program(self) -> str:
        """First word of the command."""
        return "sed"

    def command(self, call: WorkerCall) -> WorkerCommand:
        """`sed` with the first line of the prompt; what is no such line changes nothing."""
        file, _, script = call.prompt.partition("\n")[0].partition(": ")
        if not script or file.startswith("/") or ".." in file.split("/"):
            return WorkerCommand(("sh", "-c", 'echo "$1" >&2; exit 2', "sh", f"not {HINT}"))
        return WorkerCommand(("sed", "--sandbox", "-i", "-e", script, "--", file))
