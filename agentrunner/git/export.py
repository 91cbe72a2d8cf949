"""Writes trees of a store into folders.

Git writes a whole tree, from our own store into a folder of ours, if it can be relied on to write
what the names say. Everything else goes through `SafeFolder`, and each content is checked against
its name before it is written. Blocks; call it in a thread.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agentrunner.errors.repositories import ContentGone, GitFailed
from agentrunner.errors.runs import DiskFull
from agentrunner.git.blobs import Content, blobs
from agentrunner.git.borrow import is_untouched
from agentrunner.git.process import ATTRIBUTES, Git, replace
from agentrunner.git.restore import Entry, SafeFolder, starts_with_mark
from agentrunner.git.snapshot_writer import stand_ins
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text

UMASK = 0o022

OWN_NAMES_ONLY = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
LINE = lazy_regex(rb"(?<!\d)([0-7]++) \w+ ([0-9a-f]+)\t([^\0]+)\0")
"""An entry of `git ls-tree -z`."""
Read = Callable[[Git, Mapping[str, Entry]], Iterable[tuple[str, str, Content]]]
"""Reads path, mode and content of entries."""
PARALLEL = ("-c", "checkout.workers=0", "-c", "checkout.thresholdForParallelism=1000")


def list_tree(git: Git, tree: str) -> dict[str, Entry]:
    """Return every path of a tree with its mode and blob."""
    found = {}
    listed = git.run("ls-tree", "-r", "-z", "--full-tree", tree)
    for line in LINE.finditer(listed):
        mode, blob, path = line.groups()
        found[to_text(path)] = (sys.intern(mode.decode()), blob.decode())
    return found


def differing(git: Git, before: str, after: str) -> dict[str, tuple[Entry | None, Entry | None]]:
    """Return the paths whose entries differ between two trees, with both; None for no such file."""
    found: dict[str, tuple[Entry | None, Entry | None]] = {}
    fields = iter(git.run("diff-tree", "-r", "-z", "--no-renames", before, after).split(b"\0"))
    for facts in fields:
        if facts:
            old_mode, new_mode, old, new, _ = facts[1:].decode().split(" ")
            path = to_text(next(fields))
            found[path] = (_entry(old_mode, old), _entry(new_mode, new))
    return found


def _entry(mode: str, blob: str) -> Entry | None:
    return None if mode == "000000" else (mode, blob)


def index_lines(entries: Mapping[str, Entry | None], digits: int = 40) -> bytes:
    """Return the input by which `git update-index -z --index-info` takes these entries.

    None removes a path; `digits` is how many a name of an object has.
    """
    gone = ("0", "0" * digits)
    lines = (
        " ".join(entry or gone).encode() + b"\t" + to_bytes(path) + b"\0"
        for path, entry in entries.items()
    )
    return b"".join(lines)


def export_tree(git: Git, tree: str, target: Path) -> list[str]:
    """Write a tree into an empty or new folder; return the paths of large files, left out.

    Raises GitFailed if a content is gone or damaged, and OSError.
    """
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    large = stand_ins(git)
    if large is not None and is_untouched(git) and not any(target.iterdir()):
        missing = _large_paths(git, tree, large) if large else []
        if _check_out(git, tree, target, missing):
            return missing
    return export_entries(git, list_tree(git, tree), target)


def export_entries(
    git: Git, entries: Mapping[str, Entry], target: Path, read: Read | None = None
) -> list[str]:
    """Write these files into a folder; return the paths of large ones, which are left out.

    `read` reads them, by default `contents`.
    """
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    large = []
    with SafeFolder(target, for_all=True) as folder:
        for path, mode, data in (read or contents)(git, entries):
            if starts_with_mark(data):
                large.append(os.fsdecode(to_bytes(path)))
            else:
                folder.write(path, mode, data)
    return large


def contents(git: Git, entries: Mapping[str, Entry]) -> Iterator[tuple[str, str, Content]]:
    """Yield path, mode and content of each entry, checked against its name.

    Raises GitFailed (`content-gone`) for one that the store no longer has, or that is damaged.
    """
    places: dict[str, list[str]] = {}
    for path, (_, blob) in entries.items():
        places.setdefault(blob, []).append(path)
    for name, data in blobs(git, places):
        if data is None:
            raise ContentGone(
                f"The content of {places[name][0]!a} is gone from the repository's objects,"
                " or damaged: it had not changed, so the run kept no copy of its own.",
                remedy="git fsck in the repository; where a copy of its objects is, bring it back",
            )
        for path in places[name]:
            if not isinstance(data, bytes):
                data.seek(0)
            yield path, entries[path][0], data


def _large_paths(git: Git, tree: str, large: set[str]) -> list[str]:
    return [
        os.fsdecode(to_bytes(path))
        for path, (_, blob) in list_tree(git, tree).items()
        if blob in large
    ]


def _check_out(git: Git, tree: str, target: Path, without: Sequence[str]) -> bool:
    """Let git write a tree without some files; return False, with an empty folder, if it fails."""
    attributes = git.git_dir / "info" / "attributes"
    if attributes.read_bytes() != ATTRIBUTES:
        replace(attributes, ATTRIBUTES)
    with tempfile.TemporaryDirectory(dir=git.git_dir) as scratch:
        index = {"GIT_INDEX_FILE": str(Path(scratch, "index"))}
        gone = index_lines({to_text(os.fsencode(path)): None for path in without})
        try:
            git.run(*OWN_NAMES_ONLY, "read-tree", tree, env=index)
            if gone:
                git.run("update-index", "-z", "--index-info", stdin=gone, env=index)
            git.run(
                *(*OWN_NAMES_ONLY, *PARALLEL),
                *(f"--work-tree={target}", "checkout-index", "--all", "--quiet"),
                env=index,
                cwd=target,
                umask=UMASK,
            )
        except GitFailed as error:
            if isinstance(error, DiskFull):
                raise
            _empty(target)
            return False
    return True


def _empty(folder: Path) -> None:
    """Remove what git has written; no link is followed."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
