"""A sandbox in one file: bubblewrap as AgentRunner uses it, at the lowest priority of the machine.

runner:
  sandbox: { kind: low-priority }
"""

from __future__ import annotations

from dataclasses import replace

from agentrunner.sandboxes.base import Launch, Request
from agentrunner.sandboxes.bwrap import BwrapSandbox


class LowPriority(BwrapSandbox):
    """What runs in it waits while anybody else wants the processor."""

    kind = "low-priority"

    def describe(self) -> str:
        """For the header."""
        return f"{super().describe()}; at the lowest priority"

    def launch(self, request: Request) -> Launch:
        """The command line of bubblewrap behind `nice`, which becomes that program."""
        made = super().launch(request)
        return replace(made, argv=("nice", "-n", "19", *made.argv))
