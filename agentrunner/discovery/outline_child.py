"""The child process that parses sources: one request per line on stdin, the heads per line back.

Before it reads anything it gives up what it does not need: network, memory, processes, files.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import resource
import signal
import sys
from pathlib import Path

from agentrunner.text.unicode import to_bytes

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
"""Flags of unshare(2)."""
FILE_SEC = 2
"""Limit per file; the alarm ends the child."""


def main() -> None:
    """Answer each request until standard input ends."""
    from agentrunner.verification.syntax.heads import heads_of

    _drop_privileges(int(sys.argv[1]))
    for line in sys.stdin.buffer:
        order = json.loads(line)
        signal.alarm(FILE_SEC)
        lines = heads_of(to_bytes(order["source"]), order["language"])
        signal.alarm(0)
        sys.stdout.write(json.dumps(lines) + "\n")
        sys.stdout.flush()


def _drop_privileges(memory: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for what, most in (
        (resource.RLIMIT_AS, used + memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (most, most))
    # `os.unshare` exists from Python 3.12 on. Where the kernel allows users no namespaces, or root
    # is in none, the network stays.
    libc = ctypes.CDLL(None)
    if libc.unshare(NEW_USER | NEW_NETWORK) != 0:
        libc.unshare(NEW_NETWORK)


if __name__ == "__main__":
    main()
