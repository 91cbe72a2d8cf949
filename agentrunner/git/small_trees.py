"""Makes and writes small trees without starting git, as a run does for each clean room.

A start of git takes 4 ms, and a round needs dozens. What is too large or too odd is left to git.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentrunner.git.pack import Pack
from agentrunner.git.process import Git
from agentrunner.git.restore import Entry
from agentrunner.git.snapshot_writer import write_trees
from agentrunner.git.stat_cache import KEY, seen_file
from agentrunner.text.unicode import to_bytes

MOST_ENTRIES = 500
"""The most files of a tree handled this way. For more, git is faster, including its start."""
MODES = {"100644": 0o100644, "100755": 0o100755, "120000": 0o120000}


def is_small(entries: Mapping[str, Entry]) -> bool:
    """Whether a tree is made and written without git."""
    return len(entries) <= MOST_ENTRIES


def keep_blob(git: Git, data: bytes) -> str:
    """Keep content in the store and return its name."""
    with Pack(git.git_dir, set()) as pack:
        name = pack.add("blob", data)
        pack.store(git)
    return name


def with_other(
    entries: Mapping[str, Entry], overrides: Mapping[str, Entry | None]
) -> dict[str, Entry]:
    """Return a tree's entries with others at some paths, applied in order like git's index does.

    A file replaces a folder of its name, and a folder replaces a file.
    """
    made = dict(entries)
    for path, entry in overrides.items():
        made.pop(path, None)
        if entry is None:
            continue
        for above in _above(path):
            made.pop(above, None)
        for below in [name for name in made if name.startswith(f"{path}/")]:
            del made[below]
        made[path] = entry
    return made


def keep_tree(git: Git, entries: Mapping[str, Entry]) -> str:
    """Keep a tree of these entries in the store and return its name."""
    files = {
        to_bytes(path): seen_file(KEY.pack(0, 0, 0, 0, MODES[mode]), bytes.fromhex(blob), 0)
        for path, (mode, blob) in entries.items()
    }
    with Pack(git.git_dir, set()) as pack:
        name = write_trees(pack, files)[-1].hex()
        pack.store(git)
    return name


def is_ordinary(entries: Mapping[str, Entry], overrides: Mapping[str, Entry | None]) -> bool:
    """Whether git's index would accept all of these unchanged."""
    made = [*entries.values(), *overrides.values()]
    names = overrides.keys() - entries.keys()
    return all(entry is None or entry[0] in MODES for entry in made) and all(map(_is_name, names))


def _is_name(path: str) -> bool:
    return not any(
        part in ("", ".", "..") or "\0" in part or part.lower().startswith((".git", "git~"))
        for part in path.split("/")
    )


def _above(path: str) -> Iterable[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
