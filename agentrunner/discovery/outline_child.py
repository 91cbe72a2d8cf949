"""The child that reads sources: an order a line on standard input, the heads a line back.

It gives up what it does not need before it reads anything: network, memory, processes and files.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
from pathlib import Path

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
"""Flags of unshare(2)."""
FILE_SEC = 2
"""Of one file; the alarm ends the child."""


def main() -> None:
    """Answer each order until standard input ends."""
    from agentrunner.verification.syntax.heads import heads_of

    _give_up(int(sys.argv[1]))
    for line in sys.stdin.buffer:
        order = json.loads(line)
        signal.alarm(FILE_SEC)
        lines = heads_of(order["source"].encode(), order["language"])
        signal.alarm(0)
        sys.stdout.write(json.dumps(lines) + "\n")
        sys.stdout.flush()


def _give_up(memory: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for what, most in (
        (resource.RLIMIT_AS, used + memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    unshare = getattr(os, "unshare", None)  # from Python 3.12 on
    if unshare is not None:
        with contextlib.suppress(OSError):  # where the kernel lets a user do it
            unshare(NEW_USER | NEW_NETWORK)


if __name__ == "__main__":
    main()
