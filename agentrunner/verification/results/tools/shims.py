"""Programs of ours that come before a tool on PATH, so that it reports even behind make."""

from __future__ import annotations

from agentrunner.verification.results.model import Instrumented
from agentrunner.verification.results.reporters import text_of


def shimmed(shell: str, *programs: str) -> Instrumented:
    """The command with a shim for each of these programs; `registry` puts them on PATH."""
    text = text_of("agentrunner_shim.sh")
    return Instrumented(shell, {}, {f"bin/{program}": text for program in programs})
