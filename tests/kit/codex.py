"""The real Codex CLI, where it is installed."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.workers.base import Probe
from agentrunner.workers.codex import CodexWorker
from tests.kit.missing import missing

TOOLS = Path(__file__).parents[2] / ".tools"


def require_codex() -> Path:
    """The native binary: AGENTRUNNER_CODEX, `.tools/` (scripts/install-codex.sh), or PATH.

    Where it is missing the test is skipped; under CI=true it fails.
    """
    found = probe_codex()
    if found.path is None:
        missing(f"{found.problem} Run scripts/install-codex.sh.")
    return found.path


def probe_codex() -> Probe:
    """What is installed."""
    wrapper = TOOLS / "node_modules" / ".bin" / "codex"
    command = [str(wrapper)] if wrapper.exists() and "AGENTRUNNER_CODEX" not in os.environ else None
    return CodexWorker(WorkerSpec(command=command)).probe()
