"""A cache of what was read of a run, valid while the run's files do not change.

Loading LangGraph to show an ended run takes longer than everything else about it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

from agentrunner import __version__
from agentrunner.storage.run_folder import RunFolder, write_private
from agentrunner.storage.worker_ledger import read_json

FILE = "remembered.json"
Read = TypeVar("Read")


def remembered(
    folder: RunFolder, name: str, read: Callable[[], dict[str, Read]]
) -> dict[str, Read]:
    """Return what `read` gives, cached under `name` for as long as the run is unchanged."""
    path = folder.root / FILE
    saved = read_json(path) or {}
    known: dict[str, dict[str, Read]] = saved["found"] if saved.get("key") == _key(folder) else {}
    if name in known:
        return known[name]
    value = read()
    # The key anew: reading alone changes the times of the file of saved states.
    text = json.dumps({"key": _key(folder), "found": {**known, name: value}})
    # The folder may be read-only, and a lone surrogate is not worth a crash here.
    with contextlib.suppress(OSError, ValueError):
        write_private(path, text.encode(), sync=False)
    return value


def _key(folder: RunFolder) -> list[Any]:
    """Return a key that changes with every file that a result is made of."""
    key: list[Any] = [__version__]
    paths = [folder.checkpoints, folder.log_file, folder.root / "note-path", folder.spec_file]
    paths.append(folder.checkpoints.with_name(folder.checkpoints.name + "-wal"))
    for path in paths:
        try:
            facts = path.stat()
        except FileNotFoundError:
            key.append(None)
        else:
            times = (facts.st_mtime_ns, facts.st_ctime_ns)
            key.append([os.fspath(path), facts.st_size, facts.st_ino, *times])
    return key
