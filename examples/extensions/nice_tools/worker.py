"""A worker in one file: it plays the sed script that the planner wrote as its prompt.

runner:
  worker: { kind: sed-script }
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from agentrunner.workers.base import Probe, WorkerCommand, WorkerRequest
from agentrunner.workers.plain import PlainWorker

ORDER = re.compile(r"^(?P<file>[\w.-]+): (?P<script>s/.+)$", re.MULTILINE)
HINT = "there is no line like `calc.py: s/a - b/a + b/` in the prompt"


class SedWorker(PlainWorker):
    """Changes one file by `sed -i`. PlainWorker says the rest: no model, no key, no flags."""

    kind = "sed-script"
    verified = "GNU sed 4.9"

    def probe(self) -> Probe:
        """Where sed is on this machine."""
        path = shutil.which("sed")
        return Probe(Path(path)) if path else Probe(None, problem="sed is not installed")

    def program(self) -> str:
        """First word of the command."""
        return "sed"

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """`sed` with the first such line of the prompt; without one it fails and says so."""
        found = ORDER.search(call.prompt)
        if found is None:
            return WorkerCommand(("sh", "-c", 'echo "$1" >&2; exit 2', "sh", HINT))
        return WorkerCommand(("sed", "--sandbox", "-i", "-e", found["script"], "--", found["file"]))
