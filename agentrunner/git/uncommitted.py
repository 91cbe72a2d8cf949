"""Which files of a checkout are not committed as they are: told by its index, read as data."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agentrunner.errors.repositories import GitFailed
from agentrunner.git.borrow import LOW, git_mode
from agentrunner.git.export import differing
from agentrunner.git.own_checkout import commit_of
from agentrunner.git.process import Git, git_dir_of, shared_dir_of
from agentrunner.git.snapshots import Snapshots
from agentrunner.git.stat_cache import KEY
from agentrunner.git.user_index import IndexDamaged, read_index
from agentrunner.text.unicode import to_bytes, to_text


def uncommitted(snapshots: Snapshots, tree: str) -> list[str]:
    """Return new, changed and deleted files of the checkout whose snapshot is `tree`; sorted.

    A file counts as unchanged where git's index says so. [] where none can be told: no repository,
    or an index that cannot be read. Blocks; raises GitFailed and OSError.
    """
    repo = snapshots.work_tree
    try:
        index = read_index(os.fsencode(git_dir_of(repo) / "index"))
    except (FileNotFoundError, IndexDamaged):
        return []
    if index is None or not index.entries:
        return []
    here = {to_bytes(path): entry[1] for path, entry in snapshots.list(tree).items()}
    new = {to_text(name) for name in here.keys() - index.tracked}
    found = {to_bytes(path) for path in new - snapshots.ignored_paths(new)}
    for name, entry in index.entries.items():
        if here.get(name) != _blob(entry) and not _as_git_saw_it(os.fsencode(repo), name, entry):
            found.add(name)
    if head := _committed(snapshots, tree, here):
        found |= {n for n, entry in index.entries.items() if head.get(n) != _blob(entry)}
        found |= {name for name in head if name not in index.tracked and name not in here}
    return sorted(map(to_text, found))


def _blob(entry: bytes) -> str:
    return entry[KEY.size :].hex()


def _as_git_saw_it(repo: bytes, name: bytes, entry: bytes) -> bool:
    """Whether a file has the facts that the index has of it."""
    try:
        facts = os.lstat(os.path.join(repo, name))  # noqa: PTH118 - pathlib takes no bytes
    except OSError:
        return False
    key = KEY.pack(
        facts.st_size & LOW,
        facts.st_mtime_ns,
        facts.st_ctime_ns,
        facts.st_ino & LOW,
        git_mode(facts.st_mode),
    )
    return entry.startswith(key)


def _committed(snapshots: Snapshots, tree: str, here: Mapping[bytes, str]) -> dict[bytes, str]:
    """Return the blobs of the commit that is checked out, by path; {} where that is not known.

    Only what differs from the snapshot is asked for: the commit may have 100,000 files.
    """
    repo, head = snapshots.work_tree, dict(here)
    reader = Git(snapshots.git.git_dir, snapshots.git.binary)
    reader.borrows_from(os.fsencode(shared_dir_of(git_dir_of(repo)) / "objects"))
    commit = commit_of(repo)
    try:
        found = differing(reader, tree, commit) if commit else {}
    except GitFailed:  # its objects may lie where our own git finds none
        return {}
    for path, (_, entry) in found.items():
        head.pop(to_bytes(path), None)
        if entry is not None:
            head[to_bytes(path)] = entry[1]
    return head if commit else {}
