"""What was read of a run that has not changed since, without the libraries that read it.

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
    """What `read` gives, or gave when the run was as it is now; `name` says which reading it is."""
    path = folder.root / FILE
    saved = read_json(path) or {}
    known: dict[str, dict[str, Read]] = saved["found"] if saved.get("key") == _key(folder) else {}
    if name in known:
        return known[name]
    value = read()
    # Reading alone gives the file of the saved states another time.
    text = json.dumps({"key": _key(folder), "found": {**known, name: value}})
    # The surroundings may be read-only, and a lone surrogate is not worth a crash here.
    with contextlib.suppress(OSError, ValueError):
        write_private(path, text.encode(), sync=False)
    return value


def _key(folder: RunFolder) -> list[Any]:
    """Changes with whatever a result is made of; ours alone write there."""
    key: list[Any] = [__version__]
    places = [folder.checkpoints, folder.log_file, folder.root / "note-path", folder.spec_file]
    places.append(folder.checkpoints.with_name(folder.checkpoints.name + "-wal"))
    for place in places:
        try:
            facts = place.stat()
        except FileNotFoundError:
            key.append(None)
        else:
            times = (facts.st_mtime_ns, facts.st_ctime_ns)
            key.append([os.fspath(place), facts.st_size, facts.st_ino, *times])
    return key
