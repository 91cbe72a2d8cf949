"""One snapshot, or one tree written, in a process of its own: for `benchmarks.repositories`.

    python -m benchmarks.snapshot STORE REPOSITORY MARK [TARGET]

Prints seconds, the highest resident set in bytes, and what there was to see. With a TARGET, an
empty or new folder, the tree of a snapshot before is written there.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from resource import RUSAGE_SELF, getrusage

from agentrunner.git.snapshots import Snapshots


def main(store: str, repo: str, mark: str, target: str = "") -> None:
    """Do it and print the figures."""
    snapshots = Snapshots(Path(store), Path(repo), worked=Path(mark))
    before = time.monotonic()
    taken = snapshots.take()
    after = time.monotonic()
    if target:
        snapshots.export_tree(taken.tree, Path(target))
    figures = {
        "take_sec": after - before,
        "export_sec": time.monotonic() - after,
        "rss_bytes": getrusage(RUSAGE_SELF).ru_maxrss * 1024,
        "borrowed": taken.borrowed,
        "files": taken.files,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
